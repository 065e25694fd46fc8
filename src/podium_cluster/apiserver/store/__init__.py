"""Stores objects with revisions and history, selects and watches them, and writes them to a file."""
