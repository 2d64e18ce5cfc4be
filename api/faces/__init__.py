"""Ways in: translate the request, call one method, translate the answer."""
