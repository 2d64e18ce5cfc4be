"""The steps from a question's words to evidence: `question`, `gate`, `evidence`."""
