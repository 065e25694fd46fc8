"""Tests of CEL, and the comparison of its words with the real API server's."""
