"""Turns what is wrong with the input into one sentence.

Every layer has exceptions of its own, all of them `UserError`, whose text is written for the reader. The commands let
them pass. Any other exception is a mistake of ours and keeps its traceback.
"""

from podium.errors import UserError

ANSWER_IS_NO = 1
BAD_INPUT = 2


class InputError(UserError):
    """What was typed cannot be done; the text says why and what to type instead."""


def sentence_for(error: Exception) -> str | None:
    """What to tell the reader; None when the error is not the input's fault."""
    if isinstance(error, OSError):
        return f"{error.filename}: cannot be read: {error.strerror}" if error.filename else str(error)
    if hasattr(error, "format_message"):  # a usage error: typer keeps Click's classes out of its public names
        return _usage(error)
    return str(error) if isinstance(error, UserError) else None


def _usage(error: Exception) -> str:
    text: str = error.format_message()  # type: ignore[attr-defined]
    if type(error).__name__ == "NoArgsIsHelpError":
        return text  # the help of a command that only groups others
    message = " ".join(text.split())
    message = message.replace("Value error, ", "").removesuffix(".")
    context = getattr(error, "ctx", None)
    return f"{message} (see {context.command_path} --help)" if context else message
