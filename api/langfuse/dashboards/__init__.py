"""The dashboards, scores, datasets and prompts of a Langfuse project, kept as files."""
