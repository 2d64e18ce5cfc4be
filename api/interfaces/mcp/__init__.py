"""The interface for clients of the Model Context Protocol: tools, prompts and resources."""
