"""Each behaviour once: merges are proved by the core, and held against numbers that share no code with them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rdgraph as rd
from gread.discovery.behaviours import (
    ABSORBED,
    IDENTITY,
    RENAMED,
    REPARAMETRISED,
    REPEATED,
    SPELLED,
    Behaviours,
    Merge,
    TermVectors,
)
from gread.discovery.term_grammar import Line, Term, TermGrammar, find_terms
from gread.settings.gread_settings import GreadSettings
from rdgraph.theory.equality.dense_oracle import evaluate
from tests.property_examples import examples

GRAMMAR = find_terms("default")
#: Vectors that are worked out once for all tests.
VECTORS, PLAIN = TermVectors(), TermVectors(with_identities=False)
#: Residuals, as shares of what is fitted, below and above which two spaces are the same, and differ.
SAME, APART = 1e-8, 1e-5


def sampled(line: Line, seed: int = 0, samples: int = 6) -> np.ndarray:
    """Values of every term, sign included, at random states of random graphs; a column for each term."""
    columns = []
    for term in line.terms:
        tree = rd.parse(term.body).expression
        rng, values = np.random.default_rng(seed), []
        for _ in range(samples):
            n = int(rng.integers(4, 8))
            links = np.triu(rng.random((n, n)) < 0.6, 1)
            weights = (links + links.T).astype(float)
            degrees = weights.sum(1, keepdims=True)
            state, start = rng.normal(size=(2, n, 2))
            A = np.divide(weights, degrees, out=np.zeros_like(weights), where=degrees > 0)
            values.append(np.broadcast_to(evaluate(tree, {"A": A, "H": state, "H0": start}), (n, 2)).ravel())
        columns.append(np.concatenate(values) * (-1 if term.sign == "-" else 1))
    return np.stack(columns, axis=1)


def residual(columns: np.ndarray, targets: np.ndarray) -> float:
    """How much of the worst target is left beside the span of the columns."""
    fitted = columns @ np.linalg.lstsq(columns, targets, rcond=None)[0]
    sizes = np.linalg.norm(targets, axis=0)
    return float(np.max(np.linalg.norm(targets - fitted, axis=0) / np.where(sizes > 0, sizes, 1.0)))


def free(*bodies: str) -> Line:
    return GRAMMAR.line([Term(body) for body in bodies])


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        (free("H", "sigmoid(H)*H"), free("H", "tanh(H/2)*H"), IDENTITY),
        (free("A@H", "sigmoid(2*H)*(A@H)"), free("tanh(H)*(A@H)", "sigmoid(2*H)*(A@H)"), IDENTITY),
        (free("A@L@H"), free("L@A@H"), SPELLED),
        (free("H", "tanh(H)"), free("tanh(H)", "H"), RENAMED),
        (free("L@H"), free("L@H", "H - A@H"), ABSORBED),
        (free("H", "A@H"), free("H", "L@H"), REPARAMETRISED),
        (free("H", "relu(H)"), free("H", "abs(H)"), IDENTITY),
        (free("H", "softplus(H)"), free("softplus(-H)", "H"), IDENTITY),
        (free("sin(2*H)"), free("sin(H)*cos(H)"), IDENTITY),
        (free("abs(tanh(H))"), free("tanh(abs(H))"), IDENTITY),
        (free("A@abs(tanh(A@H))", "H"), free("H", "A@tanh(abs(A@H))"), IDENTITY),
        (free("relu(tanh(L@H))"), free("tanh(relu(L@H))"), IDENTITY),
        (free("H**0", "sigmoid(2*abs(H))"), free("abs(tanh(H))", "H**0"), IDENTITY),
        (free("abs(H)*sin(H)", "cos(abs(H))"), free("cos(H)", "H*sin(abs(H))"), IDENTITY),
        (free("L@H0", "A@H0"), free("H0", "A@H0"), REPARAMETRISED),
        (free("H"), free("H"), REPEATED),
    ],
)
def test_a_merge_says_which_rule(first: Line, second: Line, rule: str) -> None:
    seen = Behaviours()
    assert seen.add(first) is None
    merge = seen.add(second)
    assert merge is not None
    assert (merge.into, merge.rule) == (first, rule)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (free("H"), free("A@H")),
        (free("H", "A@H"), free("H", "A@A@H")),
        (free("H"), free("H0")),
        (free("tanh(H)"), free("tanh(A@H)")),
        (free("sin(abs(H))"), free("abs(sin(H))")),
        (free("exp(-abs(H))"), free("exp(-H)")),
        (free("tanh(abs(H))"), free("tanh(H)")),
        (free("A@tanh(H)"), free("tanh(A@H)")),
        (GRAMMAR.line([Term("H**3", "+")]), GRAMMAR.line([Term("H**3", "-")])),
        (GRAMMAR.line([Term("H**3", "+")]), GRAMMAR.line([Term("H**3")])),
        (GRAMMAR.line([Term("H**3", "+")]), GRAMMAR.line([Term("2*H**3", "+")])),  # coefficients end at 1
        (GRAMMAR.line([Term("L@H", "-"), Term("L@H0", "+")]), GRAMMAR.line([Term("L@H", "-"), Term("L@H0", "-")])),
    ],
)
def test_what_differs_is_kept(first: Line, second: Line) -> None:
    seen = Behaviours()
    assert seen.add(first) is None
    assert seen.add(second) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (free("H", "A@H"), free("H", "L@H")),
        (free("H0", "A@H0"), free("A@H0", "L@H0")),
        (free("A@L@H"), free("L@A@H")),
        (free("tanh(L@H)"), free("tanh(H - A@H)")),
    ],
)
def test_a_laplacian_of_degrees_is_no_sum_of_the_state_and_its_neighbours(first: Line, second: Line) -> None:
    """Where A is that of the graph as it is, L is D - A: on a path no coefficients give the same right-hand sides."""
    raw = GreadSettings(adjacency="original", normalisation="none")
    for settings_, is_merged in ((raw, False), (replace(raw, adjacency="soft"), True), (GreadSettings(), True)):
        seen = Behaviours.under(settings_)
        assert seen.add(first) is None
        assert (seen.add(second) is not None) is is_merged
    A = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    state, start = np.random.default_rng(0).normal(size=(2, 4, 1))
    given = {"A": A, "L": np.diag(A.sum(1)) - A, "H": state, "H0": start}
    own, others = (
        np.stack([eval(t.body, {"tanh": np.tanh, **given}).ravel() for t in each.terms], axis=1)
        for each in (first, second)
    )
    assert residual(own, others) > APART


def test_with_a_laplacian_of_degrees_the_rest_is_merged() -> None:
    seen = Behaviours.under(GreadSettings(adjacency="original", normalisation="none"))
    for line in (free("L@H", "H"), free("relu(L@H)", "L@H")):
        assert seen.add(line) is None
    found = [seen.add(line) for line in (free("H", "L@H"), free("abs(L@H)", "L@H"))]
    assert [merge and merge.rule for merge in found] == [RENAMED, IDENTITY]


def test_a_signed_term_is_absorbed_by_a_free_one() -> None:
    seen = Behaviours()
    seen.add(free("L@H"))
    merge = seen.add(GRAMMAR.line([Term("L@H"), Term("H - A@H", "-")]))
    assert merge is not None
    assert merge.coefficients == "alpha = alpha - beta"


def _substituted(merge: Merge) -> str:
    """The equation that stands, with the coefficients that the merge gives it, in letters of the merged one."""
    given = dict(part.split(" = ") for part in merge.coefficients.split(", "))
    names = "|".join(merge.into.coefficients)
    return re.sub(rf"\b({names})\b", lambda found: f"({given[found[0]]})", merge.into.formula)


@pytest.fixture(scope="module")
def enumerated() -> Behaviours:
    seen = Behaviours()
    for line in GRAMMAR.lines(2):
        seen.add(line)
    return seen


def test_the_core_proves_merges_with_their_coefficients(enumerated: Behaviours) -> None:
    """`rd.equivalent` shares the normal form alone with the linear algebra of merges."""
    by_rule: dict[str, list[Merge]] = {}
    for merge in enumerated.merges.values():
        by_rule.setdefault(merge.rule, []).append(merge)
    assert set(by_rule) == {SPELLED, ABSORBED, REPARAMETRISED, IDENTITY}
    for merges in by_rule.values():
        for merge in merges[:: max(1, len(merges) // 6)]:
            notes = merge.line.text.partition(" where ")[2]
            answer = rd.equivalent(merge.line.text, f"{_substituted(merge)} where {notes}")
            assert answer.outcome == "proved", (merge.line.text, merge.into.text, merge.coefficients)


def test_merged_pairs_reach_the_same_on_random_graphs(enumerated: Behaviours) -> None:
    for merge in enumerated.merges.values():
        own, other = sampled(merge.line), sampled(merge.into)
        assert residual(other, own) < SAME, merge
        if all(term.is_free for term in (*merge.line.terms, *merge.into.terms)):
            assert residual(own, other) < SAME, merge


def test_mapped_coefficients_stay_where_they_may_be() -> None:
    """Coefficients of a merged equation, in (0, 1) where signed, give such ones of the other one, and back."""
    rng, seen, checked = np.random.default_rng(0), Behaviours(_vectors=VECTORS, _plain=PLAIN), 0
    for line in GRAMMAR.lines(2):
        merge = seen.add(line)
        if merge is None or all(term.is_free for term in line.terms):
            continue
        for own, other in ((merge.line, merge.into), (merge.into, merge.line)):
            matrix = VECTORS.coefficient_map(own, other)
            if matrix is None:
                continue
            values = [rng.normal() if term.is_free else rng.uniform() for term in own.terms]
            mapped = np.array(matrix, dtype=float) @ values
            assert all(t.is_free or 0 < c < 1 for t, c in zip(other.terms, mapped, strict=True)), merge
            checked += 1
    assert checked > 50


def test_kept_pairs_are_told_apart_by_a_witness() -> None:
    """Of free equations of up to two terms, every pair that is kept has states on which the spaces differ."""
    free_terms = tuple(term for term in GRAMMAR.terms if term.is_free)
    grammar = TermGrammar("free", "", free_terms, GRAMMAR.names)
    seen = Behaviours()
    for line in grammar.lines(2):
        seen.add(line)
    single = {term: sampled(grammar.line([term])) for term in free_terms}
    lines = list(seen.lines.values())
    assert len(lines) > 300
    frames = []
    for line in lines:
        basis, _ = np.linalg.qr(np.concatenate([single[term] for term in line.terms], axis=1))
        frames.append(basis)
    for count in (1, 2):
        own = [(line, frame) for line, frame in zip(lines, frames, strict=True) if line.size == count]
        stacked = np.stack([frame for _, frame in own])
        # |P - Q|^2 = 2 (r - |X^T Y|^2) for spaces of dimension r
        overlap = np.einsum("ank,bnl->abkl", stacked, stacked, optimize=True)
        gaps = count - (overlap**2).sum((2, 3))
        pairs = gaps[np.triu_indices(len(own), 1)]
        assert pairs.min() > APART**2


@settings(max_examples=examples(20), deadline=None)
@given(st.data())
def test_random_changes_of_basis_are_merged(data: st.DataObject) -> None:
    """Free equations whose terms are invertible combinations of each other behave alike, whatever the terms."""
    bodies = data.draw(st.lists(st.sampled_from([t.body for t in GRAMMAR.terms]), min_size=2, max_size=3, unique=True))
    size = len(bodies)
    numbers = st.lists(st.integers(-3, 3), min_size=size, max_size=size)
    matrix = data.draw(st.lists(numbers, min_size=size, max_size=size))
    mixed = [" + ".join(f"({c})*({body})" for c, body in zip(row, bodies, strict=True)) for row in matrix]
    seen = Behaviours(_vectors=VECTORS, _plain=PLAIN)
    seen.add(free(*bodies))
    merge = seen.add(free(*mixed))
    if round(np.linalg.det(np.array(matrix))) != 0:
        assert merge is not None
        assert residual(sampled(merge.into), sampled(merge.line)) < SAME
    elif merge is not None:  # the terms themselves may depend on each other
        assert residual(sampled(merge.line), sampled(merge.into)) < SAME


@settings(max_examples=examples(25), deadline=None)
@given(st.data())
def test_merges_of_random_lines_hold_in_numbers(data: st.DataObject) -> None:
    """Lines from all terms, free and signed, in any order: what is merged has a map of coefficients in numbers, too."""
    terms = st.lists(st.sampled_from(GRAMMAR.terms), min_size=1, max_size=3, unique_by=lambda term: term.body)
    seen = Behaviours(_vectors=VECTORS, _plain=PLAIN)
    for line in data.draw(st.lists(terms, min_size=8, max_size=20)):
        merge = seen.add(GRAMMAR.line(line))
        if merge is not None and merge.rule != REPEATED:
            assert residual(sampled(merge.into), sampled(merge.line)) < SAME


def test_all_pairs_of_terms_are_counted() -> None:
    """An enumeration has every choice of terms without both signs of one, in a stable order."""
    lines = list(GRAMMAR.lines(2))
    pairs = [pair for pair in combinations(GRAMMAR.terms, 2) if pair[0].body != pair[1].body]
    assert [line.terms for line in lines if line.size == 2] == pairs
    assert [line.text for line in lines] == [line.text for line in GRAMMAR.lines(2)]
