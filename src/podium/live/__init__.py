"""The driver on a real API server: informers feed the engine, and its decisions are written back."""
