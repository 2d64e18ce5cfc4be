"""Values, ports and rules that every other package builds on; it opens no socket."""
