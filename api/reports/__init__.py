"""From evidence to words: what may be said, cited and quoted, and the finished JSON."""
