"""Fetch from one source, judge the items, and fetch once more at twice the limit when few were relevant."""
