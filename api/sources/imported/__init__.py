"""What others have collected: dumps, exports and tables, read as items and their comments."""
