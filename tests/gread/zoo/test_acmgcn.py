"""ACM-GCN and ACM-GCN+ against their rule in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.dense_case import NODES, SEEDS, averaging, make_case

MEMBERS = pytest.mark.parametrize("member", range(len(SEEDS)))


def softmax(x: np.ndarray) -> np.ndarray:
    raised = np.exp(x - x.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


@pytest.mark.parametrize("structure", [False, True])
@MEMBERS
def test_the_rule(member: int, structure: bool) -> None:
    case = make_case("acmgcn", hidden=4, layers=3, structure=structure)
    low = averaging(case.adjacency)
    h = case.x
    for k in range(3):
        first, second, third = np.split(case.part(f"layer_{k}_weight", member), 3, axis=1)
        channels = [low @ h @ first, (np.eye(NODES) - low) @ h @ second, h @ third]
        if structure:
            channels.append(case.adjacency @ case.part(f"layer_{k}_structure", member))
        channels = [np.maximum(channel, 0) for channel in channels]
        seen = channels
        if structure:
            seen = [
                (c - c.mean(1, keepdims=True)) / np.sqrt(c.var(1, keepdims=True) + 1e-5)
                * case.part(f"layer_{k}_norm_{i}_weight", member) + case.part(f"layer_{k}_norm_{i}_bias", member)
                for i, c in enumerate(channels)
            ]  # fmt: skip
        vectors, mixer = case.part(f"layer_{k}_scores", member), case.part(f"layer_{k}_mixer", member)
        scores = np.stack([s @ v for s, v in zip(seen, vectors, strict=True)], 1)
        shares = softmax(1 / (1 + np.exp(-scores)) @ mixer / len(channels))
        h = sum(shares[:, i, None] * c for i, c in enumerate(channels)) * (1 if structure else 3)
        assert (h >= 0).all()  # so that the relu between the authors' layers does nothing
    np.testing.assert_allclose(case.logits(member), h, rtol=1e-9, atol=1e-9)


def test_weights_start_within_the_authors_bounds() -> None:
    case = make_case("acmgcn", spread=False, hidden=4, structure=True)
    assert 0.4 < np.abs(case.part("layer_0_weight", 0)).max() <= 0.5
    assert 0.4 < np.abs(case.part("layer_0_structure", 0)).max() <= 0.5
    assert np.abs(case.part("layer_0_scores", 0)).max() > 0.8
    assert np.abs(case.part("layer_0_mixer", 0)).max() <= 0.5
