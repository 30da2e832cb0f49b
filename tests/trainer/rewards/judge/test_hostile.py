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
