"""Simulates and trains placement policies, and brings the plugins that learn."""

from podium_lab.environments.registration import register

register()
del register
