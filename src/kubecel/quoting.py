"""Quotes texts as Go's %q does: in messages that are Kubernetes' own, and in PromQL, which reads Go's strings."""

from typing import Final

_SHORT: Final = {7: "a", 8: "b", 12: "f", 10: "n", 13: "r", 9: "t", 11: "v", 92: "\\", 34: '"'}


def quoted(text: str) -> str:
    r"""The text in double quotes, with escapes for what cannot be printed.

    >>> print(quoted('a"b\n'))
    "a\"b\n"
    """
    if text.isprintable() and '"' not in text and "\\" not in text:  # nearly always
        return f'"{text}"'
    return '"' + "".join(_character(character) for character in text) + '"'


def _character(character: str) -> str:
    code = ord(character)
    if code in _SHORT:
        return "\\" + _SHORT[code]
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
