"""The judges and the model client."""
