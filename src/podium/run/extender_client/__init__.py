"""Calls the HTTP extenders of a configuration."""
