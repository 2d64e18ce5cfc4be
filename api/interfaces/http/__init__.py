"""The HTTP API: routes, access, streams and errors."""
