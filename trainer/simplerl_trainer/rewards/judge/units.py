"""Units and counted nouns: spellings of one unit have one name; nothing is ever converted."""

import re
from collections.abc import Sequence

Unit = tuple[tuple[str, int], ...]
"""Factors by name with their powers, sorted."""

PERCENT: Unit = (("%", 1),)
DEGREE: Unit = (("degree", 1),)

_SPELLINGS = {
    "%": "percent pct percentage percents",
    "degree": "degree degrees deg",
    "rad": "radian radians rad",
    "dollar": "dollar dollars usd bucks",
    "cent": "cent cents",
    "euro": "euro euros eur",
    "pound": "pound pounds lb lbs",
    "mm": "mm millimeter millimeters millimetre millimetres",
    "cm": "cm centimeter centimeters centimetre centimetres cms",
    "dm": "dm decimeter decimeters",
    "m": "m meter meters metre metres",
    "km": "km kilometer kilometers kilometre kilometres kms",
    "nm": "nm nanometer nanometers nanometre nanometres",
    "pm": "picometer picometers picometre picometres",
    "in": "inch inches",
    "ft": "ft foot feet",
    "yd": "yd yds yard yards",
    "mi": "mi mile miles",
    "mg": "mg milligram milligrams",
    "g": "g gram grams gm",
    "kg": "kg kilogram kilograms kgs kilo kilos",
    "ton": "ton tons tonne tonnes",
    "oz": "oz ounce ounces",
    "ml": "ml milliliter milliliters millilitre millilitres",
    "l": "l liter liters litre litres",
    "gal": "gal gallon gallons",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks wk wks",
    "month": "month months mo",
    "year": "year years yr yrs",
    "mph": "mph",
    "kph": "kph kmph",
    "hz": "hz hertz",
    "khz": "khz kilohertz",
    "n": "newton newtons",
    "j": "joule joules",
    "kj": "kj kilojoule kilojoules",
    "cal": "cal calorie calories",
    "kcal": "kcal kilocalorie kilocalories",
    "w": "watt watts",
    "kw": "kw kilowatt kilowatts",
    "v": "volt volts",
    "amp": "amp amps ampere amperes",
    "ohm": "ohm ohms",
    "ev": "ev electronvolt electronvolts",
    "erg": "erg ergs",
    "kelvin": "kelvin kelvins",
    "celsius": "celsius",
    "fahrenheit": "fahrenheit",
    "mol": "mol mole moles mols",
    "angstrom": "angstrom angstroms aa",
    "arcsec": "arcsec arcsecs arcsecond arcseconds",
    "unit": "unit units",
    "person": "person people persons",
    "child": "child children",
    "man": "man men",
    "woman": "woman women",
    "foot": "",
    "mouse": "mouse mice",
    "goose": "goose geese",
    "tooth": "tooth teeth",
    "half": "half halves",
    "knife": "knife knives",
    "loaf": "loaf loaves",
    "leaf": "leaf leaves",
    "shelf": "shelf shelves",
    "wolf": "wolf wolves",
    "life": "life lives",
}
_NAMES = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings.split()}
_COMPOUND = {"mph": (("h", -1), ("mi", 1)), "kph": (("h", -1), ("km", 1))}
_LETTERS = {
    "m": "m", "g": "g", "s": "s", "h": "h", "L": "l", "l": "l", "N": "n", "J": "j", "W": "w", "V": "v", "A": "amp",
    "K": "kelvin", "C": "celsius", "F": "fahrenheit",
}  # fmt: skip
"""Units of one letter, which matter where something sets them apart from variables."""
_CAPITALS = frozenset({"Hz", "kHz", "eV", "kJ", "mL", "kW", "USD", "MPH", "AA", "EUR"})
_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
_FILLERS = frozenset(
    {"off", "a", "an", "the", "more", "total", "altogether", "left", "remaining", "about", "different", "whole"}
)
_TAILS = frozenset({
    "of", "in", "at", "on", "for", "from", "to", "with", "each", "every", "than", "away", "ago", "apart", "who", "that",
    "which", "because", "so", "as", "if", "when", "where", "by", "is", "are", "was", "were", "will",
})  # fmt: skip
"""Words after which a noun's name is complete."""


def known(word: str) -> bool:
    """Whether the word is a unit's name rather than a noun."""
    lower = word.lower()
    # dM is a product, dm a unit: in short ones capitals tell
    return lower in _NAMES and (word == lower or len(word) > 3 or word in _CAPITALS)


def letter(name: str) -> bool:
    """Whether one letter is a unit's symbol."""
    return name in _LETTERS


class Reader:
    """Gathers a unit's factors."""

    def __init__(self) -> None:
        self._factors: dict[str, int] = {}
        self._words: list[str] = []
        self._sign = 1
        self._power = 1
        self._tail = False
        self._in = False
        """Whether the first word was `in`: an inch, unless more words follow."""

    def word(self, word: str) -> None:
        lower = word.lower().strip(".")
        if self._tail or not lower:
            return
        if self._in:
            self._in, self._tail = False, True
        elif lower == "in" and not self._words and not self._factors:
            self._in = True
        elif lower == "per":
            self.divide()
        elif lower in _TAILS:
            self._close()
            self._tail = True
        elif lower in ("squared", "cubed"):
            self.power(_POWERS[lower])
        elif lower in _POWERS:
            self._close()
            self._power = _POWERS[lower]
        elif lower not in _FILLERS:
            if word in _LETTERS:
                lower = _LETTERS[word]
            if self._words and (lower in _NAMES or lower in _LETTERS.values()):
                self._close()
            self._words.append(lower)
            if lower in _NAMES or lower in _LETTERS.values():
                self._close(keep=True)

    def power(self, power: int) -> None:
        """The last factor's power."""
        if self._in:
            self._in, self._words = False, ["inch"]
        if self._words:
            self._power = power
            self._close()
        else:
            for name in list(self._factors)[-1:]:
                self._factors[name] *= power

    def divide(self) -> None:
        self._close()
        self._sign = -1

    def times(self) -> None:
        self._close()

    def unit(self) -> Unit:
        if self._in:
            self._words = ["inch"]
        self._close()
        found: dict[str, int] = {}
        for name, power in self._factors.items():
            for factor, exponent in _COMPOUND.get(name, ((name, 1),)):
                found[factor] = found.get(factor, 0) + exponent * power
        return tuple(sorted((name, power) for name, power in found.items() if power))

    def _close(self, *, keep: bool = False) -> None:
        """Ends a factor; `keep`: what may follow is its power."""
        if not self._words:
            return
        name = singular(self._words[-1])  # of a noun and what describes it, the noun
        self._factors[name] = self._factors.get(name, 0) + self._sign * self._power
        self._words, self._power = [], 1


def singular(word: str) -> str:
    """The one name of a unit's or a noun's spellings."""
    if (name := _NAMES.get(word)) is not None:
        return name
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and re.search(r"(?:s|x|z|ch|sh)es$", word):
        return word[:-2]
    if len(word) > 2 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def named(words: Sequence[str]) -> Unit:
    """The unit of a few words."""
    reader = Reader()
    for word in words:
        reader.word(word)
    return reader.unit()
