"""`rd.recover`: lines that layers compute, and layers for which there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.infer.layers.layer_check import number_word
from rdgraph.infer.layers.recovery import number_text
from tests.rdgraph.infer.layers.layers import Mixed, mean, neighbours, released_filter_bank


def cubic(x: Tensor, edge_index: Tensor) -> Tensor:
    return mean(x, edge_index) - x + 0.25 * x * (1 - x**2)


def bent(x: Tensor, edge_index: Tensor) -> Tensor:
    return 0.5 * torch.tanh(neighbours(x, edge_index)) - x


def rectified(x: Tensor, edge_index: Tensor) -> Tensor:
    matrix = torch.tensor([[1.0, -2.0], [0.5, 1.0]], dtype=x.dtype)
    return torch.relu(mean(x, edge_index) @ matrix - x)


@pytest.mark.parametrize(
    ("layer", "equation", "reading"),
    [
        (released_filter_bank, "-0.25*H + 0.75*A@H", "row normalisation without self-loops"),
        pytest.param(
            cubic, "-0.75*H + A@H - 0.25*H**3", "row normalisation without self-loops", marks=pytest.mark.slow
        ),
        (bent, "-H + 0.5*tanh(A@H)", "no normalisation without self-loops"),
    ],
)
def test_lines_that_are_found(layer: object, equation: str, reading: str) -> None:
    found = rd.recover(layer)
    assert (found.equation, found.reading) == (equation, reading)
    assert rd.conform(layer, found.equation, normalisation="row" if "row" in reading else "none")


def test_a_matrix_under_a_function_is_found() -> None:
    found = rd.recover(rectified)
    assert found.equation == "relu(-H + A@H@W2) where W2 matrix"
    assert np.allclose(found.values["W2"], [[1.0, -2.0], [0.5, 1.0]])
    assert rd.recover(Mixed()).equation == "tanh(H@W1 + A@H@W2 + b) where W1 matrix, W2 matrix, b channel"


@pytest.mark.slow
def test_why_there_is_none() -> None:
    def attention(x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index
        return neighbours(x, edge_index, torch.tanh((x[source] * x[target]).sum(-1)))

    def centred(x: Tensor, edge_index: Tensor) -> Tensor:
        return x - x.mean(dim=0)

    assert "as in attention" in rd.recover(attention).reason
    assert "whole graph" in rd.recover(centred).reason
    random = rd.recover(Mixed(rate=0.5))
    assert not random
    assert "dropout" in str(random)


def test_numbers_in_words() -> None:
    assert number_text(1 / 7) == "1/7"
    assert float(number_text(np.pi)) == pytest.approx(np.pi, abs=1e-12)
    assert number_word(np.tanh(0.25))[0] == "tanh(0.25)"
    assert number_word(0.7391, {})[0] == "0.7391"
