"""Scores nodes by weights that were trained: `LearnedScore`, its policy files and its guard."""

from podium_lab.learned.plugin import LearnedScore

__all__ = ["LearnedScore"]
