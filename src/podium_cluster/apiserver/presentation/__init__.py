"""Presents objects, lists and tables in the form that clients accept; discovery and OpenAPI documents."""
