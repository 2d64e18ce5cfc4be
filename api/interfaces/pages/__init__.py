"""The page: screens for people, rendered here, with templates, one style and one small script."""
