"""Search and import of stored items, without asking the sources again."""
