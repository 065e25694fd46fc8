"""Runs schedulers, client and API under seeded faults in virtual time, and checks what must hold (podium chaos)."""
