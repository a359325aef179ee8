"""Expressions as prefix words: values and slopes against sympy and differences, text read back, one spelling."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from rdgraph.infer.formulas.constant_fits import Archive, Candidate, factor_places, rounded, samples, simple_numbers
from rdgraph.infer.formulas.formula_search import (
    Breeder,
    is_nested,
    is_trivial,
    plain_form,
    shapes,
    signs_moved,
    split_sum,
)
from rdgraph.infer.formulas.prefix_terms import Word, end_of, evaluate, size_of, to_text, weighted_sum, with_slopes
from rdgraph.language.formula_reader import read_expression

FUNCTIONS = ("tanh", "sigmoid", "exp", "sin", "cos", "relu", "abs")
X = np.linspace(-1.3, 1.7, 23)


def drawn_words(count: int, seed: int, nested: bool = True) -> list[tuple[Word, np.ndarray]]:
    breeder = Breeder(FUNCTIONS, 1, np.random.default_rng(seed), nested)
    genes = [breeder.new_gene() for _ in range(count)]
    return [(gene.word, gene.constants) for gene in genes]


def dense(word: Word, constants: np.ndarray, x: np.ndarray) -> np.ndarray:
    """By sympy, from the text."""
    text = to_text(word, [repr(float(value)) for value in constants[0]])
    letter = sp.Symbol("H", real=True)
    names = {"relu": lambda u: sp.Max(u, 0), "sigmoid": lambda u: 1 / (1 + sp.exp(-u)), "H": letter}
    expression = sp.sympify(text, locals=names)
    with np.errstate(all="ignore"):
        return np.broadcast_to(sp.lambdify(letter, expression, "numpy")(x), x.shape).astype(float)


def test_the_text_says_what_is_computed() -> None:
    checked = 0
    for word, constants in drawn_words(150, 3):
        made = evaluate(word, constants, X)[0]
        if np.isfinite(made).all() and np.abs(made).max() < 1e6:
            np.testing.assert_allclose(dense(word, constants, X), made, rtol=1e-8, atol=1e-9)
            checked += 1
    assert checked > 100


def test_slopes_are_those_of_differences() -> None:
    checked, step = 0, 1e-6
    for word, constants in drawn_words(120, 5):
        values, slopes = with_slopes(word, constants, X, along_letter=True)
        moved = [evaluate(word, constants, X + way * step)[0] for way in (1, -1)]
        away = np.abs(X) > 1e-3
        for k in range(constants.shape[1]):
            shift = step * np.eye(constants.shape[1])[k]
            up, down = (evaluate(word, constants + way * shift, X)[0] for way in (1, -1))
            if np.abs(values).max() < 1e3 and not {"relu", "abs"} & set(word):
                np.testing.assert_allclose(slopes[k, 0], (up - down) / (2 * step), rtol=1e-3, atol=1e-4)
        if np.abs(values).max() < 1e3 and np.abs(slopes).max() < 1e3 and not {"relu", "abs"} & set(word):
            np.testing.assert_allclose(
                slopes[-1, 0][away], ((moved[0] - moved[1]) / (2 * step))[away], rtol=1e-3, atol=1e-4
            )
            checked += 1
    assert checked > 40


def test_one_spelling_keeps_the_values() -> None:
    for word, constants in drawn_words(150, 7):
        spelled, kept = plain_form(word, constants)
        before, after = evaluate(word, constants, X), evaluate(spelled, kept, X)
        good = np.isfinite(before) & (np.abs(before) < 1e6)
        np.testing.assert_allclose(after[good], before[good], rtol=1e-7, atol=1e-9)
        factor = np.array([-1.7])
        turned, moved, inner = signs_moved(spelled, factor, kept)
        made = moved[:, None] * evaluate(turned, inner, X)
        np.testing.assert_allclose(made[good], (factor[:, None] * before)[good], rtol=1e-7, atol=1e-8)


def test_a_sum_is_split_into_its_terms() -> None:
    terms: list[Word] = [("x",), ("tanh", "*", "c", "x"), ("1",)]
    candidate = Candidate(weighted_sum(terms), np.array([[1.0, 2.0, 3.0, 4.0]]), 0.0)
    genes = split_sum(candidate)
    assert [gene.word for gene in genes] == terms
    assert genes[1].constants.tolist() == [[3.0]]
    assert factor_places(candidate.word) == {0, 1, 3}
    assert size_of(candidate.word) == sum(size_of(word) for word in terms) + 2 * 3 + 1 + 2


@pytest.mark.parametrize(
    ("word", "names", "expected"),
    [
        (("-", "x", "*", "c", "square", "x"), ["-a"], "H + a*H**2"),
        (("*", "+", "x", "1", "-", "1", "x"), [], "(H + 1)*(1 - H)"),
        (("/", "x", "*", "c", "x"), ["2*a"], "H/(2*a*H)"),
        (("/", "x", "c"), ["2*a"], "H/(2*a)"),
        (("square", "c"), ["2*a"], "(2*a)**2"),
        (("+", "*", "c", "x", "+", "*", "c", "cube", "x", "c"), ["a", "-b", "-c"], "a*H - b*H**3 - c"),
    ],
)
def test_text(word: Word, names: list[str], expected: str) -> None:
    assert to_text(word, names) == expected
    assert read_expression(expected) is not None


def test_idle_parts_and_nested_functions_are_seen() -> None:
    assert is_trivial(("/", "tanh", "x", "tanh", "x"))
    assert is_trivial(("sin", "2"))
    assert not is_trivial(("-", "1", "x"))
    assert not any(is_nested(word) for word, _ in drawn_words(80, 1, nested=False))
    assert all(end_of(word, 0) == len(word) for word in shapes(FUNCTIONS))


def test_simple_numbers_are_taken_where_the_error_allows_it() -> None:
    word: Word = ("*", "c", "*", "x", "-", "c", "x")
    target = samples(X, 2.34 * X * (1.004 - X), noise=0.05)
    start = Candidate(word, np.array([[2.34, 1.004]]), 0.0)
    simple, notes = rounded(target, start, np.inf, 3.84 * 0.05**2)
    assert simple.word == ("*", "c", "*", "x", "-", "1", "x")
    assert [(note.number, note.was) for note in notes] == [("1", "1.004")]
    strict, none = rounded(target, start, np.inf, 1e-9)
    assert strict.word == word
    assert not none
    assert not simple_numbers(0.0)


def test_the_archive_keeps_the_best_of_each_size() -> None:
    archive = Archive(max_size=8, keep=2)
    for squares in (3.0, 1.0, 2.0):
        archive.add(Candidate(("*", "c", "x"), np.array([[squares]]), squares))
    archive.add(Candidate(("c",), np.array([[1.0]]), 9.0))
    archive.add(Candidate(("*", "c", "tanh", "x"), np.array([[1.0]]), 1.0))
    assert [c.squares for c in archive] == [9.0, 1.0, 1.0]
    assert [c.size for c in archive.front()] == [2, 4]
    assert not archive.add(Candidate(("cube", "cube", "cube", "cube", "x"), np.zeros((1, 0)), 0.0))


@pytest.mark.parametrize("change", [-1e-9, 0.0, 1e-9])
@pytest.mark.parametrize("squares", [1.0, np.exp(0.000005), 0.37])
def test_of_two_spellings_of_a_formula_the_first_one_is_kept_despite_rounding(squares: float, change: float) -> None:
    archive = Archive(max_size=8)
    first, second = ("*", "c", "x"), ("*", "x", "c")
    for word, own in ((first, squares), (second, squares * (1 + change))):
        archive.add(Candidate(word, np.array([[1.0]]), own))
    assert [c.word for c in archive] == [first, second]
    archive.add(Candidate(("-", "c", "x"), np.array([[1.0]]), 0.9 * squares))
    assert archive.front()[0].word == ("-", "c", "x")
