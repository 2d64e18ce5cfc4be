"""Notifications of watches, sent to the receivers that a person named."""
