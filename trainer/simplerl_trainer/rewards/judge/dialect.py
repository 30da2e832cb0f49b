"""Texts of answers in one dialect: Unicode, plain text and LaTeX's many spellings become the same few commands."""

import re
import unicodedata

_SIGNS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "－": "-",
    "×": "\\times ", "⋅": "\\cdot ", "·": "\\cdot ", "∙": "\\cdot ", "•": "\\cdot ", "÷": "/", "⁄": "/", "∕": "/",
    "∞": "\\infty ", "∪": "\\cup ", "∩": "\\cap ", "∖": "\\setminus ", "∈": "\\in ", "∅": "\\emptyset ",
    "ø": "\\emptyset ", "Ø": "\\emptyset ", "ℝ": "\\mathbb{R}", "ℤ": "\\mathbb{Z}", "ℕ": "\\mathbb{N}",
    "ℚ": "\\mathbb{Q}", "ℂ": "\\mathbb{C}",
    "≤": "\\le ", "⩽": "\\le ", "≦": "\\le ", "≥": "\\ge ", "⩾": "\\ge ", "≧": "\\ge ", "≠": "\\ne ", "≈": "\\approx ",
    "≃": "\\approx ", "≅": "\\approx ", "≡": "\\equiv ", "→": "\\to ", "∑": "\\sum ", "∏": "\\prod ",
    "∫": "\\int ", "±": "\\pm ", "∓": "\\mp ", "°": "^{\\circ}", "º": "^{\\circ}",
    "′": "'", "″": "''", "’": "'", "‘": "'", "“": '"', "”": '"', "（": "(", "）": ")", "，": ", ", "：": ":", "％": "%",
    "＝": "=", "＋": "+", "［": "[", "］": "]", "｛": "{", "｝": "}", "⟨": "\\langle ", "⟩": "\\rangle ",
    "⌊": "\\lfloor ", "⌋": "\\rfloor ", "⌈": "\\lceil ", "⌉": "\\rceil ", "∠": "\\angle ", "△": "\\triangle ",
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2003": " ", "\u2002": " ", "\u3000": " ",
    "\u200b": "", "\ufeff": "", "\u2061": "", "\u2062": "", 
    "€": "\\euro ", "£": "\\pound ", "¥": "\\yen ", "¢": "\\cent ",
    "μ": "\\mu ", "µ": "\\mu ", "Å": "\\AA ",
}  # fmt: skip
GREEK = {
    **dict(zip("αβγδεζηθικλνξπρστυφχψω", (
        "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "nu", "xi",
        "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
    ), strict=True)),
    **dict(zip("ΓΔΘΛΞΠΣΦΨΩ", (
        "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega",
    ), strict=True)),
    "ϕ": "phi", "ϵ": "epsilon", "ϑ": "theta",
}  # fmt: skip
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱˣ", "0123456789+-()nix", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₙ", "0123456789+-()n", strict=True))

_RAISED_RUN = re.compile("[" + "".join(_RAISED) + "]+")
_LOWERED_RUN = re.compile("[" + "".join(_LOWERED) + "]+")
_ROOT = re.compile(r"([√∛∜])\s*(\d+(?:\.\d+)?|[A-Za-z]|\\[A-Za-z]+)?")
_ROOTS = {"√": "\\sqrt", "∛": "\\sqrt[3]", "∜": "\\sqrt[4]"}

_DIFFERENTIAL_ABOVE = re.compile(r"\\frac\s*\{\s*d\s*([A-Za-z])\s*\}\s*(\{[^{}]{1,200}\}|[A-Za-z0-9])")
"""`\\int \\frac{dx}{x}`, whose dx stands in a fraction."""
_NOON = re.compile(r"(?<![A-Za-z.])(?:[ap]\.\s?m\.?|[AP]\.\s?M\.?|(?<=\d )[AP]M)(?![A-Za-z])")
"""Before noon and after it, in one spelling."""
_LINES = re.compile(r"\\begin\{(cases|aligned|align\*?|gathered|split)\}(.*?)\\end\{\1\}", re.DOTALL)
MOST_ENVIRONMENTS = 100
"""Of a text: each that has no end is looked for to the end of the text."""
_DELIMITERS = re.compile(r"(?<!\\)\\[()\[\]]")

TEXTS = ("text", "mbox", "textbf", "textit", "textrm", "textsf", "texttt", "hbox", "textnormal", "emph")
"""Commands whose argument is words."""

_SIMPLE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\(?:dfrac|tfrac|cfrac|sfrac|nicefrac)(?![A-Za-z])", r"\\frac"),
        (r"\\(?:dbinom|tbinom)(?![A-Za-z])", r"\\binom"),
        (r"\\(?:left|right|middle|bigl|bigr|Bigl|Bigr|biggl|biggr|big|Big|bigg|Bigg)\s*(?![A-Za-z])\.?", ""),
        (r"\\(?:leqslant|leq)(?![A-Za-z])", r"\\le"),
        (r"\\(?:geqslant|geq)(?![A-Za-z])", r"\\ge"),
        (r"\\neq(?![A-Za-z])", r"\\ne"),
        (r"\\(?:simeq|cong|sim)(?![A-Za-z])", r"\\approx"),
        (r"\\(?:lbrace)(?![A-Za-z])", r"\\{"),
        (r"\\(?:rbrace)(?![A-Za-z])", r"\\}"),
        (r"\\(?:lvert|rvert|vert)(?![A-Za-z])", "|"),
        (r"\\(?:ast)(?![A-Za-z])", "*"),
        (r"\\(?:ldots|dots|cdots)(?![A-Za-z])", r"\\ldots"),
        (r"\\(?:varnothing|empty)(?![A-Za-z])", r"\\emptyset"),
        (r"\\(?:degree|degrees)(?![A-Za-z])", r"^{\\circ}"),
        (r"\\varepsilon(?![A-Za-z])", r"\\epsilon"),
        (r"\\varphi(?![A-Za-z])", r"\\phi"),
        (r"\\vartheta(?![A-Za-z])", r"\\theta"),
        (r"\\(?:backslash|smallsetminus)(?![A-Za-z])", r"\\setminus"),
        (r"\\(?:displaystyle|textstyle|limits|nolimits|rm|bf|it|large|Large|huge|Huge|centering)(?![A-Za-z])", " "),
        (r"\\(?:quad|qquad|enspace|thinspace|hspace\{[^{}]*\}|hfill|newline)(?![A-Za-z])", " "),
        (r"\{\s*\}(?=\s*[\^_])", ""),
        # 1{,}234, 1,\!234 and 10\,000 are one number
        (r"(?<=\d)\s*(?:\{,\}|,\s*\\!|\\,|\{\\,\})\s*(?=\d{3}(?!\d))", ""),
        (r"(?<!\\)\\[,;:!> ]", " "),
        (r"\^\s*\{?\s*\\circ\s*\}?", r"^{\\circ}"),
        (r"\\(?:prime)(?![A-Za-z])", "'"),
        (r"\^\s*\{\s*('+(?:\s*'+)*)\s*\}|\^\s*(?=')", r"\1"),
        (r"(?:\bnp|\bmath|\bnumpy|\bsympy)\.(?=[a-z])", ""),
        (r"\\pct(?![A-Za-z])", r"\\%"),
        (r"\{\s*([^{}]*?)\s*\\choose(?![A-Za-z])\s*([^{}]*?)\s*\}", r"\\binom{\1}{\2}"),
        # a derivative is a name: its d is no factor
        (r"\\frac\s*\{\s*d\s*([A-Za-z]?)\s*\}\s*\{\s*d\s*([A-Za-z])\s*\}", r"\\overline{d\1d\2}"),
        (
            r"\\frac\s*\{\s*d\s*\^\s*\{?2\}?\s*([A-Za-z]?)\s*\}\s*"
            r"\{\s*d\s*([A-Za-z])\s*\^\s*\{?2\}?\s*\}",
            r"\\overline{dd\1d\2d\2}",
        ),
        (
            r"\\frac\s*\{\s*(\\(?:text|mathrm)\s*\{[^{}0-9]*\})\s*\}\s*\{\s*(\\(?:text|mathrm)\s*\{[^{}0-9]*\})\s*\}",
            r" \1/\2",
        ),
    )
)  # fmt: skip


def canonical(text: str) -> str:
    """The text in the one dialect. Words stay in `\\text{…}`."""
    found = text if text.isascii() else _ascii(text)
    found = found.strip()
    if "\\" in found or "{" in found or "np." in found or "math." in found:
        if "\\sqrt" in found:
            found = re.sub(r"\\sqrt\s*(?=[0-9A-Za-z])([0-9A-Za-z])", r"\\sqrt{\1}", found)
        for pattern, replacement in _SIMPLE:
            found = pattern.sub(replacement, found)
    if "\\int" in found:
        found = _DIFFERENTIAL_ABOVE.sub(r"\\frac{1}\2 d\1", found)
    found = found.replace("~", " ")
    if ".m" in found or "M" in found:
        found = _NOON.sub(lambda m: m[0][0].lower() + "m", found)
    if 0 < found.count("\\begin") <= MOST_ENVIRONMENTS:
        found = _LINES.sub(lambda m: re.sub(r"\\\\(?:\[[^\]]*\])?", ", ", m[2].replace("&", " ")), found)
    return undollared(found).strip()


def undollared(text: str) -> str:
    """Without the signs that delimit mathematics; those of money become `\\$`."""
    if "$" in text:
        text = text.replace("$$", "$")
        bare = re.sub(r"\\\$", "\0", text)
        if "$" in bare:
            money = not bare.endswith("$") and (bare.count("$") % 2 == 1 or _prose(bare))
            bare = re.sub(r"\$", "\0", bare) if money else bare.replace("$", " ")
        text = bare.replace("\0", "\\$")
    return _DELIMITERS.sub(" ", text) if "\\" in text else text


def _prose(text: str) -> bool:
    """Whether what stands between pairs of dollars holds words, so that the dollars are money."""
    inside = text.split("$")[1::2]
    return any(re.search(r"(?<![\\A-Za-z{])[A-Za-z]{2,}", part) for part in inside)


def _ascii(text: str) -> str:
    text = _RAISED_RUN.sub(lambda m: "^{" + "".join(_RAISED[c] for c in m[0]) + "}", text)
    text = _LOWERED_RUN.sub(lambda m: "_{" + "".join(_LOWERED[c] for c in m[0]) + "}", text)
    text = _ROOT.sub(lambda m: _ROOTS[m[1]] + ("{" + m[2] + "}" if m[2] else " "), text)
    return "".join(c if c.isascii() else _sign(c) for c in text)


def _sign(c: str) -> str:
    if c in _SIGNS:
        return _SIGNS[c]
    if c in GREEK:
        return "\\" + GREEK[c] + " "
    if (digit := unicodedata.digit(c, None)) is not None:
        return str(digit)
    compatible = unicodedata.normalize("NFKC", c)
    if "\u2044" in compatible:  # ½ and its kind
        above, _, below = compatible.partition("\u2044")
        return f" \\frac{{{above}}}{{{below or '1'}}}"
    return compatible
