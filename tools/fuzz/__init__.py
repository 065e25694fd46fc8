"""Fuzzes every reader of outside input and every endpoint: shortly in `make test`, long in `make fuzz MINUTES=10`."""
