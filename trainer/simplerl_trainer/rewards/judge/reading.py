"""Which part of a response is its answer; of a gold text too, where it is a whole solution."""

import re

from simplerl_trainer.rewards.judge import boxes
from simplerl_trainer.rewards.judge import text as texts
from simplerl_trainer.rewards.judge.boxes import Reading

LONGEST_PROSE = 400
"""Characters after `the answer is` in which it is looked for."""

_TURN = re.compile(
    r"</s>|<\|(?:im_end|im_start|endoftext|eot_id|end_of_text|end|user|assistant|system|eom_id|start_header_id)\|>"
    r"|<(?:end_of_turn|start_of_turn|eos|EOT)>|<｜[^｜<>]{1,40}｜>|\[/?INST\]"
    r"|^[ \t]*(?:User|Human|Problem)[ \t]*:|(?<=\n)[ \t]*Question[ \t]*:",
    re.MULTILINE,
)
_PHRASE = re.compile(
    r"####[ \t]*"
    r"|(?:\bfinal[ \t]+)?\b(?:answers?|correct (?:option|choice))\b(?:[ \t]+(?:to|for|of)\b[^.\n:]{0,80}?)?[ \t*_]*"
    r"(?:(?:is|are|was|would be|will be|should be)\b|:|=)"
    r"[\s*_:]*(?:(?:therefore|thus|simply|that|equal to|given by|option|choice)\b[\s:]*)?",
    re.IGNORECASE,
)
_SAYS = re.compile(r"\b(?:is|are|equals?|gives?|get|have|hence|thus|therefore|so)\b", re.IGNORECASE)
"""Makes a sentence of a few words around mathematics."""
_BOLD = re.compile(r"(?<![\w)*])\*\*(?=\S)([^*\n]{1,200})\*\*(?![\w(*])")
"""Markdown's; `2**3**2` is a power."""
_SENTENCE_END = re.compile(r"\n|[.!?](?=\s+[A-Z$\\]|\s*$|\*)|[.!?]\s*\n")
_MATHEMATICS = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_JOINED = re.compile(r"[\s,;]*(?:and|or)?[\s,;]*")
_TRIMMED = ".,;:!?*`_\"'"
_LAST_CHARACTERS = 4000
"""Of a response without box and phrase, the last expression is looked for in so many."""


def response(text: str) -> Reading:
    """The answer in a response."""
    if (turn := _TURN.search(text)) is not None:
        text = text[: turn.start()]
    _, mark, after = text.rpartition("</think>")
    if mark:
        found = _answer(after)
        if found.text.strip(_TRIMMED + " ") or found.boxed:
            return found
    return _answer(text)


def gold(text: str) -> str:
    """The answer in a gold text: in its box, else after `####`; of prose the last expression, else all of it."""
    boxed = boxes.answer(text)
    if boxed is not None:
        return boxed.text
    _, mark, after = text.rpartition("####")
    if mark:
        return after.strip()
    stripped = text.strip()
    if _is_prose(stripped):
        return _phrase(stripped) or _last_expression(stripped) or stripped
    return stripped


def _answer(text: str) -> Reading:
    boxed = boxes.answer(text)
    if boxed is not None:
        return boxed
    if not text.strip():
        return Reading(why="it is empty")
    plain = _BOLD.sub(r"\1", text)
    found = _phrase(plain) or _whole(plain) or _last_expression(plain) or _option(plain)
    return Reading(found, why="" if found else "no answer can be read from it")


def _is_prose(text: str) -> bool:
    if "\n" in text and "\\begin" not in text:
        return True
    plain = re.sub(r"\\text\s*\{[^{}]*\}|\$[^$]*\$", " ", text)
    words = re.findall(r"(?<![\\A-Za-z{])[A-Za-z]{2,}", plain)
    if len(words) >= 3 and _SAYS.search(plain) and _MATHEMATICS.search(text) is not None:
        return True
    return len(words) >= 6 and bool(re.search(r"\d|\$", text))


def _phrase(text: str) -> str:
    """What follows the last `the answer is`."""
    for match in reversed(list(_PHRASE.finditer(text))):
        rest = text[match.end() : match.end() + LONGEST_PROSE]
        if match[0].startswith("####"):
            found = rest.split("\n")[0].strip()
            if found:
                return found
            continue
        if found := _stated(rest):
            return found
    return ""


def _stated(rest: str) -> str:
    """The answer at the beginning of what follows a phrase."""
    segments = list(_MATHEMATICS.finditer(rest))
    end = _end_of_sentence(rest, segments)
    segments = [s for s in segments if s.end() <= end]
    sentence = rest[:end].strip().strip(_TRIMMED + " ")
    if segments and not _is_money(segments[0]):
        last = segments[0]
        for segment in segments[1:]:
            if not _JOINED.fullmatch(rest[last.end() : segment.start()]):
                break
            last = segment
        before = rest[: segments[0].start()].strip(" *(")
        if not re.search(r"\d", before):
            return _inside(last) if last is segments[0] else rest[segments[0].start() : last.end()].strip()
    words = sentence.split()
    if not words:
        return ""
    if _mathy(words[0]) or words[0].startswith(("$", "\\$", "(", "[", "{")):
        run = _leading_run(words)
        # a unit, a counted noun
        return " ".join(words) if len(words) - len(run) <= 3 and not _breaks(words[len(run) :]) else " ".join(run)
    if texts.date(sentence) is not None or (len(words) <= 4 and not any(c.isdigit() for c in sentence)):
        return sentence
    return _last_run(sentence) if any(c.isdigit() for c in sentence) else (sentence if len(words) <= 4 else "")


def _end_of_sentence(rest: str, segments: list[re.Match[str]]) -> int:
    for match in _SENTENCE_END.finditer(rest):
        if match.start() == 0 or any(s.start() < match.start() < s.end() for s in segments):
            continue
        return match.start()
    return len(rest)


def _breaks(words: list[str]) -> bool:
    """Whether words after a number are not its unit."""
    return any(w.startswith("(") or w.lower().strip(_TRIMMED) in _CONJUNCTIONS for w in words) or any(
        c.isdigit() for w in words for c in w
    )


_CONJUNCTIONS = frozenset(
    ["because", "since", "so", "but", "as", "which", "where", "if", "when", "not", "is", "are", "then"]
)


def _whole(text: str) -> str:
    """The response itself where it is an answer and nothing more."""
    found = text.strip()
    if len(found) > 200 or "\n" in found:
        return ""
    words = found.split()
    if len(words) == 1 or not re.search(r"(?<![\\A-Za-z{])[A-Za-z]{2,}", found):
        return found
    match = _MATHEMATICS.fullmatch(found.rstrip("."))
    return _inside(match) if match is not None else ""


_OPTION = re.compile(r"^[ \t]*(?:\(([A-J])\)|([A-J])[).:])(?=\s|$)", re.MULTILINE)


def _option(text: str) -> str:
    """The letter of the one line that begins with an option's; several such lines list the options again."""
    found = list(_OPTION.finditer(text))
    return next(letter for letter in found[0].groups() if letter) if len(found) == 1 else ""


def _inside(segment: re.Match[str]) -> str:
    """What stands between the delimiters."""
    return next(g for g in segment.groups() if g is not None).strip()


def _last_expression(text: str) -> str:
    tail = text[-_LAST_CHARACTERS:]
    segments = [s for s in _MATHEMATICS.finditer(tail) if not _is_money(s)]
    run_start, run = _last_run_at(tail)
    if segments and segments[-1].end() > run_start:
        return _inside(segments[-1])
    return run


def _is_money(segment: re.Match[str]) -> bool:
    """Whether dollars that look like a pair are two amounts: `$5 and $6`."""
    inside = segment[2]
    if inside is None or not inside[0].isdigit():
        return False
    return bool(re.search(r"(?<![\\A-Za-z{])[A-Za-z]{2,}", inside)) or inside.rstrip()[-1] in "+-=*/"


_FUNCTION_WORDS = re.compile(r"(?:sqrt|sin|cos|tan|log|ln|pi|exp)\b")
_OPERATORS = frozenset({"+", "-", "*", "/", "=", "^", "**", "×", "·", "÷", "−", "<", ">", "≤", "≥", "±"})


def _mathy(word: str) -> bool:
    """Whether a word of prose belongs to an expression."""
    plain = word.strip(",;:!?*`\"'")
    if not plain or plain in _OPERATORS:
        return bool(plain)
    letters = re.sub(r"\\[A-Za-z]+", "", _FUNCTION_WORDS.sub("", plain))
    if re.search(r"[A-Za-z]{3,}", letters) or (re.search(r"[A-Za-z]{2}", letters) and not re.search(r"\d", letters)):
        return False
    return bool(re.search(r"[\d+*/^=√π½⅓¼∞\\]|^-?[b-hj-zB-HJ-Z]$", plain))


def _leading_run(words: list[str]) -> list[str]:
    run: list[str] = []
    for word, after in zip(words, [*words[1:], ""], strict=True):
        joint = bool(run) and word in ("and", "or") and _mathy(after)
        if not joint and not _mathy(word) and not (not run and word.startswith(("(", "[", "{", "$"))):
            break
        run.append(word)
        if word.endswith((".", "!", "?")) and word != words[-1]:
            break
    return run


def _last_run(sentence: str) -> str:
    return _last_run_at(sentence)[1]


def _last_run_at(text: str) -> tuple[int, str]:
    """Where the last expression of prose begins, and the expression."""
    words = [(m.start(), m[0]) for m in re.finditer(r"\S+", text)]
    end = len(words)
    while end > 0:
        while end > 0 and not _mathy(words[end - 1][1]):
            end -= 1
        start = end
        while start > 0 and _mathy(words[start - 1][1]):
            inside = " ".join(w for _, w in words[start:end])
            ends = (".", "!", "?", ":") if inside.count(")") > inside.count("(") else (".", "!", "?", ":", ",", ";")
            if start < end and words[start - 1][1].endswith(ends):
                break
            start -= 1
        while start < end and words[start][1] in _OPERATORS - {"-", "−", "±"}:
            start += 1
        stop = end
        while stop > start and words[stop - 1][1].strip(_TRIMMED) in _OPERATORS | {""}:
            stop -= 1
        found = " ".join(w for _, w in words[start:stop]).strip(_TRIMMED + " ")
        if re.search(r"[0-9A-Za-z∞π]", found) and re.search(r"[\d∞π]|[A-Za-z]\s*[-+*/^=]|^[b-hj-zB-HJ-Z]$", found):
            return words[start][0], _balanced(found.replace("$", "") if found.count("$") > 1 else found)
        end = start if start < end else end - 1
    return -1, ""


def _balanced(found: str) -> str:
    """Without a bracket at an end whose partner is in the prose."""
    if found.count("(") > found.count(")") and found.startswith("("):
        return found[1:]
    if found.count(")") > found.count("(") and found.endswith(")"):
        return found[:-1]
    return found
