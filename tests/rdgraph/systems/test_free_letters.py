"""Names for coefficients: all but those of answers, d where it is unambiguous; symmetric matrices."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rdgraph as rd
from rdgraph.errors import AssumptionError, LanguageError
from rdgraph.language.reader import RESERVED


@pytest.mark.parametrize(
    "text",
    ["u' = a*u - b*u*v; v' = c*u*v - d*v", "u' = -d*L@u", "H'' = -d*H' - H", "-d*L@H where d channel",
     "d*H where d scalar, d negative", "d' = -d; u' = d - u", "u' = -d*u where d node",
     "-e*L@H + k*H - n*H0 + (p + q)*r*H*D where D scalar, e scalar, k scalar, n scalar, p scalar, q scalar, r scalar"],
)  # fmt: skip
def test_letters_are_read_and_printed_back(text: str) -> None:
    system = rd.parse(text)
    assert rd.parse(str(system)) == system
    if "d" in system.coefficients and system.coefficients["d"] == "scalar":
        assert "d" not in system.replace(d=2).coefficients


@pytest.mark.parametrize("text", ["-alpha*L@H/d", "d*H", "-L@H + d"])
def test_a_letter_with_two_meanings_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(LanguageError) as caught:
        rd.parse(text)
    assert caught.value.offset == text.index("d")
    assert "where d scalar" in caught.value.remedy


@pytest.mark.parametrize("name", sorted(set(RESERVED) - {"where"}))
def test_letters_of_answers_stay_reserved(name: str) -> None:
    with pytest.raises(LanguageError):
        rd.parse(f"{name}*H where {name} scalar")


def test_lotka_and_volterra() -> None:
    states = rd.steady_states("u' = a*u - b*u*v; v' = c*u*v - d*v")
    assert {str(state.values["u"]) for state in states} == {"0", "d/c"}


@pytest.mark.parametrize(
    "text",
    ["A@H@W - omega*H where W symmetric", "H@V where V symmetric, V matrix", "H@W where W symmetric, W symmetric",
     "u' = u@W; v' = u@W where W symmetric"],
)  # fmt: skip
def test_symmetric_matrices_are_read_and_printed_back(text: str) -> None:
    system = rd.parse(text)
    assert rd.parse(str(system)) == system
    assert len(system.assumptions.symmetric) == 1
    assert rd.parse(text.replace(" symmetric", " matrix") if "V" in text else text.partition(" where")[0]) != system


def test_what_is_no_matrix_is_not_symmetric() -> None:
    with pytest.raises(AssumptionError, match="matrix"):
        rd.parse("-alpha*L@H", assume="alpha symmetric")
    with pytest.raises(LanguageError, match="symmetric"):
        rd.parse("H@W where W antisymmetric")


def test_symmetric_matrices_meet_their_declaration_in_witnesses() -> None:
    found = rd.equivalent("H@W where W symmetric", "H@W@W where W symmetric")
    assert found.witness is not None
    W = np.array(json.loads(dict(found.witness.letters)["W"]))
    assert (W == W.T).all()
