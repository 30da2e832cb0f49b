"""Answers made at random: equal in every spelling, different when anything in them changes."""

from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from simplerl_trainer.rewards.judge import judge

WHOLE = st.one_of(st.integers(-(10**14), 10**14), st.integers(-30, 30))
DECIMAL = st.decimals(-(10**6), 10**6, places=4).map(lambda d: d.normalize() + 0)
SMALL = st.integers(-9, 9)


def verdict(answer: str, gold: str) -> str:
    return str(judge(f"so $\\boxed{{{answer}}}$.", gold).verdict)


SPELLINGS = [
    str, "{:,}".format, "{:.1f}".format, "00{}".format, "{}.".format, "${}$".format, "\\text{{{}}}".format,
    "{} apples".format, "\\${}".format, "{}^\\circ".format, "x = {}".format, "\\frac{{{}}}{{1}}".format,
    "{}\\,\\text{{cm}}".format, "({})".format, "**{}**".format, "The answer is {}".format, "\\frac{{-{}}}{{-1}}".format,
]  # fmt: skip


@given(st.integers(0, 10**12), st.sampled_from(SPELLINGS), st.booleans())
def test_a_number_is_itself_in_every_spelling_and_no_other_one(number, spelling, turned) -> None:
    answer, gold = spelling(number), str(number)
    assert verdict(*((gold, answer) if turned else (answer, gold))) == "equal"
    assert verdict(spelling(number + 1), gold) == "different"
    assert verdict(f"-{number + 1}", str(number + 1)) == "different"


@given(WHOLE, WHOLE)
def test_whole_numbers_are_equal_where_they_are(a: int, b: int) -> None:
    assert (verdict(str(a), f"so\n#### {b:,}") == "equal") == (a == b)


@given(DECIMAL, st.integers(1, 400), st.integers(1, 400))
def test_fractions_and_decimals_are_exact(decimal, above: int, below: int) -> None:
    ratio = Fraction(above, below)
    assert verdict(f"\\frac{{{above}}}{{{below}}}", f"{ratio.numerator}/{ratio.denominator}") == "equal"
    assert (verdict(f"{decimal:f}", f"\\frac{{{above}}}{{{below}}}") == "equal") == (Fraction(decimal) == ratio)
    assert verdict(f"{above / below:.6f}", f"{above}/{below}") == (
        "equal" if Fraction(f"{above / below:.6f}") == ratio else "different"
    )


@given(st.lists(SMALL, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_tuples_have_an_order_and_lists_have_none(items: list[int], random) -> None:
    shuffled = random.sample(items, len(items))
    joined, other = ", ".join(map(str, items)), ", ".join(map(str, shuffled))
    assert verdict(f"({joined})", f"({joined})") == "equal"
    assert (verdict(f"({other})", f"({joined})") == "equal") == (items == shuffled)
    assert (verdict(other, f"({joined})") == "equal") == (items == shuffled)
    assert verdict(other, joined) == "equal"
    assert verdict(f"\\{{{other}\\}}", f"\\{{{joined}\\}}") == "equal"
    assert verdict(f"{joined}, 10", joined) == verdict(joined, f"{joined}, 10") == "different"


@given(SMALL, SMALL, st.sampled_from("()[]"), st.sampled_from("()[]"), st.booleans(), st.booleans())
def test_intervals_are_their_brackets_and_ends(a: int, b: int, left, right, opens: bool, closes: bool) -> None:
    assume(a < b)
    gold = f"{'(' if opens else '['}{a}, {b}{')' if closes else ']'}"
    left, right = ("(" if left in "()" else "["), (")" if right in "()" else "]")
    same = (left == "(") == opens and (right == ")") == closes
    assert (verdict(f"{left}{a}, {b}{right}", gold) == "equal") == same
    relation = f"{a} {'<' if opens else chr(92) + 'le'} x {'<' if closes else '≤'} {b}"
    assert verdict(relation, gold) == verdict(gold, relation) == "equal"
    assert verdict(f"{left}{a}, {b + 1}{right}", gold) == "different"


POLYNOMIAL = st.lists(SMALL, min_size=2, max_size=4)


def written(coefficients: list[int], variable: str = "x") -> str:
    terms = [f"{c}{variable}^{{{i}}}" if i else str(c) for i, c in enumerate(coefficients)]
    return " + ".join(terms).replace("+ -", "- ")


@given(POLYNOMIAL, POLYNOMIAL)
def test_polynomials_are_equal_where_their_coefficients_are(a: list[int], b: list[int]) -> None:
    product = [0] * (len(a) + len(b) - 1)
    for i, c in enumerate(a):
        for j, d in enumerate(b):
            product[i + j] += c * d
    assert verdict(f"({written(a)})({written(b)})", written(product)) == "equal"
    product[0] += 1
    assert verdict(f"({written(a)})({written(b)})", written(product)) == "different"


@given(POLYNOMIAL, st.integers(2, 9))
def test_an_equation_is_itself_times_any_factor(a: list[int], factor: int) -> None:
    assume(any(a[1:]))
    gold = f"{written(a)} = y^2"
    assert verdict(f"{factor}({written(a)}) - {factor}y^2 = 0", gold) == "equal"
    assert verdict(f"{factor}({written(a)}) - {factor}y^2 = 1", gold) == "different"


@given(st.integers(1, 10**6), st.integers(1, 400))
def test_percent_is_a_hundredth_or_left_out(number: int, share: int) -> None:
    assert verdict(f"{share}\\%", f"{share}/100") == verdict(f"{share}/100", f"{share}\\%") == "equal"
    assert verdict(f"{share}\\%", str(share)) == "equal"
    assert verdict(str(share), f"{share}/100") == "different"
    assert verdict(f"{share}\\%", f"{share + 1}\\%") == "different"


@given(st.integers(2, 60).filter(lambda n: int(n**0.5) ** 2 != n), SMALL, st.integers(1, 9))
def test_roots_are_exact(radicand: int, a: int, b: int) -> None:
    gold = f"{a} + {b}\\sqrt{{{radicand}}}"
    assert verdict(f"{b}√{radicand} + {a}", gold) == "equal"
    assert verdict(f"{a} + \\sqrt{{{b * b * radicand}}}", gold) == "equal"
    assert verdict(f"{a + b * radicand**0.5:.12f}", gold) == "different"
    assert verdict(f"{a} - {b}\\sqrt{{{radicand}}}", gold) == "different"
    assert verdict(f"{a} \\pm {b}\\sqrt{{{radicand}}}", f"{a}-{b}\\sqrt{{{radicand}}}, {gold}") == "equal"


@given(st.integers(1, 10**6), st.floats(0.001, 0.2))
def test_a_tolerance_is_a_share_of_the_gold_number(number: int, tolerance: float) -> None:
    near, far = number * (1 + tolerance * 0.99), number * (1 + tolerance * 1.01)
    assert judge(f"\\boxed{{{near:.12f}}}", str(number), tolerance).verdict == "equal"
    assert judge(f"\\boxed{{{far:.12f}}}", str(number), tolerance).verdict == "different"
