"""Writes the report of a sweep: one HTML file with the summary and its plots, which needs no network and no script."""

from podium_lab.simulator.report.page import write_report

__all__ = ["write_report"]
