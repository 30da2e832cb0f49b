"""Answers read: from tokens to terms. A parser of our own, because those at hand run what they read as Python
(sympy's `parse_expr`) or read parts of it and forget the rest."""

import re
from collections.abc import Callable
from fractions import Fraction

from simplerl_trainer.rewards.judge import units
from simplerl_trainer.rewards.judge.terms import (
    EMPTY,
    Bare,
    Call,
    Huge,
    Matrix,
    Num,
    Quantity,
    Relation,
    Seq,
    SetOf,
    Sym,
    Term,
    Unreadable,
    negated,
)
from simplerl_trainer.rewards.judge.tokens import FUNCTIONS, Token, tokens

DEEPEST = 60
"""Brackets in brackets that are read."""

_RELATIONS = {
    "=": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "le": "<=", "ge": ">=", "ne": "!=", "\\ne": "!=", "lt": "<",
    "gt": ">", "in": "in", "approx": "=", "equiv": "=", "colon": ":",
}  # fmt: skip
_SETS = frozenset({"cup", "cap", "setminus"})
_MONEY = {"\\$": "dollar", "euro": "euro", "pound": "pound", "yen": "yen"}
_NAMED = {"pi": Sym("pi"), "infty": Sym("inf"), "emptyset": EMPTY}
_ALIASES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "lg": "log10"}
_UNARY = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "arcsin",
        "arccos",
        "arctan",
        "arccot",
        "sinh",
        "cosh",
        "tanh",
        "log",
        "ln",
        "exp",
        "asin",
        "acos",
        "atan",
        "lg",
        "cbrt",
        "abs",
        "floor",
        "ceil",
        "det",
    ]
)
_BOXES = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
_ONE = Num(Fraction(1))
_UNREADABLE = frozenset(
    [
        "int",
        "sum",
        "prod",
        "lim",
        "iint",
        "oint",
        "partial",
        "nabla",
        "ldots",
        "begin",
        "end",
        "mid",
        "circ",
        "pmod",
        "bmod",
        "mod",
        "to",
        "rightarrow",
        "Rightarrow",
        "implies",
        "forall",
        "exists",
        "subset",
        "subseteq",
        "perp",
        "parallel",
        "underbrace",
        "overbrace",
        "stackrel",
    ]
)
_ENVIRONMENTS = ("pmatrix", "bmatrix", "matrix", "Bmatrix", "smallmatrix", "array")
_FUNCTION_NAMES = frozenset("fghpqPQRFGHNuvyTSVML")
_MATRIX = re.compile(
    r"[(\[]?\s*\\begin\{(" + "|".join(_ENVIRONMENTS) + r")\}(?:\{[clr|]*\})?(.*?)\\end\{\1\}\s*[)\]]?", re.DOTALL
)


def parse(text: str) -> Term:
    """The term that a text in the one dialect stands for.

    Raises Unreadable.
    """
    if "\\begin" in text and (found := _whole_matrix(text)) is not None:
        return found
    parser = _Parser(tokens(text))
    term = parser.value()
    parser.at_end()
    return term


def _whole_matrix(text: str) -> Term | None:
    match = _MATRIX.fullmatch(text)
    if match is None:
        return None
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", match[2]) if row.strip()]
    cells = tuple(tuple(parse(cell.strip()) for cell in row.split("&")) for row in rows)
    if not cells or len({len(row) for row in cells}) != 1:
        raise Unreadable("its rows have different lengths")
    return Matrix(cells)


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0
        self._bars = 0

    # tokens

    def _peek(self, ahead: int = 0) -> Token | None:
        place = self._at + ahead
        return self._tokens[place] if place < len(self._tokens) else None

    def _is(self, *texts: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token is not None and token.kind in ("sign", "command") and token.text in texts

    def _take(self, *texts: str) -> bool:
        if self._is(*texts):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._take(text):
            token = self._peek()
            raise Unreadable(f"{text} is missing " + (f"before {token.text}" if token else "at its end"))

    def at_end(self) -> None:
        """Raises Unreadable where something is left."""
        while self._is(".", ",", ";", ":"):
            self._at += 1
        if (token := self._peek()) is not None:
            raise Unreadable(f"{token.text!r} stands where nothing can")

    def _deeper(self, read: Callable[[], Term]) -> Term:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Unreadable(f"brackets lie deeper than {DEEPEST} in each other")
        found = read()
        self._depth -= 1
        return found

    # lists and relations

    def value(self) -> Term:
        """A member, or several without brackets."""
        items = self._members(lambda: self._peek() is None)
        if not items:
            raise Unreadable("it is empty")
        return items[0] if len(items) == 1 else Bare(tuple(items))

    def _members(self, ended: Callable[[], bool]) -> list[Term]:
        items = []
        while not ended():
            if self._take(",", ";"):
                continue
            if self._is(".") and self._peek(1) is None:
                self._at += 1
                continue
            items.append(self._member())
            if ended():
                break
            if not self._is(",", ";", ".", ":"):
                token = self._peek()
                raise Unreadable(f"{token.text!r} stands where nothing can" if token else "it ends too early")
            if self._is(":") and self._peek(1) is not None:
                raise Unreadable("a colon stands where nothing can")
            if self._is(".", ":"):
                self.at_end()
        return items

    def _member(self) -> Term:
        self._take("approx", "=")
        first = self._function_name() or self._set()
        terms, signs = [first], []
        while True:
            token = self._peek()
            if token is None or token.kind not in ("sign", "command") or token.text not in _RELATIONS:
                break
            self._at += 1
            if _RELATIONS[token.text] == ":":
                raise Unreadable("a colon stands where nothing can")
            # x ≈ 3 is x = 3, and 4√3 ≈ 6.93 two forms of one answer
            rounded = token.text == "approx" and not (isinstance(terms[-1], Sym) and len(terms) == 1)
            signs.append("~" if rounded else _RELATIONS[token.text])
            self._take("approx", "=")
            terms.append(self._set())
        return first if not signs else Relation(tuple(terms), tuple(signs))

    def _function_name(self) -> Term | None:
        """`f(x)` before an equals sign is a name."""
        token = self._peek()
        if token is None or token.kind != "letter":
            return None
        derived = 1  # f'(x) and f^{-1}(x) too
        if self._is("^", ahead=1) and self._is("{", ahead=2) and self._is("-", ahead=3) and self._is("}", ahead=5):
            derived = 6
        while self._is("'", ahead=derived):
            derived += 1
        if not self._is("(", ahead=derived):
            return None
        name = token.text + "".join(t.text for t in self._tokens[self._at + 1 : self._at + derived])
        place, inside = 1 + derived, []
        while (t := self._peek(place)) is not None and (t.kind in ("letter", "number") or t.text == ","):
            inside.append(t.text)
            place += 1
        if not inside or not self._is(")", ahead=place) or not self._is("=", ahead=place + 1):
            return None
        self._at += place + 1
        return Sym(f"{name}({''.join(inside)})")

    def _set(self) -> Term:
        left = self._quantity()
        while True:
            token = self._peek()
            if token is None or token.kind != "command" or token.text not in _SETS:
                return left
            self._at += 1
            left = SetOf(token.text, left, self._quantity())

    # quantities

    def _quantity(self) -> Term:
        token = self._peek()
        if token is not None and token.kind == "word" and len(token.text) > 1:
            return self._named_word()
        negative = self._is("-") and (
            self._is("\\$", ahead=1) or ((t := self._peek(1)) is not None and t.kind == "command" and t.text in _MONEY)
        )
        if negative:
            self._at += 1
        token = self._peek()
        money = ""
        if token is not None and token.kind in ("sign", "command") and token.text in _MONEY:
            money = _MONEY[token.text]
            self._at += 1
        term = self._ratio()
        if negative:
            term = negated(term)
        reader = units.Reader()
        if money:
            reader.word(money)
        self._unit(reader, seen=_is_degree(term))
        unit = reader.unit()
        if isinstance(term, Call) and _is_degree(term):
            unit = unit or units.DEGREE
            if unit not in (units.DEGREE, (("celsius", 1),), (("fahrenheit", 1),), (("kelvin", 1),)):
                raise Unreadable("degrees have another unit beside them")
            term = term.args[0]
        return Quantity(term, unit) if unit else term

    def _named_word(self) -> Term:
        """A word that stands for a value: `area = 5`."""
        place = 0
        names = []
        while (t := self._peek(place)) is not None and t.kind == "word":
            names.append(t.text.lower())
            place += 1
        if self._is("=", ahead=place) or self._is("approx", ahead=place):
            self._at += place
            return Sym(" ".join(names))
        raise Unreadable("it is words")

    def _unit(self, reader: units.Reader, *, seen: bool) -> None:
        """What follows a value: its unit; `seen`: some of it was there already."""
        while (token := self._peek()) is not None:
            after = self._peek(1)
            if token.kind == "word":
                reader.word(token.text)
            elif token.text in ("\\%", "%"):
                reader.word("%")
            elif token.text in ("euro", "pound", "yen", "cent", "AA", "\\$") and token.kind in ("command", "sign"):
                reader.word({"\\$": "dollar"}.get(token.text, token.text))
            elif token.text in ("circ", "degree"):
                reader.word("degree")
            elif token.text == "mu" and token.kind == "command" and after is not None and after.kind == "word":
                self._at += 1
                reader.word("micro" + after.text)
            elif (
                token.text == "/" and after is not None and (after.kind == "word" or (seen and after.kind == "letter"))
            ):
                reader.divide()
            elif seen and token.text == "^":
                self._at += 1
                reader.power(self._small_power())
                continue
            elif seen and token.text in ("cdot", "*", "-", ".") and after is not None and after.kind == "word":
                reader.times()
            elif seen and token.kind == "letter" and units.letter(token.text):
                reader.word(token.text)
            else:
                return
            seen = True
            self._at += 1

    def _small_power(self) -> int:
        braced = self._take("{")
        sign = -1 if self._take("-") else 1
        token = self._peek()
        if token is None or token.kind != "number" or not token.text.isdigit() or len(token.text) > 2:
            raise Unreadable("a unit has no such power")
        self._at += 1
        if braced:
            self._expect("}")
        return sign * int(token.text)

    # arithmetic

    def _ratio(self) -> Term:
        """`3:4` is 3/4, `1:2:3` a tuple."""
        items = [self._sum()]
        if isinstance(items[0], Sym) and items[0].name.startswith("\\mathbb"):
            return items[0]  # {x in R : x > 2}
        while self._is(":") and (t := self._peek(1)) is not None and t.kind in ("number", "letter", "command"):
            self._at += 1
            items.append(self._sum())
        if len(items) == 1:
            return items[0]
        return Call("/", (items[0], items[1])) if len(items) == 2 else Seq("(", ")", tuple(items))

    def _sum(self) -> Term:
        return self._deeper(self._sum_here)

    def _sum_here(self) -> Term:
        items: list[Term] = []
        if self._take("pm"):
            items = [Call("pm", (Num(Fraction(0)), self._product()))]
        elif self._take("mp"):
            items = [Call("mp", (Num(Fraction(0)), self._product()))]
        else:
            items = [self._signed_product()]
        while True:
            if self._take("+"):
                if self._take("-"):
                    items.append(negated(self._product()))
                else:
                    items.append(self._product())
            elif self._is("-") and not ((t := self._peek(1)) is not None and t.kind == "word"):
                self._at += 1
                items.append(negated(self._signed_product()))
            elif self._is("pm", "mp"):
                name = "pm" if self._take("pm") else "mp"
                self._take("mp")
                items = [Call(name, (_sum_of(items), self._product()))]
            else:
                return _sum_of(items)

    def _signed_product(self) -> Term:
        sign = 1
        while self._is("-", "+"):
            sign = -sign if self._take("-") else sign
            self._take("+")
        found = self._product()
        return found if sign == 1 else negated(found)

    def _product(self) -> Term:
        items = [self._power()]  # in one list: long products must not nest deeply
        while True:
            if self._take("*", "cdot", "times"):
                items.append(self._signed_power())
            elif self._is("div") or (self._is("/") and not ((t := self._peek(1)) is not None and t.kind == "word")):
                self._at += 1
                below = self._signed_power()
                plain = len(items) == 1 and not (isinstance(items[0], Call) and items[0].name == "/")
                items = [Call("/", (items[0], below))] if plain else [*items, Call("/", (_ONE, below))]
            elif (mixed := self._mixed(items[-1])) is not None:
                items[-1] = mixed
            elif self._starts() and not (_is_degree(items[-1]) and self._temperature()):
                token = self._peek()
                if token is not None and token.kind == "number" and self._tokens[self._at - 1].kind == "number":
                    raise Unreadable("two numbers stand side by side")
                items.append(self._power())
            else:
                return items[0] if len(items) == 1 else Call("*", tuple(items))

    def _temperature(self) -> bool:
        """Whether degrees are those of Celsius, Fahrenheit or Kelvin."""
        token = self._peek()
        return token is not None and token.kind == "letter" and token.text in ("C", "F", "K")

    def _mixed(self, left: Term) -> Term | None:
        """`3\\frac{1}{2}` and `3 1/2` are 7/2."""
        if not isinstance(left, Num) or left.value.denominator != 1 or self._tokens[self._at - 1].kind != "number":
            return None
        start = self._at
        token = self._peek()
        found: Term | None = None
        if self._is("frac"):
            found = self._power()
        elif token is not None and token.kind == "number" and token.spaced and self._is("/", ahead=1):
            self._at += 2
            below = self._peek()
            if below is not None and below.kind == "number":
                self._at += 1
                found = Call("/", (_number(token.text), _number(below.text)))
        match found:
            case Call("/", (Num(above), Num(below_value))) if (
                above.denominator == below_value.denominator == 1 and 0 < above < below_value
            ):
                return Num(left.value + above / below_value, left.digits)
        self._at = start
        return None

    def _starts(self) -> bool:
        """Whether a factor begins here."""
        token = self._peek()
        if token is None:
            return False
        if token.kind in ("number", "letter"):
            return True
        if token.kind == "word":
            return False
        if token.kind == "sign":
            return token.text in ("(", "[", "{") or (token.text == "|" and self._bars == 0)
        if token.text in ("rfloor", "rceil", "rangle", "circ", "AA", "mu") and token.kind == "command":
            after = self._peek(1)
            return token.text == "mu" and not (after is not None and after.kind == "word")
        return (
            token.text not in _RELATIONS
            and token.text not in _SETS
            and token.text not in ("pm", "mp", "cdot", "times", "div", "euro", "pound", "yen", "cent", "mid")
        )

    def _signed_power(self) -> Term:
        if self._take("-"):
            return negated(self._signed_power_once())
        self._take("+")
        return self._signed_power_once()

    def _signed_power_once(self) -> Term:
        return self._deeper(self._power)

    def _power(self) -> Term:
        base = self._postfix(self._atom())
        if self._take("^"):
            if self._is("circ") or (self._is("{") and self._is("circ", ahead=1) and self._is("}", ahead=2)):
                self._at += 1 if self._is("circ") else 3
                return self._postfix(Call("degree", (base,)))
            exponent = self._deeper(self._exponent)
            return self._postfix(Call("^", (base, exponent)))
        return base

    def _exponent(self) -> Term:
        if self._take("-"):
            return negated(self._exponent())
        found = self._group() if self._is("{") else self._atom()
        if self._take("^"):
            return Call("^", (found, self._deeper(self._exponent)))
        return found

    def _postfix(self, base: Term) -> Term:
        while self._is("!"):
            self._at += 1
            base = Call("factorial", (base,))
        return base

    # atoms

    def _atom(self) -> Term:
        token = self._peek()
        if token is None:
            raise Unreadable("it ends too early")
        self._at += 1
        if token.kind == "number":
            return self._repeating(token) or _number(token.text)
        if token.kind == "letter" or (token.kind == "word" and len(token.text) == 1):
            return self._variable(token.text)
        if token.kind == "sign":
            return self._bracketed(token.text)
        if token.kind == "command":
            return self._command(token.text)
        raise Unreadable(f"the word {token.text!r} stands where no word can")

    def _repeating(self, token: Token) -> Term | None:
        """`0.\\overline{3}` is 1/3."""
        if "." not in token.text or not self._is("overline", "dot", "bar") or not self._is("{", ahead=1):
            return None
        digits, end = self._peek(2), self._is("}", ahead=3)
        if digits is None or digits.kind != "number" or not digits.text.isdigit() or not end or len(digits.text) > 30:
            return None
        self._at += 4
        places = len(token.text.partition(".")[2])
        base = _number(token.text)
        period = Fraction(int(digits.text), 10 ** len(digits.text) - 1) / 10**places
        return Num(base.value + period, base.digits)

    def _variable(self, name: str) -> Term:
        if name == "e" and not self._is("_"):
            return Sym("e")
        if name == "i" and not self._is("_"):
            return Sym("i")
        name = self._decorated(name)
        number = self._peek(1)
        if self._is("(") and self._is(")", ahead=2) and number is not None and number.kind == "number":
            self._at += 3
            name += f"({number.text})"  # I(0) is a value of I, not I times 0
        return Sym(name)

    def _decorated(self, name: str) -> str:
        """A name with its index and its primes."""
        if self._take("_"):
            name += "_" + self._index()
        while self._take("'"):
            name += "'"
        return name

    def _index(self) -> str:
        if not self._take("{"):
            token = self._peek()
            if token is None:
                raise Unreadable("an index is missing")
            self._at += 1
            return token.text
        found, depth = "", 1
        while (token := self._peek()) is not None:
            self._at += 1
            depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind == "sign" else 0
            if depth == 0:
                return found
            found += token.text
        raise Unreadable("an index has no end")

    def _bracketed(self, sign: str) -> Term:
        if sign in ("(", "["):
            return self._deeper(lambda: self._seq(sign))
        if sign == "\\{":
            return self._deeper(self._braces)
        if sign == "{":
            self._at -= 1
            return self._group()
        if sign == "|":
            self._bars += 1
            found = self._deeper(self._sum)
            self._bars -= 1
            self._expect("|")
            return Call("abs", (found,))
        raise Unreadable(f"{sign!r} stands where a value should")

    def _seq(self, left: str) -> Term:
        bars, self._bars = self._bars, 0
        items = self._members(lambda: self._is(")", "]") or self._peek() is None)
        self._bars = bars
        token = self._peek()
        if token is None or not items:
            raise Unreadable(f"{left} has no end" if token is None else "brackets hold nothing")
        self._at += 1
        if len(items) == 1 and left + token.text in ("()", "[]"):
            return items[0]
        return Seq(left, token.text, tuple(items))

    def _braces(self) -> Term:
        items = self._members(lambda: self._is("\\}", "|", "mid", ":") or self._peek() is None)
        if self._take("|", "mid", ":"):  # {x | x > 2} is the relation
            items = self._members(lambda: self._is("\\}") or self._peek() is None)
            self._expect("\\}")
            if len(items) != 1:
                raise Unreadable("a set is described by more than one relation")
            return items[0]
        self._expect("\\}")
        return Seq("{", "}", tuple(items))

    def _group(self) -> Term:
        """What stands in TeX's braces; a set where members are listed."""
        self._expect("{")
        bars, self._bars = self._bars, 0
        items = self._deeper_members()
        self._bars = bars
        self._expect("}")
        return items[0] if len(items) == 1 else Seq("{", "}", tuple(items))

    def _deeper_members(self) -> list[Term]:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Unreadable(f"brackets lie deeper than {DEEPEST} in each other")
        found = self._members(lambda: self._is("}") or self._peek() is None)
        self._depth -= 1
        return found

    def _argument(self) -> Term:
        """A command's argument: a group or one token, of a number its first digit."""
        if self._is("{"):
            return self._group()
        token = self._peek()
        if token is not None and token.kind == "number":
            if token.text.isdigit() and len(token.text) > 1:
                self._tokens[self._at] = Token("number", token.text[1:], False)
                return _number(token.text[0])
            self._at += 1
            return _number(token.text)
        return self._atom()

    def _command(self, name: str) -> Term:
        if name in _NAMED:
            return _NAMED[name]
        if name in ("frac", "over"):
            above = self._argument()
            return Call("/", (above, self._argument()))
        if name == "sqrt":
            return self._root()
        if name in ("binom", "choose"):
            above = self._argument()
            return Call("binom", (above, self._argument()))
        if name in _BOXES:
            closing, function = _BOXES[name]
            found = self._deeper(self._sum)
            self._expect(closing)
            return Call(function, (found,))
        if name == "langle":
            items = self._members(lambda: self._is("rangle") or self._peek() is None)
            self._expect("rangle")
            return Seq("(", ")", tuple(items))
        if name in FUNCTIONS:
            return self._function(name)
        if name in ("overline", "bar", "dot", "ddot", "vec", "hat", "tilde", "widehat", "overrightarrow"):
            inside = self._index()
            return Sym(self._decorated(f"\\{name} {inside}"))
        if name in ("angle", "triangle", "measuredangle"):
            start = self._at
            while (token := self._peek()) is not None and token.kind == "letter":
                self._at += 1
                self._decorated("")
            return Sym(f"\\{name} " + "".join(t.text for t in self._tokens[start : self._at] if t.text not in "{}"))
        if name.startswith(("mathbb{", "mathcal{")):
            return Sym(self._decorated("\\" + name))
        if name in _UNREADABLE or name in _RELATIONS or name in _SETS:
            raise Unreadable(f"\\{name} stands in it")
        return Sym(self._decorated("\\" + name))

    def _root(self) -> Term:
        degree: Term | None = None
        if self._take("["):
            degree = self._deeper(self._sum)
            self._expect("]")
        if self._is("("):
            self._at += 1
            inside = self._deeper(lambda: self._seq("("))
        else:
            inside = self._argument()
        if degree is None:
            return Call("sqrt", (inside,))
        return Call("root", (inside, degree))

    def _function(self, name: str) -> Term:
        if name not in _UNARY:
            if name in ("max", "min", "gcd", "lcm") and self._take("(", "\\{"):
                items = self._members(lambda: self._is(")", "\\}") or self._peek() is None)
                self._at += 1
                return Call(name, tuple(items))
            raise Unreadable(f"{name} stands in it")
        name = _ALIASES.get(name, name)
        base: Term | None = None
        power: Term | None = None
        while self._is("_", "^"):
            if self._take("_"):
                base = self._argument()
            else:
                self._at += 1
                power = self._deeper(self._exponent)
        argument = self._deeper(self._function_argument)
        if name == "log" and base is not None:
            found: Term = Call("logb", (argument, base))
        elif base is not None:
            raise Unreadable(f"{name} has an index")
        elif power == Num(Fraction(-1)) and name in ("sin", "cos", "tan", "cot", "sec", "csc"):
            return Call("arc" + name, (argument,))
        else:
            found = Call(name, (argument,))
        return found if power is None else Call("^", (found, power))

    def _function_argument(self) -> Term:
        if self._is("(", "[", "{", "|"):
            return self._power()
        # \sin 2x + 1 is sin(2x) + 1
        negative = self._take("-")
        found = self._power()
        while True:
            token = self._peek()
            if token is None or (token.kind == "command" and token.text in FUNCTIONS) or self._is("(", "|"):
                break
            if (
                self._is("/")
                and isinstance(found, Num | Sym)
                and (t := self._peek(1)) is not None
                and t.kind == "number"
            ):
                self._at += 1
                found = Call("/", (found, self._power()))
            elif self._starts():
                found = Call("*", (found, self._power()))
            else:
                break
        return negated(found) if negative else found


def _is_degree(term: Term) -> bool:
    return isinstance(term, Call) and term.name == "degree"


def _sum_of(items: list[Term]) -> Term:
    return items[0] if len(items) == 1 else Call("+", tuple(items))


def _number(text: str) -> Num:
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > 4000:  # Python reads no more than 4300
        raise Huge("a number of more than 4000 digits is compared by its text only")
    if len(exponent) > 5:
        raise Huge("a number with such an exponent is compared by its text only")
    whole, _, decimals = mantissa.partition(".")
    value = Fraction(int((whole + decimals) or "0"), 10 ** len(decimals))
    if exponent:
        power = int(exponent)
        if abs(power) > 4000:
            raise Huge("a number with such an exponent is compared by its text only")
        value *= Fraction(10) ** power
    return Num(value, len(mantissa))
