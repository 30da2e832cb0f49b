"""Texts that are made to hang, to crash or to run code: each costs little, and the verdict is the same every time."""

import subprocess
import sys
import time

import pytest

from simplerl_trainer.rewards.judge import judge

HOSTILE = {
    "a tower of powers": "10^{10^{10}}",
    "a tower of powers without braces": "10^10^10",
    "nines": "9^{9^{9^{9}}}",
    "a power of a large power": "2^{100000000}",
    "an exponent of many digits": "1e999999999",
    "a factorial": "100000!",
    "factorials of factorials": "9!!!!!!!!",
    "a root of a tower": r"\sqrt{10^{10^{10}}}",
    "an exponential": r"e^{e^{e^{100}}}",
    "a sine of a tower": r"\sin(10^{10^{10}})",
    "a binomial": r"\binom{10^9}{5\cdot 10^8}",
    "100 kB of digits": "7" * 100_000,
    "100 kB of decimals": "0." + "3" * 100_000,
    "100 kB of nested braces": "{" * 50_000 + "}" * 50_000,
    "100 kB of brackets": "(" * 50_000 + "1" + ")" * 50_000,
    "open brackets": "(" * 100_000,
    "open braces": "{" * 100_000,
    "nested fractions": r"\frac{1}{1+" * 3000 + "1" + "}" * 3000,
    "nested roots": r"\sqrt{" * 3000 + "2" + "}" * 3000,
    "a long sum": "+".join(["x"] * 50_000),
    "a long product": "*".join(["x"] * 1_900),
    "a long chain of powers": "^".join(["2"] * 1_900),
    "a long list": ",".join(str(i) for i in range(2_000)),
    "a long tuple of variables": "(" + ",".join(f"x_{i}" for i in range(600)) + ")",
    "many plus-minus signs": r"\pm ".join(["1"] * 1_000),
    "many unions": r"\cup".join(f"({i},{i + 1})" for i in range(300)),
    "many open boxes": r"\boxed{" * 5_000,
    "many sines beside many digits": "+".join(rf"\sin({i})" for i in range(300)) + "+0." + "3" * 3900,
    "a binomial of decimals beside many digits": r"\binom{0.5}{0.3} + 0." + "3" * 900,
    "many boxes": r"\boxed{1}" * 5_000,
    "many dollars": "$" * 50_000,
    "many backslashes": "\\" * 50_000,
    "many spaces": " " * 100_000 + "1",
    "many stars": "*" * 50_000,
    "many letters": "a" * 50_000,
    "many words": "word " * 20_000,
    "many signs": "-" * 20_000 + "1",
    "many commas": "1" + ",000" * 20_000,
    "text in text": r"\text{" * 5_000 + "}" * 5_000,
    "code": "__import__('os').system('touch /tmp/judged')",
    "code in LaTeX": r"\text{__import__('os').system('touch /tmp/judged')}",
    "an attribute": "().__class__.__bases__[0].__subclasses__()",
    "a lambda": "(lambda: 0).__globals__",
    "null bytes": "\x00" * 1000 + "1",
    "half a pair": "\ud800",
    "combining marks": "1" + "\u0301" * 10_000,
    "right to left": "\u202e5",
    "a tower of roots": r"\sqrt[3]{" * 500 + "2" + "}" * 500,
    "roots of roots without braces": r"\sqrt" * 3000 + "2",
    "10,000 fractions in each other": r"\frac{1}{" * 10_000 + "2" + "}" * 10_000,
    "fractions that never close": r"\frac{1}{" * 10_000,
    "factorials of a nine": "9!!!!",
    "factorials in brackets": "((((9!)!)!)!)!",
    "a quotient of factorials": "3000!/2999!" + "+3000!" * 100,
    "100 kB of commas": "," * 100_000,
    "100 kB of full stops": "." * 100_000,
    "100 kB of braces that close": "}" * 100_000,
    "100 kB of exclamation": "5" + "!" * 100_000,
    "100 kB of primes": "f" + "'" * 100_000,
    "100 kB of carets": "2" + "^" * 100_000 + "2",
    "100 kB of underscores": "x" + "_" * 100_000,
    "100 kB of equals": "=" * 100_000 + "4",
    "100 kB of bars": "|" * 100_000,
    "100 kB of percents": "5" + "%" * 100_000,
    "100 kB of tabs and lines": "\t\n" * 50_000 + "5",
    "groups of three": "1" + " 000" * 25_000,
    "groups of three that end ill": "1" + " 000" * 25_000 + "0",
    "a matrix of 10,000 cells": r"\begin{pmatrix}"
    + r"\\".join("&".join(["1"] * 100) for _ in range(100))
    + r"\end{pmatrix}",
    "a matrix in a matrix": r"\begin{pmatrix}" * 2_000 + "1" + r"\end{pmatrix}" * 2_000,
    "a matrix without end": r"\begin{pmatrix}" + "1&" * 20_000,
    "environments that do not match": r"\begin{cases}" * 3_000 + r"\end{aligned}" * 3_000,
    "an interval of huge numbers": "(" + "9" * 3_000 + "," + "9" * 3_001 + ")",
    "an interval of towers": r"[9^{9^{9}}, 10^{10^{10}})",
    "a union of towers": r"(-\infty, 2^{2^{99}}) \cup (3^{3^{99}}, \infty)",
    "an inequality of a high degree": "x^{900} - x^{899} + 1 < 0",
    "a huge base": "1" * 90 + "_{16}",
    "a huge modulus": r"2^{10^{9}} \pmod{10^{10^{10}}}",
    "many moduli": ",".join(rf"x \equiv {i} \pmod{{7}}" for i in range(250)),
    "many integrals": "+".join(rf"\int_0^{{{i}}} x dx" for i in range(200)),
    "many equal sums": "+".join([r"\sum_{i=1}^{n} \sin(i x)"] * 200),
    "sums in each other": r"\sum_{i=1}^n " * 1_000 + "i",
    "integrals in each other": r"\int " * 1_000 + "x" + r"\,dx" * 1_000,
    "integrals without an end": r"\int_0^1 x " * 900,
    "limits in each other": r"\lim_{x \to 0} " * 1_000 + "x",
    "many sets with bars": ",".join([r"\{x | x > 2\}"] * 300),
    "many labels": ", ".join(f"({c}) 1" for c in "abcdefgh" * 500),
    "many words before a gap": ("the answer is " * 5_000) + "4" + " the" * 5_000,
    "many boxes with long gaps": (r"\boxed{1} for part (a) " * 4_000),
    "many boxes of boxes": r"\boxed{\boxed{\fbox{" * 1_000 + "5" + "}}}" * 1_000,
    "many thoughts": "<think>" * 5_000 + "</think>" * 5_000 + r"\boxed{5}",
    "many turns": "<|im_start|>" * 5_000 + r"\boxed{5}",
    "many hashes": "####" * 25_000 + "5",
    "null bytes among digits": "\x00".join("1" * 5_000),
    "marks of both directions": "\u202e\u202d\u2066\u2069" * 5_000 + "5",
    "a half pair in a command": "\\frac{\ud83d}{\udc00}",
    "signs of a private area": "\ue000\uf8ff" * 5_000,
    "digits of many scripts": "٣३๓༣" * 1_000,
    "many superscripts": "2" + "²³" * 5_000,
    "many fractions of one sign": "½" * 5_000,
    "bait for backtracking in dates": "January " * 3_000 + "1" * 3_000,
    "bait for backtracking in units": "5 " + "cm * " * 3_000,
    "bait for backtracking in money": "$1" * 20_000,
    "bait for backtracking in bold": "**a" * 20_000,
    "bait for backtracking in choices": "(A) " * 20_000,
    "bait for backtracking in primes": "x^{" + "' " * 20_000 + "}",
    "bait for backtracking in derivatives": r"\frac{d x}{d " * 5_000,
    "bait for backtracking in choose": "{" + "1 " * 5_000 + r"\choose" + " 1" * 5_000 + "}",
    "bait for backtracking in degrees": "5" + "^ { " * 20_000 + r"\circ",
    "bait for backtracking in bases": "1" * 50 + "A" * 40 + "_",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_text_costs_little(text: str) -> None:
    start = time.process_time()
    answers = [judge(f"\\boxed{{{text}}}", "4"), judge("\\boxed{4}", text), judge(text, "4"), judge(text, text)]
    assert time.process_time() - start < 4, [a.verdict for a in answers]
    # what is equal to 4 is so for a reason: many boxes, signs or spaces around it
    assert answers[0].verdict != "equal"
    again = [judge(f"\\boxed{{{text}}}", "4"), judge("\\boxed{4}", text)]
    assert answers[:2] == again


@pytest.mark.parametrize("text", ["10^{10^{10}}", "9" * 100_000, "1e999999999"], ids=lambda t: t[:12])
def test_a_huge_number_is_equal_by_its_text_and_undecided_otherwise(text: str) -> None:
    assert judge(f"\\boxed{{{text}}}", text).verdict == "equal"
    assert judge(f"\\boxed{{{text}}}", "4").verdict == "timeout"
    assert judge("\\boxed{4}", text).verdict == "timeout"


PROGRAM = """
import sys
ran = []
sys.addaudithook(lambda event, args: ran.append(event) if event in ("compile", "exec", "os.system") else None)
from simplerl_trainer.rewards.judge import judge
judge(r"\\boxed{x^2 < 4}", "x < 3")
ran.clear()
for text in sys.argv[1:]:
    judge(text, "4"), judge("4", text), judge("\\\\boxed{" + text + "}", text), judge(text + " < 3", "x < 3")
print(ran)
"""


def test_no_text_is_compiled_or_run() -> None:
    texts = [t for name, t in HOSTILE.items() if name in ("code", "code in LaTeX", "an attribute", "a lambda")]
    command = [sys.executable, "-c", PROGRAM, *texts, "x**2", "sin(x)", "Symbol('x')"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
