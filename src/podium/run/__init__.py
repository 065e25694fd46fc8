"""The scheduler of a real cluster: informers feed the engine, and its decisions are written to the API server."""
