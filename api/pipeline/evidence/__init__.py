"""From all sources to what a report may rest on: graded, ranked, counted, decided."""
