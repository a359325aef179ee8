"""Random fields that may not differ from dense arrays of 80 bits, and false fields that the adversary must notice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch

from rdgraph.graphs.kernels.c_compiler import find_compiler
from rdgraph.run.lowering.vector_field import VectorField
from tests.adversary import graphs, lowered_attacks
from tests.adversary.lowered_attacks import Case, Verdict, attacked, attacks
from tests.adversary.lowered_systems import LoweredSystem

SEED = 20230724
RELU = LoweredSystem((("H", "relu((beta*(L**3 + L))@(tanh(H - H) + H))"),), (1,))


def wrong(found: list[Verdict]) -> list[Verdict]:
    return [verdict for verdict in found if verdict.status in ("differs", "error")]


def test_no_field_of_a_slice_differs() -> None:
    found = list(attacks(24, SEED, share=0.0))
    counts = Counter((verdict.question, verdict.status) for verdict in found)
    assert wrong(found) == []
    assert counts["value", "held"] >= 20
    assert counts["derivatives", "held"] + counts["derivatives of weights", "held"] >= 50


@pytest.mark.slow_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 500, 100))
def test_no_field_of_many_differs(first: int) -> None:
    assert wrong(list(attacks(100, SEED, first, share=0.1))) == []


@pytest.mark.slow
@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def test_every_field_of_a_slice_compiles() -> None:
    found = list(attacks(40, SEED, 1000, share=1.0))
    assert wrong(found) == []
    assert sum(v.question == "compiled" and v.status == "held" for v in found) >= 35


# ---------------------------------------------------------------------- what must be noticed
def looped(state: float = 1.9) -> Case:
    """A pair, a node with a loop alone and an isolated one: where the loop is, L is 0 and the relu at its kink."""
    weights = np.array([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    values = {"beta": np.array(0.7), "weights": np.ones(3), "start": np.zeros((4, 1))}
    values["state"] = np.array([[0.3], [-1.2], [state], [0.4]])
    return Case(RELU, "row", graphs.Graph("loop", weights), (), values)


def test_a_kink_is_skipped_and_what_is_always_zero_is_not() -> None:
    found = [v.status for v in attacked(looped(), np.random.default_rng(0), is_compiled=False)]
    assert found == ["held", "held", "skipped", "held"]  # value, state, weights, another input


def test_the_gradient_at_a_kink_lies_between_its_sides() -> None:
    """The weight of the loop: on one side nothing changes, on the other the slope is -beta*H."""
    case = looped()
    tensors = {name: torch.as_tensor(x).requires_grad_(name == "weights") for name, x in case.values.items()}
    case.lowered(tensors)(0.0, tensors["state"]).sum().backward()
    assert tensors["weights"].grad is not None
    sides = []
    for sign in (-1, 1):
        moved = case.values["weights"].astype(np.longdouble)
        moved[2] += sign * 1e-9
        change = case.speeds(case.values | {"weights": moved})[0].sum() - case.speeds(case.values)[0].sum()
        sides.append(float(change) / (sign * 1e-9))
    assert sides == pytest.approx([-0.7 * 1.9, 0.0], abs=1e-6)
    assert min(sides) <= float(tensors["weights"].grad[2]) <= max(sides)


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        (lambda out, H: out + 1e-6, "value"),
        (lambda out, H: out + (H - H.detach()), "derivatives"),
        (lambda out, H: out + (H - H.detach()) ** 2, "derivatives"),
    ],
)
def test_a_false_field_is_noticed(
    change: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], noticed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = LoweredSystem((("H", "-alpha*L@H + tanh(H)"),), (1,))
    case = lowered_attacks.drawn(np.random.default_rng(1), system)
    assert wrong(list(attacked(case, np.random.default_rng(2), is_compiled=False))) == []
    real = VectorField.forward
    monkeypatch.setattr(VectorField, "forward", lambda self, t, H: change(real(self, t, H), H))
    found = wrong(list(attacked(case, np.random.default_rng(2), is_compiled=False)))
    assert noticed in {verdict.question for verdict in found}
