import pytest

from podium.kube.printable import printable, printable_json, printable_lines

UNSAFE = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066, 0x2028, 0xFEFF, 0xD800)]


@pytest.mark.parametrize("character", UNSAFE)
def test_nothing_that_acts_instead_of_being_seen_comes_through(character: str) -> None:
    assert character not in printable(f"a{character}b")
    assert printable(f"a{character}b").isprintable()
    assert character not in printable_json(f"a{character}b")


def test_letters_of_all_languages_stay() -> None:
    for text in ("plain", "größe", "节点", "узел", "🚀", 'quotes " and \\ backslash'):
        assert printable(text) == printable_lines(text) == printable_json(text) == text


def test_lines_stay_lines_where_there_may_be_several() -> None:
    assert printable_lines("Traceback:\n\tx\x1b[2J") == "Traceback:\n\tx\\x1b[2J"
    assert printable("one\ntwo") == "one\\ntwo"
