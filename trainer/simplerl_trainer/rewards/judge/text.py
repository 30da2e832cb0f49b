"""Answers in words."""

import re

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_UNWRAPPED = re.compile(
    r"\\(?:text|mbox|textbf|textit|textrm|mathrm|mathbf|textsf|texttt|emph|textnormal|hbox)\s*\{([^{}]*)\}"
)
_SPACES = re.compile(r"\s+")
_WORDY = re.compile(r"[A-Za-z0-9 \t\n.,;:!?'\"()\-/&%]*")
_SYNONYMS = {"yes": "true", "no": "false"}
_OPTION = re.compile(r"(?:option|choice)\s+(?=\W?[A-Za-z]\b)", re.IGNORECASE)
_LETTER = re.compile(r"[({\[]?\s*([A-Za-z])\s*(?:[)}\]]\s*\.?|[.:])?")
_LETTER_FIRST = re.compile(r"(?:\(\s*([A-Za-z])\s*\)|([A-Za-z])\s*[).:])\s*\S.*", re.DOTALL)
_DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{4}"
    r"|(?:[A-Za-z]+,?\s+)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d{1,2}(?:st|nd|rd|th)?"
    r"(?:,?\s+\d{2,4})?|\d{1,2}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
    r"\.?(?:,?\s+\d{2,4})?|\d{1,2}:\d{2}(?::\d{2})?\s*[ap]\.?\s?m\.?",
    re.IGNORECASE,
)
"""Dates and times of the day, of which nothing is worked out."""


def unwrapped(text: str) -> str:
    """Without the commands around words."""
    if "\\" in text:
        text = _UNWRAPPED.sub(r" \1 ", text)
    return _SPACES.sub(" ", text).strip()


def words(text: str) -> str | None:
    """The words of a text for comparison; None where it is no text in words."""
    plain = unwrapped(text)
    if not _WORDY.fullmatch(plain) or not re.search(r"[A-Za-z]{2,}", plain):
        return None
    return _normal(plain)


def date(text: str) -> str | None:
    """The text of a date or time of day; None where it is none."""
    plain = unwrapped(text).rstrip(".")
    return _normal(plain) if len(plain) < 60 and _DATE.fullmatch(plain) else None


def _normal(plain: str) -> str:
    lower = plain.lower()
    lower = re.sub(r"(?<=\d)[.,/:\-](?=\d)", lambda m: f"\0{ord(m[0])}\0", lower)  # parts of numbers
    lower = re.sub(r"\b([ap])\.?\s?m\b\.?", r"\1m", lower)
    lower = re.sub(r"['\"]", "", lower)
    lower = re.sub(r"[.,;:!?()\-/&]", " ", lower)
    lower = _ARTICLES.sub(" ", lower)
    found = _SPACES.sub(" ", lower).strip()
    return _SYNONYMS.get(found, found)


def letter(text: str, *, followed: bool) -> str | None:
    """The one letter of a choice such as `C`, `(C)`, `C.` and, where it may be followed, `C) 12`."""
    if len(text) > 200:
        return None
    plain = _OPTION.sub("", unwrapped(text), count=1)
    match = _LETTER.fullmatch(plain)
    if match is not None:
        return match[1].upper()
    if followed and (match := _LETTER_FIRST.fullmatch(plain)) is not None:
        return (match[1] or match[2]).upper()
    return None


def choice(text: str) -> bool:
    """Whether one letter is the name of a choice rather than a variable: `C`, `(c)`."""
    plain = unwrapped(text)
    return bool(re.fullmatch(r"[A-Z]|\(\s*[A-Za-z]\s*\)|[A-Za-z]\)|[A-Z][.:]", plain))
