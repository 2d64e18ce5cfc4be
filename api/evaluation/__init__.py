"""Measuring judges: labelled items in, figures with intervals out."""
