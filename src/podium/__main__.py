"""Runs the `podium` command for `python -m podium`."""

from podium.cli import main

main()
