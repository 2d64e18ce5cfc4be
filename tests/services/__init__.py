"""What the product does, without a socket."""
