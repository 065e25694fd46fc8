"""Rules of custom kinds, compared with the real API server on generated definitions and objects."""
