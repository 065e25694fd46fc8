"""Makes random CEL expressions: most of them right, some broken by one or more changes to their text.

Expressions are grown by type, so that most pass the checker and say something about evaluation and cost; words of the
wrong type and changes to the text make the rest.
"""

import random
import re
from collections.abc import Callable

from kubecel.strconv import words
from tests.kubecel.nested import loop, nested

TOKENS = (
    *words(
        "a device . driver ( ) [ ] { } , ? : == != in < && || + - * / % ! 1 1.5 2u 's' b'x' true null foo for `x` # "
        '$ = & \\\\ has all cel.bind( x 0x "un'
    ),
    *(" ", "\n", "// c\n", "é", '"""', "\t", "'''"),
)
STRINGS = ('"a"', '"a100"', '""', '"drv.example.com"', '"1.2.3"', "'x y'", r'"\u00e9\n"', '"10Gi"', 'r"\\d"')
ATTRIBUTES = tuple(
    f'device.attributes["{domain}"].{name}'
    for domain in ("drv.example.com", "other.example.com", "none")
    for name in ("model", "n", "ok", "ver", "name", "zzz")
)
PATTERNS = ('"a+"', '"^[a-z]+[0-9]*$"', '"(a|b)*"', '"["', '"a{2,}"', '"(?i)A1"', '"."')
URLS = ('"https://example.com:80/path?k=v"', '"/path"', '"nope"', '""', '"http://[::1]:8080/"', '"a:b"')
ADDRESSES = ('"10.0.0.1"', '"::1"', '"1.2.3"', '"256.1.1.1"', '"fe80::1"', '"x"', '"192.168.1.300"')
NETWORKS = ('"10.0.0.0/8"', '"::/0"', '"10.0.0.0/33"', '"10.0.0.0"', '"fe80::/10"')
VERSIONS = ('"1.2.3"', '"1.2.3-alpha.1"', '"v1.2"', '"1.02.3"', '"1.2.3+b"', '"x"', '""')
QUANTITIES = ('"1"', '"10Gi"', '"500m"', '"x"', '"1Q"', '"-5"', '"1.5e3"', '"Gi"', '"40Gi"')
DURATIONS = ('"1h"', '"1.5s"', '"x"', '"-2m"', '"90ms"')
TIMES = ('"2026-01-01T00:00:00Z"', '"2026-06-01T12:30:00.25+02:00"', '"x"', '"0001-01-01T00:00:00Z"')
FORMATS = ("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "labelValue", "uuid", "date", "byte")


class Grower:
    """Grows one expression."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._names: list[tuple[str, str]] = []
        self._left = self._random.randint(2, 14)

    def expression(self) -> str:
        text = self.grow("bool" if self._random.random() < 0.93 else self._pick(tuple(self._makers())))
        return self._broken(text) if self._random.random() < 0.3 else text

    def _pick(self, options: tuple[str, ...]) -> str:
        return self._random.choice(options)

    def _makers(self) -> dict[str, Callable[[], str]]:
        return {
            "bool": self._bool,
            "int": self._int,
            "uint": lambda: self._pick(("1u", "0u", "18446744073709551615u", "uint(3)")),
            "double": lambda: self._pick(("1.5", "0.0", "-2.5e3", "1e300", "double(3)", "double('x')")),
            "string": self._string,
            "bytes": lambda: self._pick(('b"a"', "bytes('é')", 'b"\\xff"')),
            "list(int)": self._ints,
            "list(string)": self._strings,
            "map": self._map,
            "dyn": lambda: self._pick((*ATTRIBUTES, "dyn(1)", 'dyn("a")', "dyn([1])", "dyn({})", "dyn(device)")),
            "quantity": self._quantity,
            "semver": self._semver,
            "duration": lambda: f"duration({self._pick(DURATIONS)})",
            "timestamp": lambda: f"timestamp({self._pick(TIMES)})",
            "optional": self._optional,
            "type": lambda: f"type({self.grow('dyn')})",
            "null": lambda: "null",
        }

    def grow(self, kind: str) -> str:
        self._left -= 1
        if self._random.random() < 0.04:
            kind = self._pick(("bool", "int", "string", "dyn", "list(int)", "double", "null"))
        bound = [name for name, of in self._names if of == kind]
        if bound and self._random.random() < 0.5:
            return self._random.choice(bound)
        if kind in ("int", "string", "bool") and self._random.random() < 0.12:
            return self._random.choice(ATTRIBUTES)
        return self._makers()[kind]()

    def _bool(self) -> str:
        if self._left < 0:
            return self._pick(("true", "false", "device.allowMultipleAllocations"))
        choice = self._random.randrange(21)
        match choice:
            case 0 | 1:
                return f"({self.grow('bool')} {self._pick(('&&', '||'))} {self.grow('bool')})"
            case 2:
                return f"!{self._in_parentheses('bool')}"
            case 3 | 4 | 5:
                kind = self._pick(
                    ("int", "string", "double", "list(int)", "dyn", "bool", "bytes", "type", "map", "null")
                )
                other = kind if self._random.random() < 0.7 else self._pick(("int", "string", "dyn", "uint", "double"))
                return f"{self.grow(kind)} {self._pick(('==', '!='))} {self.grow(other)}"
            case 6 | 7:
                kind = self._pick(("int", "string", "double", "uint", "dyn", "duration", "timestamp", "bool"))
                other = kind if self._random.random() < 0.7 else self._pick(("int", "uint", "double", "dyn", "string"))
                return f"{self.grow(kind)} {self._pick(('<', '<=', '>', '>='))} {self.grow(other)}"
            case 8:
                kind = self._pick(("list(int)", "list(string)", "map", "dyn"))
                return f"{self.grow(self._pick(('int', 'string', 'dyn')))} in {self.grow(kind)}"
            case 9:
                function = self._pick(("contains", "startsWith", "endsWith"))
                return f"{self._target('string')}.{function}({self.grow('string')})"
            case 10:
                pattern = self._pick(PATTERNS)
                return self._pick(
                    (f"{self._target('string')}.matches({pattern})", f"matches({self.grow('string')}, {pattern})")
                )
            case 11 | 12:
                return self._macro_test()
            case 13:
                return f"has({self._pick(ATTRIBUTES)})"
            case 14:
                kind = self._pick(("quantity", "semver"))
                other = kind if self._random.random() < 0.8 else self._pick(("dyn", "string"))
                function = self._pick(("isGreaterThan", "isLessThan", "compareTo"))
                test = "" if function != "compareTo" else " == 0"
                return f"{self._target(kind)}.{function}({self.grow(other)}){test}"
            case 15:
                return self._kubernetes_test()
            case 16:
                return f"({self.grow('bool')} ? {self.grow('bool')} : {self.grow('bool')})"
            case 17:
                kind = self._pick(("int", "string", "bool", "list(int)", "dyn"))
                value = self.grow(kind)
                return f"cel.bind(b, {value}, {self._with_name('b', kind, 'bool')})"
            case 18:
                return f"sets.{self._pick(('contains', 'equivalent', 'intersects'))}({self._ints()}, {self._ints()})"
            case 19:
                return f"{self.grow('optional')}.hasValue()"
        return f"{self.grow('list(int)')}.isSorted()"

    def _in_parentheses(self, kind: str) -> str:
        return f"({self.grow(kind)})"

    def _target(self, kind: str) -> str:
        text = self.grow(kind)
        return f"({text})" if re.search(r"[ ?!]|^-", text) else text

    def _with_name(self, name: str, kind: str, result: str) -> str:
        self._names.append((name, kind))
        text = self.grow(result)
        self._names.pop()
        return text

    def _macro_test(self) -> str:
        name = self._pick(("x", "y"))
        choice = self._random.randrange(4)
        if choice == 0:
            ranged = self._pick(("device.attributes", 'device.attributes["drv.example.com"]', "device.capacity"))
            return f"{ranged}.{self._pick(('all', 'exists'))}({name}, {self._with_name(name, 'string', 'bool')})"
        if choice == 1:
            macro = self._pick(("all", "exists", "existsOne"))
            return f"{self._target('list(int)')}.{macro}(i, {name}, {self._with_name(name, 'int', 'bool')})"
        kind = self._pick(("int", "string"))
        macro = self._pick(("all", "exists", "exists_one"))
        return f"{self._target(f'list({kind})')}.{macro}({name}, {self._with_name(name, kind, 'bool')})"

    def _kubernetes_test(self) -> str:
        return self._pick(
            (
                f"isQuantity({self._pick(QUANTITIES)})",
                f"isSemver({self._pick(VERSIONS)}, {self.grow('bool')})",
                f"isURL({self._pick(URLS)})",
                f"url({self._pick(URLS)}).getHost() == {self.grow('string')}",
                f"isIP({self._pick(ADDRESSES)})",
                f"ip({self._pick(ADDRESSES)}).isLoopback()",
                f"ip.isCanonical({self._pick(ADDRESSES)})",
                f"isCIDR({self._pick(NETWORKS)})",
                f"cidr({self._pick(NETWORKS)}).containsIP({self._pick(ADDRESSES)})",
                f"cidr({self._pick(NETWORKS)}).masked() == cidr({self._pick(NETWORKS)})",
                f"!format.{self._pick(FORMATS)}().validate({self.grow('string')}).hasValue()",
                f"{self._target('quantity')}.isInteger()",
                f"{self.grow('quantity')} == {self.grow('quantity')}",
                f"{self.grow('semver')} == {self.grow('semver')}",
            )
        )

    def _int(self) -> str:
        if self._left < 0:
            return self._pick(("0", "1", "3", "-7", "0xff", "9223372036854775807"))
        match self._random.randrange(13):
            case 0 | 1 | 2:
                return self._pick(("0", "1", "3", "-7", "2", "9223372036854775807"))
            case 3 | 4:
                return f"({self.grow('int')} {self._pick(('+', '-', '*', '/', '%'))} {self.grow('int')})"
            case 5:
                return f"size({self.grow(self._pick(('string', 'list(int)', 'map', 'dyn', 'bytes')))})"
            case 6:
                return f"{self._target(self._pick(('string', 'list(string)')))}.size()"
            case 7:
                return f"int({self.grow(self._pick(('string', 'double', 'uint', 'timestamp', 'duration', 'dyn')))})"
            case 8:
                call = self._pick(("sum()", "max()", "min()", "indexOf(1)", "lastIndexOf(1)"))
                return f"{self._target('list(int)')}.{call}"
            case 9:
                return f"{self._target('string')}.{self._pick(('indexOf', 'lastIndexOf'))}({self.grow('string')})"
            case 10:
                return f"{self._target('list(int)')}[{self.grow('int')}]"
            case 11:
                part = self._pick(("getFullYear", "getMonth", "getDayOfWeek", "getHours", "getMilliseconds"))
                return f"{self._target('timestamp')}.{part}({self._pick(('', chr(34) + '+02:30' + chr(34)))})"
        return f"{self._target('quantity')}.{self._pick(('asInteger()', 'compareTo(quantity(chr))'))}".replace(
            "chr", '"1"'
        )

    def _string(self) -> str:
        if self._left < 0:
            return self._pick(STRINGS)
        match self._random.randrange(13):
            case 0 | 1 | 2:
                return self._pick((*STRINGS, "device.driver"))
            case 3:
                return f"({self.grow('string')} + {self.grow('string')})"
            case 4:
                kind = self._pick(("int", "double", "bool", "bytes", "duration", "timestamp", "dyn"))
                return f"string({self.grow(kind)})"
            case 5:
                return f"{self._target('string')}.{self._pick(('lowerAscii()', 'upperAscii()', 'trim()'))}"
            case 6:
                return f"{self._target('string')}.substring({self.grow('int')})"
            case 7:
                return f"{self._target('string')}.replace({self.grow('string')}, {self.grow('string')})"
            case 8:
                return f"{self._target('list(string)')}.join({self._pick(('', chr(34) + ',' + chr(34)))})"
            case 9:
                return f"{self._target('string')}.find({self._pick(PATTERNS)})"
            case 10:
                return f"{self._target('string')}.charAt({self.grow('int')})"
            case 11:
                clause = self._pick(("%s", "%d", "%x", "%.2f", "%b", "%q", "%s %s", "100%"))
                argument = self.grow(self._pick(("int", "string", "double", "list(int)", "bool")))
                return f'"{clause}".format([{argument}])'
        return f"strings.quote({self.grow('string')})"

    def _ints(self) -> str:
        if self._left < 0:
            return self._pick(("[1, 2]", "[]", "[3]"))
        match self._random.randrange(9):
            case 0 | 1 | 2:
                return "[" + ", ".join(self.grow("int") for _ in range(self._random.randrange(4))) + "]"
            case 3:
                return f"{self._target('list(int)')}.map(m, {self._with_name('m', 'int', 'int')})"
            case 4:
                return f"{self._target('list(int)')}.filter(f, {self._with_name('f', 'int', 'bool')})"
            case 5:
                return f"({self.grow('list(int)')} + {self.grow('list(int)')})"
            case 6:
                call = self._pick(("sort()", "reverse()", "distinct()", "slice(0, 1)", "sortBy(e, -e)"))
                return f"{self._target('list(int)')}.{call}"
            case 7:
                return f"lists.range({self._pick(('3', '0', '-1', 'size(device.driver)'))})"
        return f"{self._target('list(int)')}.transformList(i, t, {self._with_name('t', 'int', 'int')})"

    def _strings(self) -> str:
        if self._left < 0:
            return self._pick(('["a", "b"]', "[]"))
        match self._random.randrange(5):
            case 0 | 1:
                return "[" + ", ".join(self.grow("string") for _ in range(self._random.randrange(4))) + "]"
            case 2:
                return f"{self._target('string')}.split({self._pick(STRINGS)}{self._pick(('', ', 2', ', 0'))})"
            case 3:
                return f"{self._target('string')}.findAll({self._pick(PATTERNS)})"
        return f"{self._target('list(string)')}.map(m, {self._with_name('m', 'string', 'string')})"

    def _map(self) -> str:
        if self._left < 0:
            return self._pick(('{"a": 1}', "{}"))
        entries = ", ".join(f"{self.grow('string')}: {self.grow('int')}" for _ in range(self._random.randrange(3)))
        ranged = f"{self._target('list(int)')}.transformMap(i, t, {self._with_name('t', 'int', 'int')})"
        return self._pick((f"{{{entries}}}", f"{{{entries}}}", ranged, 'device.attributes["drv.example.com"]'))

    def _quantity(self) -> str:
        return self._pick(
            (
                f"quantity({self._pick(QUANTITIES)})",
                'device.capacity["drv.example.com"].memory',
                'device.capacity["none"].x',
                f'quantity("1").add({self._pick(("1", "quantity(chr)"))})'.replace("chr", '"2"'),
            )
        )

    def _semver(self) -> str:
        return self._pick((f"semver({self._pick(VERSIONS)})", f"semver({self._pick(VERSIONS)}, true)", ATTRIBUTES[3]))

    def _optional(self) -> str:
        key = self._pick(('"a"', '"model"', "0"))
        return self._pick(
            (
                "optional.none()",
                f"optional.of({self.grow('int')})",
                f"{self._target('map')}[?{key}]",
                f"device.attributes[?{key}]",
                f'device.attributes["drv.example.com"].?{self._pick(("model", "zzz"))}',
                f"{self._target('list(int)')}[?{self.grow('int')}]",
                f"optional.of({self.grow('int')}).optMap(o, {self._with_name('o', 'int', 'int')})",
                f"{self._target('list(int)')}.first()",
            )
        )

    def _broken(self, text: str) -> str:
        words = re.findall(r'"[^"]*"|\w+|\s+|.', text, re.S)
        for _ in range(self._random.randint(1, 3)):
            at = self._random.randrange(len(words) + 1)
            how = self._random.random()
            if how < 0.4 and words:
                del words[min(at, len(words) - 1)]
            elif how < 0.8:
                words.insert(at, self._random.choice(TOKENS))
            elif words:
                other = self._random.randrange(len(words))
                at = min(at, len(words) - 1)
                words[at], words[other] = words[other], words[at]
        return "".join(words)


NESTED_EVERY = 20
LOOP_EVERY = 25


def expressions(seed: int, count: int) -> list[str]:
    """So many expressions; the same ones for the same seed. Some nest deep, and some have long loops."""
    return [_expression(f"{seed}/{number}", number) for number in range(count)]


def _expression(seed: str, number: int) -> str:
    if number % NESTED_EVERY == NESTED_EVERY - 1:
        return nested(seed)
    return loop(seed) if number % LOOP_EVERY == LOOP_EVERY - 1 else Grower(seed).expression()
