"""Implements semantic versions: `semver("1.2.3").isLessThan(semver("2.0.0"))`."""

from typing import Final

from kubecel.operations import compare_versions
from kubecel.values import CelError, Implementation, SemverValue

_DIGITS: Final = frozenset("0123456789")
_ALPHANUMERIC: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")
_LARGEST: Final = 2**64 - 1


def read_version(text: str) -> SemverValue:
    """The version that a text stands for, or the API's words for why it stands for none."""
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    major = _number("Major", "major", parts[0])
    minor = _number("Minor", "minor", parts[1])
    patch, _, build = parts[2].partition("+")
    has_build = "+" in parts[2]
    prerelease: list[int | str] = []
    patch, dash, tail = patch.partition("-")
    core = (major, minor, _number("Patch", "patch", patch))
    if dash:
        prerelease = [_prerelease(part) for part in tail.split(".")]
    if has_build:
        for part in build.split("."):
            if not part:
                raise CelError("Build meta data is empty")
            if not _ALPHANUMERIC.issuperset(part):
                raise CelError(f'Invalid character(s) found in build meta data "{part}"')
    return SemverValue(core, tuple(prerelease), text)


def _number(name: str, lower: str, text: str) -> int:
    if not _DIGITS.issuperset(text):
        raise CelError(f'Invalid character(s) found in {lower} number "{text}"')
    if len(text) > 1 and text.startswith("0"):
        raise CelError(f'{name} number must not contain leading zeroes "{text}"')
    return _parsed(text)


def _parsed(text: str) -> int:
    if not text:
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > _LARGEST:
        raise CelError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _prerelease(part: str) -> int | str:
    if not part:
        raise CelError("Prerelease is empty")
    if _DIGITS.issuperset(part):
        if len(part) > 1 and part.startswith("0"):
            raise CelError(f'Numeric PreRelease version must not contain leading zeroes "{part}"')
        return _parsed(part)
    if not _ALPHANUMERIC.issuperset(part):
        raise CelError(f'Invalid character(s) found in prerelease "{part}"')
    return part


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for number, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[number] = stripped if stripped[:1] in _DIGITS and stripped else f"0{stripped}"
    if len(parts) < 3:
        if any(sign in parts[-1] for sign in "+-"):
            raise CelError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _read(text: str, normalize: bool = False) -> SemverValue:
    return read_version(_normalized(text) if normalize else text)


def _is_version(text: str, normalize: bool = False) -> bool:
    try:
        _read(text, normalize)
    except CelError:
        return False
    return True


def _signed(number: int) -> int:
    """A number as Kubernetes hands it on: what does not fit into 63 bits becomes negative."""
    return number if number < 2**63 else number - 2**64


FUNCTIONS: Final[dict[str, Implementation]] = {
    "string_to_semver": _read,
    "string_bool_to_semver": _read,
    "is_semver_string": _is_version,
    "is_semver_string_bool": _is_version,
    "semver_is_greater_than": lambda one, other: compare_versions(one, other) > 0,
    "semver_is_less_than": lambda one, other: compare_versions(one, other) < 0,
    "semver_compare_to": compare_versions,
    "semver_major": lambda version: _signed(version.core[0]),
    "semver_minor": lambda version: _signed(version.core[1]),
    "semver_patch": lambda version: _signed(version.core[2]),
}
