"""What tests and tools share."""
