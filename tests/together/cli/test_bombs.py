"""Small files that would exhaust memory or crash the process end in one sentence, in every command that reads files."""

from pathlib import Path

import pytest

from tools.kit.forked import forked

ROOT = Path(__file__).parents[3]
MEMORY = 4_000_000_000
"""Bytes of address space; the bombs below stand for many times as much."""
SECONDS = 120.0

BOMBS = {
    "aliases": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "merged aliases": "a: &a {k1: 1, k2: 2}\n"
    + "".join(
        f"{new}: &{new} {{<<: [{','.join([f'*{old}'] * 40)}]}}\n" for old, new in zip("abcd", "bcde", strict=True)
    )
    + "i: ["
    + ",".join(["*e"] * 9)
    + "]\n",
    "brackets": "[" * 100_000,
    "braces": '{"a":' * 100_000,
    "deep JSON": '{"apiVersion": "v1", "kind": "Pod", "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "indentation": "".join(f"{' ' * depth}a:\n" for depth in range(2000)),
    "no UTF-8": "a: \udcff\udcfe",
}
COMMANDS = {
    "explain --from": ("explain", "default/web", "--from", "BOMB"),
    "explain -f": ("explain", "--from", "sample:cluster", "-f", "BOMB"),
    "explain --config": ("explain", "shop/web-4", "--from", "sample:cluster", "--config", "BOMB"),
    "--kubeconfig": ("explain", "default/web", "--kubeconfig", "BOMB"),
    "up --workload": ("up", "--port", "0", "--workload", "BOMB"),
    "check": ("check", "BOMB"),
    "bench --compare": ("bench", "scheduler-perf", "--workload", "SchedulingBasic", "--compare", "BOMB"),
    "shadow report": ("shadow", "report", "BOMB"),
    "telemetry --from": ("telemetry", "show", "--from", "BOMB"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_bomb_is_refused_in_one_sentence(command: tuple[str, ...], tmp_path: Path) -> None:
    for name, text in BOMBS.items():
        file = tmp_path / f"{name.replace(' ', '-')}.yaml"
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        words = (str(file) if word == "BOMB" else word for word in command)
        ran = forked(*words, cwd=ROOT, memory=MEMORY, timeout=SECONDS)
        assert ran.returncode == 2, (name, ran.returncode, ran.stderr[-2000:])
        assert "Traceback" not in ran.stderr, (name, ran.stderr)
        assert len((ran.stdout + ran.stderr).splitlines()) == 1, (name, ran)
