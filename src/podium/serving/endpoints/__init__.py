"""Serves health, metrics and configuration over HTTPS, to those who may see them."""
