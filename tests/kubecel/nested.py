"""Makes CEL expressions that nest about as deep as is allowed, of one sort of nesting or of several.

Each sort puts a condition around a condition. cel-go limits how often a rule of its grammar is open at once, and how
deep operators, fields and calls of members nest, so one sort ends at 62 and another at 249: depths are drawn there.
"""

import random

SORTS = (
    ("(", ")"),
    ("!(", ")"),
    ("[", "][0]"),
    ("{1: ", "}[1]"),
    ("{'k': ", "}.k"),
    ("{", ": 1}.exists(k, k)"),
    ("true && (", ")"),
    ("(", " && true && true)"),
    ("false || (", ")"),
    ("true ? (", ") : false"),
    ("false ? true : ", ""),
    ("(", " ? true : false)"),
    ("true == (", ")"),
    ("(", " != false)"),
    ("(", " in [true])"),
    ("1 in [size([", "])]"),
    ("(1 + size([", "]) == 2)"),
    ("(-size([", "]) < 0)"),
    ("[1].exists(x, ", ")"),
    ("[1].all(i, x, ", ")"),
    ("[1].exists_one(x, ", ")"),
    ("[1].filter(x, ", ").size() == 1"),
    ("[", "].all(x, x)"),
    ("[", "].map(x, x)[0]"),
    ("cel.bind(b, ", ", b)"),
    ("cel.bind(b, true, ", ")"),
    ("optional.of(", ").value()"),
    ("optional.none().or(optional.of(", ")).hasValue()"),
    ("(dyn(", ") == true)"),
    ("(string(", ") == 'true')"),
    ("sets.contains([", "], [true])"),
    ("bool(", ")"),
    ("duration(", ") > duration('1s')"),
)
CHAINS = (
    ("'a'", ".trim()", " == 'a'"),
    ("dyn(device)", ".a", " == 1"),
    ("dyn(device)", "['a']", " == 1"),
    ("device.attributes", ".?a", ".hasValue()"),
    ("has(dyn(device)", ".a", ")"),
    ("1", " + 1", " > 0"),
    ("2", " * 1", " > 0"),
    ("true", " == true", ""),
    ("true", " && true", ""),
    ("false", " || true", ""),
    ("true && false", " || true && false", ""),
    ("", "!", "true"),
    ("", "-", "size(device.driver) < 0"),
    ("[1]", ".map(x, x)", " == [1]"),
    ("[1]", ".filter(x, true)", " == [1]"),
    ("'a'", ".replace('a', 'b')", " == ''"),
)
LIMITS = (62, 83, 124, 249)
LONGEST = 10 * 1024
COUNTED = 100_000


def nested(seed: str) -> str:
    """An expression of one or several sorts, or a chain that nests to the left."""
    dice = random.Random(seed)
    depth = dice.choice(LIMITS) + dice.randint(-2, 3) if dice.random() < 0.8 else dice.randint(2, 300)
    kind = dice.random()
    if kind < 0.25:
        begin, link, end = dice.choice(CHAINS)
        return begin + link * depth + end
    sorts = dice.sample(SORTS, 1 if kind < 0.55 else dice.randint(2, 4))
    openings, closings = "", ""
    for _ in range(depth):
        opening, closing = dice.choice(sorts)
        if len(openings) + len(closings) + len(opening) + len(closing) > LONGEST - 100:
            break
        openings, closings = openings + opening, closing + closings
    inside = dice.choice(("true", "device.allowMultipleAllocations", "device.driver == 'a'", "1", "x", "true &&"))
    return openings + inside + closings


def loop(seed: str) -> str:
    """An expression with one to three long loops, one in the other; some can cost more than is allowed."""
    dice = random.Random(seed)
    names = ("i", "j", "k")[: dice.randint(1, 3)]
    total, text = COUNTED, dice.choice((" + ".join(names) + " >= 0", f"{names[-1]} % 7 != 9", "device.driver != ''"))
    for name in reversed(names):
        rounds = max(1, dice.randint(1, total) if name == names[0] else int(total ** dice.random()))
        total = max(1, total // rounds)
        macro = dice.choice(("all", "exists", "exists_one", "filter", "map"))
        end = ".size() > 0" if macro in ("filter", "map") else ""
        text = f"lists.range({rounds}).{macro}({name}, {text}){end}"
    return text
