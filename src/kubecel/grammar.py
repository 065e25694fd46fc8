"""Holds the grammar of CEL as states and the steps between them.

A rule is a small machine: a state has steps that take a token, run another rule, or take nothing. From the machine come
the tokens that may follow at a place, which is what an error lists as expected. The rules `relation`, `calc` and
`member`, left-recursive in CEL's definition, are loops here, with the precedence that an operator needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Final

from kubecel.tokens import EOF, KIND

END_OF_RULE: Final = -1
"""Stands in a set of tokens for the end of the rule."""


class Role(Enum):
    """What a state is in its rule; it decides how an error at the state is repaired."""

    PLAIN = "plain"
    BLOCK = "block"
    LOOP_ENTRY = "loop entry"
    LOOP_BLOCK = "loop block"
    LOOP_BACK = "loop back"
    PLUS_BLOCK = "plus block"
    PLUS_BACK = "plus back"
    STOP = "stop"


@dataclass(eq=False)
class RuleStep:
    """One way on from a state: over a token of a set, through a rule, or freely."""

    target: State
    tokens: frozenset[int] = frozenset()
    rule: str = ""
    label: str = ""
    precedence: int = 0
    alternative: str = ""


@dataclass(eq=False)
class State:
    """A place in a rule."""

    rule: str
    role: Role = Role.PLAIN
    decision: str = ""
    steps: list[RuleStep] = field(default_factory=list)


@dataclass(frozen=True)
class Take:
    """A token of a set."""

    names: str
    label: str = ""

    def build(self, at: State) -> State:
        kinds = frozenset(EOF if name == "EOF" else KIND[name] for name in self.names.split())
        after = State(at.rule)
        at.steps.append(RuleStep(after, tokens=kinds, label=self.label))
        return after


@dataclass(frozen=True)
class Run:
    """Another rule, with the least precedence of the operators it may take."""

    rule: str
    label: str = ""
    precedence: int = 0

    def build(self, at: State) -> State:
        after = State(at.rule)
        at.steps.append(RuleStep(after, rule=self.rule, label=self.label, precedence=self.precedence))
        return after


@dataclass(frozen=True)
class Sequence:
    """Parts one after another; `name` tells the alternative that they are."""

    parts: tuple[Part, ...]
    name: str = ""

    def build(self, at: State) -> State:
        for part in self.parts:
            at = part.build(at)
        return at


@dataclass(frozen=True)
class OneOf:
    """One of several sequences; `decision` names how it is chosen."""

    options: tuple[Sequence, ...]
    decision: str

    def build(self, at: State) -> State:
        block = _after(at, Role.BLOCK, self.decision)
        return self.fan_out(block)

    def fan_out(self, block: State) -> State:
        end = State(block.rule)
        for option in self.options:
            left = State(block.rule)
            block.steps.append(RuleStep(left, alternative=option.name))
            option.build(left).steps.append(RuleStep(end))
        return end


@dataclass(frozen=True)
class Maybe:
    """A part or nothing."""

    part: Part

    def build(self, at: State) -> State:
        block, end, left = _after(at, Role.BLOCK, "first token"), State(at.rule), State(at.rule)
        block.steps += [RuleStep(left), RuleStep(end)]
        self.part.build(left).steps.append(RuleStep(end))
        return end


@dataclass(frozen=True)
class Many:
    """A part any number of times; `decision` names how it is known that another one follows."""

    part: Part
    decision: str = "first token"

    def build(self, at: State) -> State:
        entry, back, end = _after(at, Role.LOOP_ENTRY, self.decision), State(at.rule, Role.LOOP_BACK), State(at.rule)
        choice = self.part if isinstance(self.part, OneOf) else None
        block = State(at.rule, Role.LOOP_BLOCK, choice.decision if choice else "")
        entry.steps += [RuleStep(block), RuleStep(end)]
        (choice.fan_out(block) if choice else self.part.build(block)).steps.append(RuleStep(back))
        back.steps.append(RuleStep(entry))
        return end


@dataclass(frozen=True)
class OneOrMore:
    """A part at least once."""

    part: Part
    decision: str = "first token"

    def build(self, at: State) -> State:
        block, end = _after(at, Role.PLUS_BLOCK, ""), State(at.rule)
        back = State(at.rule, Role.PLUS_BACK, self.decision)
        self.part.build(block).steps.append(RuleStep(back))
        back.steps += [RuleStep(block), RuleStep(end)]
        return end


Part = Take | Run | Sequence | OneOf | Maybe | Many | OneOrMore


def _after(at: State, role: Role, decision: str) -> State:
    state = State(at.rule, role, decision)
    at.steps.append(RuleStep(state))
    return state


def _in_order(*parts: Part, name: str = "") -> Sequence:
    return Sequence(parts, name)


_DOT: Final = Maybe(Take(".", "leading dot"))
_ARGUMENTS: Final = _in_order(Maybe(Run("exprList", "args")), Take(")"))
_COMMA: Final = Maybe(Take(","))

GRAMMAR: Final[dict[str, Part]] = {
    "start": _in_order(Run("expr", "e"), Take("EOF")),
    "expr": _in_order(
        Run("conditionalOr", "e"),
        Maybe(_in_order(Take("?", "op"), Run("conditionalOr", "e1"), Take(":"), Run("expr", "e2"))),
    ),
    "conditionalOr": _in_order(
        Run("conditionalAnd", "e"), Many(_in_order(Take("||", "ops"), Run("conditionalAnd", "e1")))
    ),
    "conditionalAnd": _in_order(Run("relation", "e"), Many(_in_order(Take("&&", "ops"), Run("relation", "e1")))),
    "relation": _in_order(
        Run("calc", "left"),
        Many(_in_order(Take("< <= >= > == != in", "op"), Run("relation", "right", 2)), "relation operator"),
    ),
    "calc": _in_order(
        Run("unary", "left"),
        Many(
            OneOf(
                (
                    _in_order(Take("* / %", "op"), Run("calc", "right", 3)),
                    _in_order(Take("+ -", "op"), Run("calc", "right", 2)),
                ),
                "first token",
            ),
            "calc operator",
        ),
    ),
    "unary": OneOf(
        (
            _in_order(Run("member", "member"), name="MemberExpr"),
            _in_order(OneOrMore(Take("!", "ops")), Run("member", "member"), name="LogicalNot"),
            _in_order(OneOrMore(Take("-", "ops"), "another minus"), Run("member", "member"), name="Negate"),
        ),
        "unary",
    ),
    "member": _in_order(
        Run("primary", "primary"),
        Many(
            OneOf(
                (
                    _in_order(Take(".", "op"), Maybe(Take("?", "opt")), Run("escapeIdent", "id"), name="Select"),
                    _in_order(Take(".", "op"), Take("IDENTIFIER", "id"), Take("(", "open"), _ARGUMENTS, name="Call"),
                    _in_order(Take("[", "op"), Maybe(Take("?", "opt")), Run("expr", "index"), Take("]"), name="Index"),
                ),
                "member",
            ),
            "first token",
        ),
    ),
    "primary": OneOf(
        (
            _in_order(_DOT, Take("IDENTIFIER", "id"), name="Ident"),
            _in_order(_DOT, Take("IDENTIFIER", "id"), Take("(", "op"), _ARGUMENTS, name="GlobalCall"),
            _in_order(Take("("), Run("expr", "e"), Take(")"), name="Nested"),
            _in_order(Take("[", "op"), Maybe(Run("listInit", "elems")), _COMMA, Take("]"), name="CreateList"),
            _in_order(
                Take("{", "op"), Maybe(Run("mapInitializerList", "entries")), _COMMA, Take("}"), name="CreateMap"
            ),
            _in_order(
                _DOT,
                Take("IDENTIFIER", "ids"),
                Many(_in_order(Take("."), Take("IDENTIFIER", "ids"))),
                Take("{", "op"),
                Maybe(Run("fieldInitializerList", "entries")),
                _COMMA,
                Take("}"),
                name="CreateMessage",
            ),
            _in_order(Run("literal", "literal"), name="Literal"),
        ),
        "primary",
    ),
    "exprList": _in_order(Run("expr", "e"), Many(_in_order(Take(","), Run("expr", "e")))),
    "listInit": _in_order(Run("optExpr", "e"), Many(_in_order(Take(","), Run("optExpr", "e")), "after comma")),
    "fieldInitializerList": _in_order(
        Run("optField", "fields"),
        Take(":", "cols"),
        Run("expr", "values"),
        Many(_in_order(Take(","), Run("optField", "fields"), Take(":", "cols"), Run("expr", "values")), "after comma"),
    ),
    "optField": _in_order(Maybe(Take("?", "opt")), Run("escapeIdent", "id")),
    "mapInitializerList": _in_order(
        Run("optExpr", "keys"),
        Take(":", "cols"),
        Run("expr", "values"),
        Many(_in_order(Take(","), Run("optExpr", "keys"), Take(":", "cols"), Run("expr", "values")), "after comma"),
    ),
    "escapeIdent": OneOf(
        (_in_order(Take("IDENTIFIER", "id"), name="Simple"), _in_order(Take("ESC_IDENTIFIER", "id"), name="Escaped")),
        "first token",
    ),
    "optExpr": _in_order(Maybe(Take("?", "opt")), Run("expr", "e")),
    "literal": OneOf(
        (
            _in_order(Maybe(Take("-", "sign")), Take("NUM_INT", "tok"), name="Int"),
            _in_order(Take("NUM_UINT", "tok"), name="Uint"),
            _in_order(Maybe(Take("-", "sign")), Take("NUM_FLOAT", "tok"), name="Double"),
            _in_order(Take("STRING", "tok"), name="String"),
            _in_order(Take("BYTES", "tok"), name="Bytes"),
            _in_order(Take("true", "tok"), name="True"),
            _in_order(Take("false", "tok"), name="False"),
            _in_order(Take("null", "tok"), name="Null"),
        ),
        "literal",
    ),
}


def _build(name: str, part: Part) -> State:
    start = State(name)
    part.build(start).steps.append(RuleStep(State(name, Role.STOP)))
    return start


RULES: Final = {name: _build(name, part) for name, part in GRAMMAR.items()}
"""The first state of each rule."""


@cache
def next_tokens(state: State) -> frozenset[int]:
    """The tokens that may come next inside the rule; with END_OF_RULE where the rule may end."""
    found: set[int] = set()
    seen: set[State] = set()
    left = [state]
    while left:
        at = left.pop()
        if at in seen:
            continue
        seen.add(at)
        if at.role is Role.STOP:
            found.add(END_OF_RULE)
        for step in at.steps:
            if step.tokens:
                found |= step.tokens
            elif step.rule:
                first = next_tokens(RULES[step.rule])
                found |= first - {END_OF_RULE}
                if END_OF_RULE in first:
                    left.append(step.target)
            else:
                left.append(step.target)
    return frozenset(found)
