from typing import Any

import pytest

from podium.config.field import FieldPath, Step
from podium.config.positions import MalformedConfigError, Position, parse
from podium.kube.bounds import MAX_DEPTH

TEXT = """\
# a comment
parallelism: 8
profiles:
- schedulerName: a
  plugins:
    score:
      enabled:
      - name: X
        weight: 2
      - {name: Y}
"""


@pytest.mark.parametrize(
    ("steps", "position"),
    [
        (("parallelism",), (2, 1)),
        (("profiles",), (3, 1)),
        (("profiles", 0), (4, 3)),
        (("profiles", 0, "plugins"), (5, 3)),
        (("profiles", 0, "plugins", "score", "enabled", 0, "weight"), (9, 9)),
        (("profiles", 0, "plugins", "score", "enabled", 1), (10, 9)),
        (("profiles", 0, "plugins", "score", "enabled", 1, "name"), (10, 10)),
    ],
)
def test_a_field_stands_where_its_key_is_and_an_item_where_it_begins(
    steps: tuple[Step, ...], position: tuple[int, int]
) -> None:
    assert parse(TEXT).position(FieldPath(steps)) == Position(*position)


def test_what_is_not_in_the_file_is_placed_at_the_nearest_thing_around_it() -> None:
    document = parse(TEXT)
    assert document.position(FieldPath(("profiles", 0, "plugins", "score", "disabled"))).line == 6
    assert document.position(FieldPath(("profiles", 0, "pluginConfig", 3, "args"))).line == 4
    assert document.position(FieldPath(("extenders",))).line == 2  # where the mapping begins


def test_json_has_places_too() -> None:
    document = parse('{\n\t"parallelism": 8,\n\t"profiles": [\n\t\t{}\n\t]\n}')
    assert document.json
    assert document.value == {"parallelism": 8, "profiles": [{}]}
    assert document.position(FieldPath(("profiles",))).line == 3
    assert document.position(FieldPath(("profiles", 0))).line == 4


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("8", 8),
        ("-8", -8),
        ("+8", 8),
        ("010", 8),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("08", 8),
        ("16.0", 16),
        ("1e3", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        (".inf", ".inf"),
        ("y", True),
        ("Yes", True),
        ("on", True),
        ("n", False),
        ("OFF", False),
        ("true", True),
        ("tRue", "tRue"),
        ("~", None),
        ("null", None),
        ("", None),
        ('"8"', "8"),
        ("'y'", "y"),
        ("!!str 8", "8"),
        ('!!int "8"', 8),
        ("15s", "15s"),
        ("-", [None]),
    ],
)
def test_words_mean_what_they_mean_to_kube_scheduler(word: str, value: Any) -> None:
    got = parse(f"field:\n  {word}\n").value["field"]
    assert (got, type(got)) == (value, type(value))


def test_a_repeated_field_is_noted_and_the_last_one_wins() -> None:
    document = parse("a: 1\nb:\n  c: 1\n  c: 2\n  c: 3\na: 2\n")
    assert document.value == {"a": 2, "b": {"c": 3}}
    assert [(str(each.path), each.position.line, each.first_line) for each in document.repeated] == [
        ("b.c", 4, 3),
        ("b.c", 5, 3),
        ("a", 6, 1),
    ]


def test_aliases_and_merges_are_followed() -> None:
    document = parse("base: &b {p: 1, q: 2}\nmore: &m {r: 4}\nuse: {s: 9, <<: [*b, *m]}\nagain: *b\n")
    assert document.value["use"] == {"p": 1, "q": 2, "r": 4, "s": 9}
    assert document.value["again"] == {"p": 1, "q": 2}
    assert not document.repeated


def test_a_merged_field_given_again_counts_as_repeated_and_the_given_one_wins() -> None:
    document = parse("base: &b {p: 1, q: 2}\nuse:\n  <<: *b\n  p: 9\n")
    assert document.value["use"] == {"p": 9, "q": 2}
    assert [(str(each.path), each.position.line, each.first_line) for each in document.repeated] == [("use.p", 4, 3)]


def test_whole_numbers_with_a_fraction_stay_fractions_in_json_only() -> None:
    assert type(parse('{"a": 16.0}').value["a"]) is float
    assert type(parse("a: 16.0").value["a"]) is int


def test_only_the_first_document_is_read() -> None:
    document = parse("a: 1\n---\nb: 2\n")
    assert document.value == {"a": 1}
    assert document.second_document == 3


def test_an_empty_text_is_an_empty_document() -> None:
    assert parse("").value is None
    assert parse("# nothing\n").value is None


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: c: d\n", 2, "not valid YAML: mapping values are not allowed in this context"),
        ("a: [1\nb: 2\n", 2, "not valid YAML: did not find expected ',' or ']'"),
        ("a: 1\n\tb: 2\n", 2, "not valid YAML: found a tab character that violates indentation"),
        ("a: *nobody\n", 1, "not valid YAML: found undefined alias"),
        ("a: 1\nb: \x07\n", 2, "not valid YAML: control characters are not allowed"),
        ("a: 1\nb: !!int x\n", 2, "not valid YAML: cannot decode `x` as a !!int"),
        ("a: 1\n? [x]\n: 2\n", 2, "not valid YAML: a field name must be a plain word"),
        ("a: {<<: 3}\n", 1, "not valid YAML: map merge requires map or sequence of maps as the value"),
        ("a: &a\n  b: *a\n", 2, "an anchor contains itself"),
    ],
)
def test_what_is_not_yaml_gets_one_sentence_with_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(MalformedConfigError) as refused:
        parse(text)
    assert (refused.value.line, str(refused.value)) == (line, message)


def test_a_short_text_that_expands_without_end_is_refused() -> None:
    layers = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(MalformedConfigError, match="excessive aliasing"):
        parse("\n".join(layers))


def test_very_deep_nesting_is_refused_before_it_can_overflow_a_stack() -> None:
    assert parse("[" * MAX_DEPTH + "]" * MAX_DEPTH).value
    with pytest.raises(MalformedConfigError, match="nested more than 100 levels deep"):
        parse("[" * 200_000 + "]" * 200_000)
