"""The judge that runs on this machine, without a model server."""
