"""The whole system in one process: scheduler, client and API server, for people to try and for faults to hit."""
