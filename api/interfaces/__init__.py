"""Interfaces: each translates a request, calls one method and translates the answer."""
