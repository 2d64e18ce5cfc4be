"""What has been heard already, searched instead of asked for again."""
