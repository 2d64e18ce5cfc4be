"""From one source to verdicts: fetch, judge, fetch wider once."""
