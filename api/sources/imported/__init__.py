"""Reads files collected by other programs (dumps, exports and tables) as items with comments."""
