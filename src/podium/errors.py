"""Defines the base of all errors that a command ends with as one sentence and exit code 2.

Every layer has errors of its own, whose text is written for the reader. What does not derive from `UserError` is a
mistake of ours and keeps its traceback.
"""


class UserError(Exception):
    """What the user gave, or what Podium met outside, cannot be used; the text says why and what to do."""
