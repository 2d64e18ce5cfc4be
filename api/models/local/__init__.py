"""Judge and support check that run on this machine, without a model server."""
