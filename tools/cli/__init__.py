"""Commands of a checkout: `podium bench` and `podium chaos`."""
