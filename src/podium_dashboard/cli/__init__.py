"""The command `podium dashboard`."""
