"""Reading JSON and YAML from outside: what ordinary documents mean, and that no text or stream is too much."""

import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.kube.bounds import MAX_DEPTH, nested_too_deeply
from podium.kube.documents import (
    BODY,
    FILE,
    SETTINGS,
    Bounds,
    DocumentError,
    read_documents,
    read_file,
    read_json,
    read_stream,
    read_yaml,
)

MEMORY_LIMIT = 2 << 30

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
SMALL = Bounds(size=1 << 20, values=100, seconds=1.0)


def _values(words: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | NUMBERS | words,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
        max_leaves=30,
    )


VALUES = _values(WORDS)


def bomb(layers: int = 9, scalar: str = "x") -> str:
    """Less than 500 bytes that stand for 10 ** layers values."""
    lines = [f"a0: &a0 [{', '.join([scalar] * 10)}]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, layers)]
    return "\n".join(lines)


DEEP = "[" * 100_000
HOSTILE = {
    "aliases of aliases": bomb(),
    "an alias bomb in flow style": "{" + bomb().replace("\n", ", ") + "}",
    "a long text aliased often": f"a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 900)}]",
    "merges of merges": "a0: &a0 {k: 1}\n"
    + "\n".join(f"a{i}: &a{i} {{<<: [{','.join([f'*a{i - 1}'] * 20)}], k{i}: 1}}" for i in range(1, 12)),
    "lists in lists": DEEP,
    "maps in maps": '{"a":' * 100_000,
    "maps in maps in YAML": "{a: " * 100_000,
    "block lists in block lists": "- " * 100_000,
    "keys that are keys": "? " * 100_000,
    "indentation": "\n".join(" " * i + "a:" for i in range(2000)),
    "depth through aliases": "a0: &a0 []\n" + "\n".join(f"a{i}: &a{i} [[[[*a{i - 1}]]]]" for i in range(1, 200)),
    "an anchor that contains itself": "a: &a [*a]",
    "a merge of itself": "&a {<<: *a}",
    "directives": "".join(f"%TAG !a{i}! x\n" for i in range(100_000)) + "--- a",
    "many values": "[" + "1," * 200_000 + "1]",
    "many documents": "---\n" * 100_000,
}  # fmt: skip


READ_EACH = f"""
import io, json, os, resource, sys, traceback
from podium.kube.documents import *
from podium.kube import DecodeError, decode_documents

def read_in_all_ways(text):
    resource.setrlimit(resource.RLIMIT_AS, ({MEMORY_LIMIT}, {MEMORY_LIMIT}))
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    for read in (read_json, read_yaml, lambda text: list(read_documents(text, bounds=BODY)),
                 lambda text: decode_documents(text, 'f')):
        try:
            read(text)
        except (DocumentError, DecodeError) as error:
            print(error)

for name, text in json.load(sys.stdin).items():
    print(json.dumps(name), flush=True)
    if not (child := os.fork()):
        try:
            read_in_all_ways(text.encode())
        except BaseException:
            traceback.print_exc(file=sys.stdout)
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]), flush=True)
"""
"""Reads each text in a process of its own, for 30 s of CPU at most: its name, what is said of it, its exit code."""


def test_hostile_texts_are_refused_or_read_within_memory_and_time() -> None:
    command = [sys.executable, "-c", READ_EACH]
    ran = subprocess.run(command, input=json.dumps(HOSTILE), capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    parts = re.findall(r'^("[^"]*")\n(.*?)^\[(-?\d+)\]$', ran.stdout, re.MULTILINE | re.DOTALL)
    assert [json.loads(name) for name, _said, _code in parts] == list(HOSTILE)
    assert {name: said[-2000:] for name, said, code in parts if code != "0" or not said} == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (bomb(), "document contains excessive aliasing"),
        (HOSTILE["a long text aliased often"], "larger than 3 MiB once its aliases are expanded"),
        (HOSTILE["merges of merges"], "document contains excessive aliasing"),
        (HOSTILE["depth through aliases"], "nested more than 100 levels deep"),
        (HOSTILE["directives"], "more than 100 %TAG directives"),
        ("a: &a [*a]", "an anchor contains itself"),
        ("&a {<<: *a}", "an anchor contains itself"),
        (DEEP, "nested more than 100 levels deep"),
        ("- " * 101 + "a", "nested more than 100 levels deep"),
        ("x" * (BODY.size + 1), "larger than 3 MiB"),
        ("a: 1\nb: [\n", "did not find expected node content"),
        ("a: *b", "found undefined alias"),
        ("a: 1\nb: \x07", "control characters are not allowed"),
        ("a: !!int x", "cannot decode `x` as a !!int"),
        ("a: !!binary '%'", "!!binary does not hold text in base64"),
        ("? [x]\n: 2", "a field name must be a plain word"),
    ],
)
def test_what_is_wrong_with_yaml_is_said_in_a_few_words(text: str, problem: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_yaml(text)
    assert refused.value.problem.startswith(problem)


def test_values_are_counted() -> None:
    with pytest.raises(DocumentError, match=r"^2: holds more than 1,000 values$"):
        read_yaml("a:\n" + "  [" + "1," * 2000 + "1]", bounds=BODY._replace(values=1000))


def test_reading_takes_no_longer_than_its_bound() -> None:
    with pytest.raises(DocumentError, match=r"took more than 0\.01 s to read"):
        read_yaml("- a\n" * 100_000, bounds=BODY._replace(seconds=0.01))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b'{"a": 1,\n "b": }', "f.json:2: the JSON is broken: invalid character"),
        (b'{"a": 1', "f.json:1: the JSON is broken: it ends too early"),
        (b"", "f.json:1: the JSON is broken: it ends too early"),
        (b"{}\nx", "f.json:2: the JSON is broken: trailing characters"),
        (b'{\n"a": "\xff"}', "f.json:2: not UTF-8 text"),
        (b"NaN", "f.json:1: the JSON is broken: invalid character"),
        (b"1e999", "f.json:1: the JSON is broken: number out of range"),
        (b"9" * 5000, "f.json:1: the JSON is broken: integer value out of range"),
        (b"[" * 101, "f.json: nested more than 100 levels deep"),
        (b'{"a":' * 100_000, "f.json: nested more than 100 levels deep"),
        (b" " * (BODY.size + 1), "f.json: larger than 3 MiB"),
    ],
)
def test_what_is_wrong_with_json_is_said_with_file_and_line(data: bytes, sentence: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_json(data, "f.json")
    assert str(refused.value) == sentence


def test_text_that_is_not_utf_8_is_refused_with_its_line() -> None:
    for read in (read_yaml, lambda data, source: list(read_documents(data, source))):
        with pytest.raises(DocumentError, match=r"^f:3: not UTF-8 text$"):
            read(b"a: 1\nb: 2\nc: \xff\n", "f")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{apiVersion: v1, kind: Pod}", {"apiVersion": "v1", "kind": "Pod"}),
        ('{"apiVersion": v1, kind: [a, "b", {c: d}],}', {"apiVersion": "v1", "kind": ["a", "b", {"c": "d"}]}),
        ("metadata:\t{name:\tx,\n\tlabels: {a: b}}\n", {"metadata": {"name": "x", "labels": {"a": "b"}}}),
        ("# a comment\n--- # another\na: b # and one more\n", {"a": "b"}),
        ("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n", {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}}),
        ("a: {<<: [{b: 1}, {b: 2, c: 3}], c: 4}", {"a": {"b": 1, "c": 4}}),
        ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", {"a": "x\ny\n", "b": "x y"}),
        ("a: 2026-01-31T12:00:00Z\nb: 12:30\nc: 0x10\nd: 010\ne: 1e3\nf: 1_000\n", None),
        ("y: y\nn: off\n~: x\n8: y\n1.5: z\n", {"true": True, "false": False, "~": "x", "8": True, "1.5": "z"}),
        ("a: 18446744073709551615\nb: 18446744073709551616\n", {"a": 2**64 - 1, "b": 2.0**64}),
        ("a: " + "9" * 5000, {"a": "9" * 5000}),
        ("a: 1e999\nb: .inf\nc: -.INF\n", {"a": "1e999", "b": ".inf", "c": "-.INF"}),
        ("a: !!str 8\nb: !!binary aGk=\nc: !!float 2\n", {"a": "8", "b": "hi", "c": 2}),
        ("a: 1\na: 2\n", {"a": 2}),
        ("", None),
        ("# nothing\n", None),
        ("a\n---\nb\n", "a"),
        ("\ufeffa: b", {"a": "b"}),
    ],
)
def test_yaml_means_what_it_means_to_kubectl(text: str, value: Any) -> None:
    if "12:30" in text:
        value = {"a": "2026-01-31T12:00:00Z", "b": "12:30", "c": 16, "d": 8, "e": 1000, "f": 1000}
    assert read_yaml(text) == value
    assert read_yaml(text.encode()) == value


@settings(deadline=None)
@given(VALUES)
def test_yaml_round_trips(value: Any) -> None:
    assert _same(read_yaml(yaml.safe_dump(value, default_style='"', allow_unicode=True)), value)


@settings(deadline=None)
@given(_values(WORDS.filter(lambda word: not re.match(r"[-+.\d]|[yYnN]$", word))))
def test_yaml_agrees_with_pyyaml_where_that_agrees_with_kubectl(value: Any) -> None:
    for flow in (True, False, None):
        text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
        assert _same(read_yaml(text), yaml.safe_load(text)), text


@settings(deadline=None)
@given(VALUES)
def test_json_round_trips_in_all_readers(value: Any) -> None:
    text = json.dumps(value)
    assert read_json(text) == value == read_json(text.encode())
    within = json.dumps({"a": value})
    assert read_yaml(within) == {"a": value}
    assert [json.loads(each.data) for each in read_documents(within)] == [{"a": value}]


@settings(deadline=None)
@given(st.binary(max_size=200) | st.text("[]{}\"\\,:&*a!-? \n\t#|>%'0", max_size=60).map(str.encode))
def test_any_bytes_give_a_value_or_a_document_error(data: bytes) -> None:
    for read in (read_json, read_yaml, lambda data: list(read_documents(data, "f"))):
        try:
            read(data)
        except DocumentError as error:
            assert error.problem


def test_values_of_aliases_are_not_shared() -> None:
    value = read_yaml("a: &x {b: [1]}\nc: *x")
    value["a"]["b"].append(2)
    assert value["c"] == {"b": [1]}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('{"a": 1}\n{"a": 2} {"a": 3}', [{"a": 1}, {"a": 2}, {"a": 3}]),
        ('{"a": 1}\n---\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ("a: 1\n---\n---\n# none\n---\n{a: 2}\n", [{"a": 1}, {"a": 2}]),
        ("{a: 1}", [{"a": 1}]),
        ("", []),
    ],
)
def test_all_documents_of_a_file_are_read(text: str, values: list[Any]) -> None:
    assert [msgspec.json.decode(each.data) for each in read_documents(text)] == values


def test_the_fault_of_broken_json_is_the_one_that_json_has() -> None:
    with pytest.raises(DocumentError, match=r"^f:2: the JSON is broken: expecting value$"):
        list(read_documents('{"a": 1,\n"b": ]}', "f"))


def test_a_document_knows_the_lines_of_its_fields() -> None:
    for text in ("a:\n- b: 1\n  c: 2\n", '{"a": [\n{"b": 1,\n"c": 2}]}'):
        (document,) = read_documents(text)
        assert document.line_of("$.a[0].c") == 3
        assert document.line_of("$.a[0].d") == 2


@pytest.mark.parametrize("bounds", [BODY, FILE, SETTINGS])
def test_the_deepest_document_that_is_allowed_can_be_read_and_written(bounds: Bounds) -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read_json(text, bounds=bounds) == read_yaml(text, bounds=bounds)
    assert json.dumps(read_json(text)) == text


@pytest.mark.parametrize(
    ("text", "deeper"),
    [
        (b"[" * 100, False),
        (b"[" * 101, True),
        (b"{" * 50 + b"[" * 51, True),
        (b"[]" * 500, False),
        (b'["' + b"[" * 200 + b'"]', False),
        (b'["' + b"]" * 200 + b'",' + b"[" * 100, True),
        (b'["\\"' + b"[" * 200 + b'"]', False),
        (b'["\\\\",' + b"[" * 200, True),
        (b'["\\\\\\"' + b"[" * 200 + b'"]', False),
        (b'["a","b","' + b"{" * 200 + b'"]', False),
        (b'["' + b"[" * 200, False),
        (b'"' * 3 + b"[" * 200, False),
    ],
)
def test_depth_is_counted_in_raw_bytes_outside_strings(text: bytes, deeper: bool) -> None:
    assert nested_too_deeply(text) is deeper


@settings(deadline=None)
@given(st.text('[]{}"\\ a', max_size=40))
def test_depth_in_raw_bytes_is_what_reading_along_gives(text: str) -> None:
    deepest, is_json_so_far = _deepest(text)
    if deepest > 2 or is_json_so_far:
        assert nested_too_deeply(text.encode(), limit=2) is (deepest > 2)


def _deepest(text: str) -> tuple[int, bool]:
    """The levels up to a backslash outside of strings, which no decoder reads past; whether there was none."""
    deepest = depth = 0
    inside = escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\":
            if not inside:
                return deepest, False
            escaped = True
        elif character == '"':
            inside = not inside
        elif not inside and character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif not inside and character in "]}":
            depth -= 1
    return deepest, True


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: 16.0 in YAML is the whole number 16, and a field's name is text."""
    if isinstance(left, dict) and isinstance(right, dict):
        named = {_name(key): value for key, value in right.items()}
        return left.keys() == named.keys() and all(_same(value, named[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return math.isclose(left, right, rel_tol=0, abs_tol=0)
    return type(left) is type(right) and bool(left == right)


def _name(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"^/dev/zero: larger than 1 MiB$"):
        read_file(Path("/dev/zero"), SMALL)


def test_what_is_within_the_bounds_is_read_in_full() -> None:
    content = b"x" * SMALL.size
    assert read_stream(io.BytesIO(content), "here", SMALL) == content
    with pytest.raises(DocumentError, match=r"^here: larger"):
        read_stream(io.BytesIO(content + b"x"), "here", SMALL)
