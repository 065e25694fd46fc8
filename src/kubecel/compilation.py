"""Compiles the text of an expression as far as its types: reads it, checks it, and validates its constants."""

from __future__ import annotations

from kubecel.builder import read
from kubecel.checker import Checked, Environment, check
from kubecel.source import SourceText
from kubecel.validators import validate


class CompilationError(ValueError):
    """An expression that does not compile, with all its problems as cel-go shows them."""


def compile_expression(text: str, environment: Environment, *, bindings: bool) -> Checked:
    """The expression with its types; CompilationError where it has none. `bindings`: whether there is cel.bind."""
    source = SourceText(text)
    node = read(source, bindings=bindings)
    if node is not None:
        checked = check(node, environment, source)
        if not source.problems:
            validate(checked, source)
        if not source.problems:
            return checked
    raise CompilationError(f"compilation failed: {source.display()}")
