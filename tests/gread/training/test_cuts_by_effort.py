"""Groups of trainings cut by their effort: where that is cheaper, and never dearer than another cut."""

from __future__ import annotations

import numpy as np
import pytest

from gread.training.planner import cut_by_effort


def test_groups_are_cut_where_that_is_cheaper() -> None:
    efforts = [2, 30, 2, 30, 4]
    assert cut_by_effort(efforts, 9, batch=5.0, fixed=0.0, product=1.0) == [[0, 2, 4], [1, 3]]
    assert cut_by_effort(efforts, 9, batch=0.1, fixed=0.0, product=1.0) == [[0, 2], [4], [1, 3]]
    assert cut_by_effort(efforts, 9, batch=1e3, fixed=5.0, product=1.0) == [[0, 1, 2, 3, 4]]
    assert cut_by_effort([7] * 3, 1, batch=1e3, fixed=5.0, product=1.0) == [[0, 1, 2]]


@pytest.mark.parametrize("seed", range(20))
def test_the_cut_is_the_cheapest_of_all(seed: int) -> None:
    """Against every way to cut the sorted members."""
    random = np.random.default_rng(seed)
    efforts = random.integers(1, 12, size=7).tolist()
    batch, beside, product = random.uniform(0, 30), random.uniform(0, 2), random.uniform(0, 3)
    fit = int(random.integers(1, 8))

    def cost(pieces: list[list[int]]) -> float:
        return sum(
            -(-len(p) // fit) * batch + len(p) * (beside + product * max(efforts[k] for k in p)) for p in pieces if p
        )

    order = sorted(range(7), key=lambda k: efforts[k])
    every = []
    for cuts in range(2**6):
        pieces: list[list[int]] = [[order[0]]]
        for place in range(1, 7):
            pieces = (
                [*pieces, [order[place]]] if cuts >> (place - 1) & 1 else [*pieces[:-1], [*pieces[-1], order[place]]]
            )
        every.append(cost(pieces))
    found = cut_by_effort(efforts, fit, batch, beside, product)
    assert sorted(k for piece in found for k in piece) == list(range(7))
    # Members of one effort stay together, which costs at most what their batches would.
    assert cost(found) <= min(every) + batch + 1e-9
    assert cost(found) <= cost([list(range(7))]) + 1e-9
