"""Chat about products: sessions, look-ups in sources, answers and citations."""
