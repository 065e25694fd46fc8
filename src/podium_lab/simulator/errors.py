"""Says what is wrong with a scenario or a trace, with the file, the line and the column where it stands."""

from __future__ import annotations

from collections.abc import Iterable

from podium.errors import UserError


class ScenarioError(UserError):
    """The input of a simulation cannot be used; each line of the text is one mistake."""

    def __init__(self, mistakes: str | Iterable[str]) -> None:
        self.mistakes = [mistakes] if isinstance(mistakes, str) else list(mistakes)
        super().__init__("\n".join(self.mistakes))
