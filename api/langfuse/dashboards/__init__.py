"""What Listenpost wants in a Langfuse project, as files, and what brings it there.

`definitions/` says what there should be, `reading.py` what there is, `planning.py` what differs,
`applying.py` does it. docs/langfuse.md says how each chart is read.
"""
