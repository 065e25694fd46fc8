"""What is stored: objects with revisions and history, selections of them, watches, and the file they survive in."""
