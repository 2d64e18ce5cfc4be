"""One product beside another: the same question to each, and what of it may be compared."""
