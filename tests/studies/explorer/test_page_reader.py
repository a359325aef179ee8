"""The page's reader compared with the real one: it reads the same lines to the same trees and refuses the same."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rdgraph.errors import AssumptionError, LanguageError
from rdgraph.language.tree import Call, Name, Negative, Power
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.equation_text import read_system
from rdgraph.systems.system import System
from rdgraph.testing import field_systems, systems
from tests.property_examples import examples
from tests.studies.runs.test_browser import Browser

#: Pieces that lines are changed by.
PIECES = [
    "+", "-", "*", "/", "**", "@", "(", ")", "H", "A", "L", "I", "u", "v", "W", "M", "t", "xi", "2", "0.5", "1e3",
    "007", "1.", "'", ";", "where", "=", "<", ",", "tanh", "tanh(", "alpha", "1_0", "00", "-2", "**2", "**-1", "H0",
    "_", "e", "//", "k", "^", "H'", "sigma", "real", "lambda", " ", "\n", "\t", "k scalar", "u' = ", "dH/dt = ",
    "g = H**2", "B operator", " where ", ", k < 0", "(H)", "g(H)",
]  # fmt: skip
CORNERS = [
    "H**(2)", "H**-(2)", "H**+2", "H**- 2", "H**-\t2", "H**2**3", "-H**2", "H*-H", "(tanh)(H)", "tanh(H)(H)",
    "tanh()", "tanh", "H**33", "H**00", "012*H", "012.5*H", "1_0*H", "1j*H", "5alpha", "2(H)", "(H", "H)", "", " ",
    "A*H", "H@A", "A/H", "H/A", "2*I - A", "(2*I - A)@H", "A**-1@H", "W@H", "H@W@W", "H@(2*W)", "M*A@H", "A*M@H",
    "tanh(A)", "H//2", "sigma(H) where sigma = tanh(H)", "g(H) where g = H**2/(1 + H)",
    "f(g(H)) where g = H**2, f = g(H) + 1", "f(H) where f = g(H), g = H", "g(H) where g = A@H", "g(H) where g = H0",
    "g(u) where g = H", "u' = g(u) where g = u", "u' = -u; u' = u", "u''' = u", "u'' = -u' - u", "u'' = u'', v' = v",
    "du/dt = -u\n dv/dt = u", "H0' = H", "_u' = 1", "lambda' = 1", "A' = A", "xi*xi", "sigma*H*xi - H",
    "tanh(xi) + H", "xi/H", "H/xi", "H where beta positive, beta < 0", "k*H where k channel, k node",
    "k*H where k operator", "k@H where k operator", "B@H where B symmetric antisymmetric", "H = H", "H == H",
    "1/0*H", "H/(1 - 1)", "H/(0.1 + 0.2 - 0.3)", "H*0**-1", "H/(2*0)", "H/1e-30", "0/2*H", "0**2*H", "H/-0",
    "H where", "H where H channel", "t*H where t < 1", "beta*H where 0 < beta <= 1", "alpha", "alpha*t", "u' = 1",
    "(" * 61 + "H" + ")" * 61, "(" * 60 + "H" + ")" * 60, "H" + "+H" * 147, "H" + "+H" * 148, "H" + "+H" * 149,
    "A@H@W where W symmetric", "H@V where V symmetric, V matrix", "H@W where W antisymmetric", "-d*H",
    "-d*H where d scalar", "u' = a*u - b*u*v; v' = c*u*v - d*v", "d' = -d", "-alpha*L@H where s < 1",
    "-" * 146 + "H", "-" * 149 + "H", "-" * 148 + "2*H", "1e31*H", "1e30*H", "0." + "1" * 40 + "*H", "1" * 41 + "*H",
]  # fmt: skip
READ = """%s.map((line) => {
  try {
    const {lines, coefficients} = readSystem(line);
    const trees = lines.map(({field, order, tree}) => [field, order, canonical(tree)]);
    return [...trees, ...Object.entries(coefficients).map(([name, {kind, sign}]) => [name, kind, sign])];
  } catch (problem) {
    if (problem instanceof LanguageError) return null;
    throw problem;
  }
})"""


def canonical(node: sp.Basic) -> str:
    match node:
        case sp.Rational():
            return str(node)
        case Name():
            return f"{node.name}:{node.kind}"
        case Negative():
            return f"(negative {canonical(node.inner)})"
        case Power():
            return f"(power {canonical(node.base)} {node.exponent})"
        case Call():
            return f"(call {node.function} {canonical(node.argument)})"
    return f"({type(node).__name__.lower()} {' '.join(map(canonical, node.args))})"


def by_rdgraph(line: str) -> list[list[Any]] | None:
    try:
        system = read_system(line, {}, [])
    except LanguageError:
        return None
    trees: list[list[Any]] = [[e.field, e.order, canonical(e.expression)] for e in system.equations]
    return trees + [[n, str(k), system.assumptions.sign(n)] for n, k in system.coefficients.items()]


def compare(browser: Browser, lines: list[str]) -> int:
    """Every line by both readers; returns how many were read. Assumptions that contradict each other are left out."""
    count = 0
    for line, theirs in zip(lines, browser.evaluate(READ % json.dumps(lines)), strict=True):
        try:
            ours = by_rdgraph(line)
        except AssumptionError:
            continue
        assert theirs == ours, line
        count += ours is not None
    return count


def changed(line: str, rng: random.Random) -> str:
    """One or two words put in, taken out or exchanged, for words of the line itself or others."""
    words = re.findall(r"\w+'*|\*\*|\s+|.", line)
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(words) + 1)
        put = rng.choice([[], [rng.choice(words or PIECES)], [rng.choice(words or PIECES)], [rng.choice(PIECES)]])
        words[at : at + rng.randint(0, 1)] = put
    return "".join(words)


@pytest.mark.usefixtures("opened")
class TestReader:
    @pytest.mark.slow
    @settings(max_examples=examples(250))
    @given(system=systems() | field_systems(), seed=st.integers(0, 2**32 - 1))
    def test_random_lines_and_changed_ones(self, chromium: Browser, system: System, seed: int) -> None:
        rng = random.Random(seed)
        line = str(system)
        assert compare(chromium, [line, *(changed(line, rng) for _ in range(15))]) >= 1

    @pytest.mark.slow
    def test_the_catalogue_and_its_neighbours(self, chromium: Browser) -> None:
        rng = random.Random(3)
        lines = [entry.equation for entry in catalogue.entries.values()]
        assert compare(chromium, lines) == len(lines)
        assert compare(chromium, [changed(line, rng) for line in lines for _ in range(8)]) > 20

    @pytest.mark.slow
    def test_heaps_of_pieces(self, chromium: Browser) -> None:
        rng = random.Random(4)
        heaps = ["".join(rng.choice(PIECES) for _ in range(rng.randint(1, 7))) for _ in range(1000)]
        assert compare(chromium, heaps) > 10

    def test_corners(self, chromium: Browser) -> None:
        assert compare(chromium, CORNERS) > 20


@pytest.mark.usefixtures("opened")
@pytest.mark.parametrize("line", ["2 H", "tanh*H", "[H]", "α*H", "lambda*H", "H^2", "H, H", "2H", "lambda", "(H) H"])
def test_remedies_are_those_of_the_real_reader(chromium: Browser, line: str) -> None:
    with pytest.raises(LanguageError) as problem:
        read_system(line, {}, [])
    script = "((line) => { try { readSystem(line); return null } catch (p) { return p.remedy } })"
    remedy = chromium.evaluate(f"{script}({json.dumps(line)})")
    assert remedy == problem.value.remedy
