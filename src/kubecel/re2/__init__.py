"""Regular expressions as Go has them (RE2): no backtracking, so no pattern makes a text costly to match.

    compile_pattern("^[a-z]+$").search("abc")     # True

Kubernetes takes patterns from users (in CustomResourceDefinitions and in CEL) and applies them to values from users.
Python's `re` needs exponential time for some of these, such as `^(a+)+$`.
"""

from kubecel.re2.finder import compile_finder
from kubecel.re2.matcher import CostError, Pattern, compile_pattern
from kubecel.re2.syntax import PatternError

__all__ = ["CostError", "Pattern", "PatternError", "compile_finder", "compile_pattern"]
