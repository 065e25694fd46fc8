"""The way in over HTTP: server, request parsing, and the handler that carries a request to a write or a read."""
