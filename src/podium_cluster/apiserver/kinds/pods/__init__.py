"""What the API does to pods, step by step: defaults, admission, checks, and the row of a table."""
