"""Shapes `--help`: commands in groups with whole summaries, arguments as one types them, ranges in words.

Every command and every group of commands is made here, so that all look the same. What packages bring stands in their
records with its heading and its summary, so that `podium --help` loads no command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Final, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from podium import packages
from podium.packages import CommandEntry

F = TypeVar("F", bound=Callable[..., Any])


class Heading(StrEnum):
    """What commands are grouped under, in this order."""

    TRY = "Try it on this machine"
    CLUSTER = "Run on a cluster"
    PLUGINS = "Write plugins"
    LEARN = "Learned scores"
    MEASURE = "Measure and test"
    HELP = "Help"
    ADDED = "From other packages"
    OTHERS = "Commands"


_TYPE: Final = re.compile(r"<([^<>]+)>")
_NUMBERS: Final = {"int": "N", "int range": "N", "list[int]": "N", "float": "X", "float range": "X"}
_RANGE: Final = re.compile(r"(-?[\d.]+)<=?x<=?([\d.]+)")
_LEAST: Final = re.compile(r"x>=(-?[\d.]+)")
_SENTENCE: Final = re.compile(r"(.*?)\.(?=\s|$)", re.DOTALL)


class PodiumCommand(TyperCommand):
    """One command."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [str(self.options_metavar), *_usage(self, ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self, ctx, formatter)


class CommandGroup(TyperGroup):
    """A command that has others."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [str(self.options_metavar), *_usage(self, ctx), self.subcommand_metavar]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command; one that another package adds to this group is loaded now."""
        if cmd_name not in self.commands:
            entry = _added_to(self, ctx).get(cmd_name)
            if entry is not None:
                self.commands[cmd_name] = command_of(entry)
        return self.commands.get(cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(dict.fromkeys([*_added_to(self, ctx), *self.commands]))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first word names; where it names none, all are loaded for the one that was meant."""
        if args and args[0] not in self.list_commands(ctx):
            self.all_commands(ctx)
        return super().resolve_command(ctx, args)

    def all_commands(self, ctx: Any) -> dict[str, Any]:
        """Every command by name, loaded."""
        return {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in Heading}
        added = _added_to(self, ctx)
        for name, entry in added.items():
            groups[Heading[entry.heading or "ADDED"]].append((name, entry.summary))
        for name, command in self.commands.items():
            if not command.hidden and name not in added:
                groups[Heading.OTHERS].append((name, summary(command)))
        width = max((len(name) for rows in groups.values() for name, _summary in rows), default=0)
        for heading, rows in groups.items():
            if not rows:
                continue
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


class Commands(typer.Typer):
    """Collects commands of these classes; `name` and `help` are those of the command that has them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=CommandGroup, rich_markup_mode=None, **settings)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = PodiumCommand, **settings: Any
    ) -> Callable[[F], F]:
        return super().command(name, cls=cls, **settings)


def _added_to(group: CommandGroup, ctx: Any) -> dict[str, CommandEntry]:
    """The commands that packages add to a group, by name: of `podium`, all that have one word."""
    above = [] if ctx is None else _words(ctx)
    return {words[-1]: entry for entry in packages.commands() if (words := entry.words.split())[:-1] == above}


def _words(ctx: Any) -> list[str]:
    """What is typed after `podium` for the group of this context."""
    return [] if ctx.parent is None else [*_words(ctx.parent), ctx.info_name]


def command_of(entry: CommandEntry) -> Any:
    """The command that is at an entry's target: a function, or a group of commands."""
    name, target = entry.words.rpartition(" ")[-1], packages.load(entry.target)
    if isinstance(target, typer.Typer):
        group = typer.main.get_group(target)
        group.name = name
        return group
    alone = Commands(name=name, add_completion=False)
    alone.command(name, cls=getattr(target, "command_class", PodiumCommand))(target)
    return typer.main.get_command(alone)


def summary(command: Any) -> str:
    """The first sentence of a command's help."""
    text = " ".join((command.help or "").strip().partition("\n\n")[0].split())
    found = _SENTENCE.match(text)
    return found[1] if found else text


def parameters(command: Any, ctx: Any) -> Iterator[tuple[Any, str, str]]:
    """Each argument and option, with how it is written and what it means."""
    for each in command.get_params(ctx):
        record = each.get_help_record(ctx)
        if record is not None:
            written, meaning = record
            if each.param_type_name == "argument":
                written = _written(each)
            yield each, _TYPE.sub(lambda found: _NUMBERS.get(found[1], found[1]), written), _in_words(meaning)


def _in_words(meaning: str) -> str:
    """
    >>> _in_words("How many.  [default: 12; 0<=x<=100]"), _in_words("How many.  [x>=1]")
    ('How many.  [default: 12; 0 to 100]', 'How many.  [at least 1]')
    """
    return _LEAST.sub(r"at least \1", _RANGE.sub(r"\1 to \2", meaning))


def _usage(command: Any, ctx: Any) -> list[str]:
    arguments = [each for each in command.get_params(ctx) if each.param_type_name == "argument"]
    return [_written(each) if each.required else f"[{_written(each)}]" for each in arguments]


def _written(argument: Any) -> str:
    name = argument.metavar or argument.name
    return f"{name}..." if argument.nargs != 1 else str(name)


def _write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for each, written, meaning in parameters(command, ctx):
        rows["Arguments" if each.param_type_name == "argument" else "Options"].append((written, meaning))
    for heading, found in rows.items():
        if found:
            with formatter.section(heading):
                formatter.write_dl(found)
