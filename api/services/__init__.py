"""The product as one object, and its tools for agents (`api.services.tools`)."""
