"""Parses the text of an expression into a tree of the grammar's rules, and repairs errors as ANTLR's parsers do.

kube-apiserver answers a wrong expression with the words of the parser that ANTLR made for cel-go, so the words, the
places and the errors that follow from a repair have to come out the same. The repairs are ANTLR's: leave out one token
where the next one fits, act as if one missing token were there, else give up the rule and skip to a token that can
follow it. Rules are kept on a stack of our own, since an expression may nest deeper than Python's calls.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from kubecel.grammar import END_OF_RULE, RULES, Role, State, next_tokens
from kubecel.source import NOWHERE, SourceText
from kubecel.tokens import EOF, KIND, NAMES, Token, split

MOST_NESTED: Final = 250
"""How often a rule may be open at once; cel-go's limit."""
_MOST_REPAIRS: Final = 30
_MOST_SKIPPED: Final = 256
_MOST_REPORTS: Final = 100
_WRAPS: Final = {"relation": Role.LOOP_ENTRY, "calc": Role.LOOP_BLOCK, "member": Role.LOOP_BLOCK}
"""Where, in a left-recursive rule, what was found so far becomes the left operand of more."""
_OPERATORS: Final = {"relation": 1, "calc": 2, "member": 3}
_CONSTANT_AS_NAME: Final = re.compile(r"no viable alternative at input '.(true|false|null)'")
_RELATION_OPERATORS: Final = frozenset(KIND[name] for name in ["<", "<=", ">=", ">", "==", "!=", "in"])
_PRODUCTS: Final = frozenset(KIND[name] for name in "*/%")
_SUMS: Final = frozenset(KIND[name] for name in "+-")


@dataclass(eq=False)
class Tree:
    """A rule as it was found in the text: its parts by label, in order."""

    rule: str
    start: Token
    alternative: str = ""
    parts: dict[str, list[Token | Tree]] = field(default_factory=dict)
    follow: State | None = None
    label: str = ""
    precedence: int = 0
    parent: Tree | None = None

    def add(self, label: str, part: Token | Tree) -> None:
        if label:
            self.parts.setdefault(label, []).append(part)

    def token(self, label: str) -> Token | None:
        found = self.parts.get(label)
        return found[0] if found and isinstance(found[0], Token) else None

    def tokens(self, label: str) -> list[Token]:
        return [part for part in self.parts.get(label, ()) if isinstance(part, Token)]

    def tree(self, label: str) -> Tree | None:
        found = self.parts.get(label)
        return found[0] if found and isinstance(found[0], Tree) else None

    def trees(self, label: str) -> list[Tree]:
        return [part for part in self.parts.get(label, ()) if isinstance(part, Tree)]


class _MismatchError(Exception):
    """A token that fits nothing expected."""


class _NoWayOnError(Exception):
    """A token at which no alternative of a rule is left."""

    def __init__(self, token: Token) -> None:
        self.token = token


class _GivenUpError(Exception):
    """An expression too broken, or too deep, to go on with."""


def parse(source: SourceText) -> Tree | None:
    """The tree of the whole expression; what is wrong is reported to the source. None where parsing was given up."""
    parser = _Parser(source)
    try:
        return parser.run()
    except _GivenUpError:
        return None


class _Parser:
    """The state of one parse: the token it is at, the rule it is in, and what it repairs."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._tokens = split(source)
        self._reports = len(source.problems)
        self._at = 0
        self._depth: Counter[str] = Counter()
        self._repairing = False
        self._repairs = 0
        self._last_repair: tuple[int, set[State]] = (-1, set())
        self._tree = Tree("start", self._tokens[0])
        self._state = RULES["start"]

    def run(self) -> Tree:
        self._enter("start")
        while True:
            state = self._state
            try:
                if state.role is Role.STOP:
                    if self._tree.parent is None:
                        return self._tree
                    self._leave()
                else:
                    self._go_on(state)
            except (_MismatchError, _NoWayOnError) as error:
                self._report_error(error)
                self._recover()
                if self._tree.parent is None:
                    return self._tree
                self._leave()

    def _go_on(self, state: State) -> None:
        if state.decision or len(state.steps) > 1 or state.role is Role.PLUS_BLOCK:
            self._sync(state)
            if len(state.steps) > 1:
                chosen = self._choose(state)
                self._take_branch(state, chosen)
                return
        step = state.steps[0]
        if step.tokens:
            token = self._match(state, step.tokens)
            self._tree.add(step.label, token)
            self._state = step.target
        elif step.rule:
            parent = self._tree
            self._tree = Tree(step.rule, self._peek(1), follow=step.target, label=step.label, parent=parent)
            self._tree.precedence = step.precedence
            self._enter(step.rule)
            self._state = RULES[step.rule]
        elif step.target.role is Role.LOOP_BACK:
            self._loop_back(step.target)
        else:
            self._state = step.target

    def _loop_back(self, back: State) -> None:
        """After one round of a loop: check what comes, and decide on another round without a second check."""
        self._state = back
        self._sync(back)
        entry = back.steps[0].target
        self._state = entry
        self._take_branch(entry, self._choose(entry))

    def _take_branch(self, state: State, chosen: int) -> None:
        step = state.steps[chosen]
        if _WRAPS.get(state.rule) is state.role and chosen < _OPERATORS[state.rule]:
            self._wrap()
        if step.alternative:
            self._tree.alternative = step.alternative
        self._state = step.target

    def _wrap(self) -> None:
        """What was found so far becomes the left side of a new tree of the same rule."""
        inner = self._tree
        outer = Tree(inner.rule, inner.start, follow=inner.follow, label=inner.label, parent=inner.parent)
        outer.precedence = inner.precedence
        outer.add("operand", inner)
        self._tree = outer

    def _enter(self, rule: str) -> None:
        self._depth[rule] += 1
        if self._depth[rule] > MOST_NESTED:
            self._source.report(NOWHERE, f"expression recursion limit exceeded: {MOST_NESTED}")
            raise _GivenUpError

    def _leave(self) -> None:
        done = self._tree
        self._depth[done.rule] -= 1
        assert done.parent is not None
        assert done.follow is not None
        done.parent.add(done.label, done)
        self._tree, self._state = done.parent, done.follow

    def _peek(self, ahead: int) -> Token:
        return self._tokens[min(self._at + ahead - 1, len(self._tokens) - 1)]

    def _kind(self, ahead: int) -> int:
        return self._peek(ahead).kind

    def _consume(self) -> Token:
        token = self._peek(1)
        if token.kind != EOF:
            self._at += 1
        return token

    def _match(self, state: State, kinds: frozenset[int]) -> Token:
        if self._kind(1) in kinds:
            self._end_repair()
            return self._consume()
        self._count_repair()
        if self._leave_out_token(state):
            return self._consume()
        following = next_tokens(state.steps[0].target)
        if self._kind(1) in self._with_context(following):
            self._report_missing(state)
            return self._missing_token(state)
        raise _MismatchError

    def _choose(self, state: State) -> int:
        """Which step to take; an exception where none is left after the tokens ahead."""
        kind = self._kind(1)
        match state.decision:
            case "relation operator":
                return 0 if kind in _RELATION_OPERATORS and self._tree.precedence <= 1 else 1
            case "calc operator":
                product = kind in _PRODUCTS and self._tree.precedence <= 2
                return 0 if product or (kind in _SUMS and self._tree.precedence <= 1) else 1
            case "after comma":
                body = state.steps[0].target.steps[0].target
                return 0 if kind == KIND[","] and self._kind(2) in next_tokens(body) else 1
            case "unary":
                return self._choose_unary(kind)
            case "another minus":
                return self._choose_another_minus(kind)
            case "member":
                return self._choose_member(kind)
            case "primary":
                return self._choose_primary(kind)
            case "literal" if kind == KIND["-"]:
                return self._choose_negative()
        for number, step in enumerate(state.steps):
            tokens = next_tokens(step.target)
            if kind in tokens:
                return number
        if state.role is Role.BLOCK and state.rule == "escapeIdent":
            raise _NoWayOnError(self._peek(1))
        return len(state.steps) - 1

    def _choose_unary(self, kind: int) -> int:
        if kind == KIND["!"]:
            return 1
        if kind != KIND["-"]:
            return 0
        following = self._kind(2)
        if following in (KIND["NUM_INT"], KIND["NUM_FLOAT"]):
            return 0
        if following == KIND["-"] or following in next_tokens(RULES["member"]):
            return 2
        raise _NoWayOnError(self._peek(2))

    def _choose_another_minus(self, kind: int) -> int:
        if kind != KIND["-"]:
            return 1
        if self._kind(2) in next_tokens(RULES["member"]):
            return 0
        raise _NoWayOnError(self._peek(2))

    def _choose_negative(self) -> int:
        chosen = {KIND["NUM_INT"]: 0, KIND["NUM_FLOAT"]: 2}.get(self._kind(2))
        if chosen is None:
            raise _NoWayOnError(self._peek(2))
        return chosen

    def _choose_member(self, kind: int) -> int:
        if kind == KIND["["]:
            return 2
        following = self._kind(2)
        if following == KIND["IDENTIFIER"]:
            return 1 if self._kind(3) == KIND["("] else 0
        if following in (KIND["?"], KIND["ESC_IDENTIFIER"]):
            return 0
        raise _NoWayOnError(self._peek(2))

    def _choose_primary(self, kind: int) -> int:
        fixed = {KIND["("]: 2, KIND["["]: 3, KIND["{"]: 4}
        if kind in fixed:
            return fixed[kind]
        ahead = 1
        if kind == KIND["."]:
            ahead = 2
            if self._kind(2) != KIND["IDENTIFIER"]:
                raise _NoWayOnError(self._peek(2))
        if self._kind(ahead) != KIND["IDENTIFIER"]:
            return 6
        if self._kind(ahead + 1) == KIND["("]:
            return 1
        while self._kind(ahead + 1) == KIND["."] and self._kind(ahead + 2) == KIND["IDENTIFIER"]:
            ahead += 2
        return 5 if self._kind(ahead + 1) == KIND["{"] else 0

    def _sync(self, state: State) -> None:
        """Check that the next token can go on from a place where the rule decides."""
        if self._repairing:
            return
        expected = next_tokens(state)
        if END_OF_RULE in expected or self._kind(1) in expected:
            return
        if state.role in (Role.PLUS_BACK, Role.LOOP_BACK):
            self._report_unwanted(state)
            self._skip_to(self._expected(state) | self._recovery_tokens())
        elif not self._leave_out_token(state):
            raise _MismatchError

    def _leave_out_token(self, state: State) -> bool:
        if self._kind(2) not in self._expected(state):
            return False
        self._report_unwanted(state)
        self._consume()
        self._end_repair()
        return True

    def _missing_token(self, state: State) -> Token:
        expected = min(self._expected(state))
        near = self._peek(1)
        if near.kind == EOF and self._at > 0:
            near = self._tokens[self._at - 1]
        quoted = NAMES[expected] if NAMES[expected].startswith("'") else "undefined"
        return Token(expected, f"<missing {'EOF' if expected == EOF else quoted}>", near.start)

    def _expected(self, state: State) -> frozenset[int]:
        return self._with_context(next_tokens(state))

    def _with_context(self, tokens: frozenset[int]) -> frozenset[int]:
        """The tokens; where the rule may end, those that may follow the rules it stands in as well."""
        found = set(tokens)
        tree: Tree | None = self._tree
        while END_OF_RULE in tokens and tree is not None and tree.follow is not None:
            tokens = next_tokens(tree.follow)
            found |= tokens
            tree = tree.parent
        found.discard(END_OF_RULE)
        if END_OF_RULE in tokens:
            found.add(EOF)
        return frozenset(found)

    def _recovery_tokens(self) -> frozenset[int]:
        """Tokens that may follow one of the open rules."""
        found: set[int] = set()
        tree: Tree | None = self._tree
        while tree is not None and tree.follow is not None:
            found |= next_tokens(tree.follow)
            tree = tree.parent
        return frozenset(found - {END_OF_RULE})

    def _recover(self) -> None:
        self._count_repair()
        index, states = self._last_repair
        skipped = 0
        if index == self._at and self._state in states:
            self._consume()
            skipped = 1
        states.add(self._state)
        self._last_repair = (self._at, states)
        self._skip_to(self._recovery_tokens(), skipped)

    def _skip_to(self, tokens: frozenset[int], skipped: int = -1_000_000) -> None:
        while self._kind(1) != EOF and self._kind(1) not in tokens:
            if skipped >= _MOST_SKIPPED:
                self._source.report(NOWHERE, f"error recovery token lookahead limit exceeded: {_MOST_SKIPPED}")
                raise _GivenUpError
            skipped += 1
            self._consume()

    def _count_repair(self) -> None:
        if self._repairs == _MOST_REPAIRS:
            self._report(self._peek(1), f"error recovery attempt limit exceeded: {_MOST_REPAIRS}")
            raise _GivenUpError
        self._repairs += 1

    def _end_repair(self) -> None:
        self._repairing = False
        self._last_repair = (-1, set())

    def _report_error(self, error: _MismatchError | _NoWayOnError) -> None:
        if self._repairing:
            return
        self._repairing = True
        if isinstance(error, _NoWayOnError):
            first, last = self._peek(1), error.token
            text = "<EOF>" if first.kind == EOF else self._source.read_between(first.start, last.end)
            self._report(last, f"no viable alternative at input {_quoted(text)}")
        else:
            expected = _display(self._expected(self._state))
            self._report(self._peek(1), f"mismatched input {_shown(self._peek(1))} expecting {expected}")

    def _report_unwanted(self, state: State) -> None:
        if self._repairing:
            return
        self._repairing = True
        expected = _display(self._expected(state))
        self._report(self._peek(1), f"extraneous input {_shown(self._peek(1))} expecting {expected}")

    def _report_missing(self, state: State) -> None:
        if self._repairing:
            return
        self._repairing = True
        self._report(self._peek(1), f"missing {_display(self._expected(state))} at {_shown(self._peek(1))}")

    def _report(self, token: Token, message: str) -> None:
        message = _CONSTANT_AS_NAME.sub(r"mismatched input '\1' expecting IDENTIFIER", message)
        if self._reports >= _MOST_REPORTS:
            self._source.report(token.start, f"Syntax error: More than {_MOST_REPORTS} syntax errors")
            raise _GivenUpError
        self._reports += 1
        self._source.report(token.start, f"Syntax error: {message}")


def _display(kinds: frozenset[int]) -> str:
    names = [NAMES[kind] for kind in sorted(kinds)]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def _shown(token: Token) -> str:
    return _quoted(token.text or "<EOF>")


def _quoted(text: str) -> str:
    escaped = text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"
