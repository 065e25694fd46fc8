"""What clients see: objects, lists and tables in the form they accept, discovery and OpenAPI documents."""
