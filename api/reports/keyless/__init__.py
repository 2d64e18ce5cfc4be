"""Reports without a model: themes that are counted and quoted."""
