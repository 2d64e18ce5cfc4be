"""What several interfaces share: view models, charts, tables, messages and the Python API."""
