"""Turns evidence into a report: what may be said, cited and quoted, and the report's JSON."""
