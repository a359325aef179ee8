"""Answers about existence, for tests of the answers and of simulations."""

from __future__ import annotations

import sympy as sp

import rdgraph as rd
from rdgraph.theory.blowup import BlowUp
from rdgraph.theory.global_existence import Existence


def existence(text: str) -> Existence:
    return rd.existence(rd.parse(text))


def texts(found: Existence) -> list[str]:
    return [str(blow_up) for blow_up in found.blow_ups]


def applies(blow_up: BlowUp, values: dict[str, float]) -> bool:
    condition = blow_up.condition if blow_up.condition is not None else blow_up.where
    return bool(condition.subs({sp.Symbol(k): sp.nsimplify(v, rational=True) for k, v in values.items()}))
