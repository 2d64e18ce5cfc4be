"""One file per place people talk; `SOURCES` is the list of them."""
