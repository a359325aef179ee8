"""ChebNet: Defferrard et al., "CNNs on Graphs with Fast Localized Spectral Filtering", NeurIPS 2016."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, StackedSettings
from rdgraph.graphs.operator import Operator


@dataclass(frozen=True, kw_only=True)
class ChebNetSettings(StackedSettings):
    """Settings of ChebNet: `taps` matrices a layer, so that a layer is a polynomial of degree taps - 1."""

    model: ClassVar[str] = "chebnet"

    taps: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "taps")


class ChebNet(BatchedModel):
    """H' = relu(sum_k T_k(-A) H W_k + b), T_k Chebyshev's polynomials, A = D^-1/2 W D^-1/2 without self-loops.

    2L/lam_max - I = -A with lam_max = 2, which all symmetric normalisations stay below; the authors compute lam_max of
    every graph. NeurIPS 2016.
    """

    settings: ChebNetSettings

    def build(self) -> None:
        """The matrices of all taps of a layer side by side."""
        self.adjacency, taps = self.place.operator("symmetric"), self.settings.taps
        for k, (inputs, outputs) in enumerate(pairwise(self.settings.widths(self.features, self.classes))):
            bound = (6 / (inputs + outputs)) ** 0.5
            self.add_parameter(f"layer_{k}_weight", self.uniform((inputs, taps * outputs), bound))
            self.add_parameter(f"layer_{k}_bias", self.full((outputs,), 0.0))

    def filter(self, k: int, h: Tensor | Features) -> Tensor:
        """sum_k T_k(-A) h W_k + b."""
        terms = self.times(f"layer_{k}", h).chunk(self.settings.taps, -1)
        return chebyshev_sum(self.adjacency, list(terms)) + self.shift(f"layer_{k}")

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer."""
        states = [self.filter(0, drop.features(x))]
        for k in range(1, self.settings.layers):
            states[-1] = torch.relu(states[-1])
            states.append(self.filter(k, drop(states[-1])))
        return states


def chebyshev_sum(adjacency: Operator, terms: list[Tensor]) -> Tensor:
    """sum_k T_k(-A) terms[k] by Clenshaw's recurrence: one product fewer than there are terms.

    >>> import rdgraph as rd
    >>> A = rd.generators.path(2).operator("symmetric")
    >>> chebyshev_sum(A, [torch.zeros(1, 2, 1), torch.tensor([[[1.0], [2.0]]])]).ravel()
    tensor([-2., -1.])
    """
    after, later = torch.zeros_like(terms[0]), torch.zeros_like(terms[0])
    for term in reversed(terms[1:]):
        after, later = term - 2 * (adjacency @ after) - later, after
    return terms[0] - adjacency @ after - later if len(terms) > 1 else terms[0]


RECORDS = (
    ModelRecord(
        "chebnet", "ChebNet", "classical", source="Defferrard et al., NeurIPS 2016",
        rule="H' = relu(sum_k T_k(-A) H W_k + b)",
        settings=ChebNetSettings, network=ChebNet, published="ChebNet",
    ),
)  # fmt: skip
