"""Simulates and trains placement policies, and brings the plugins that learn."""
