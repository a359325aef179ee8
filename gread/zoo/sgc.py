"""SGC and its relative with every power: linear classifiers on features that the graph has smoothed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, ModelSettings


@dataclass(frozen=True, kw_only=True)
class SGCSettings(ModelSettings):
    """Settings of SGC: `hops` products with A. There is no hidden layer, so `hidden` and `dropout` mean nothing."""

    model: ClassVar[str] = "sgc"

    hops: int = 2
    input_dropout: float = 0.0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(0, "hops")


class SGC(BatchedModel):
    """logits = A^K (X W) + b, A symmetric with self-loops: K steps of diffusion by Euler's method with step 1.

    Wu et al., "Simplifying Graph Convolutional Networks", ICML 2019. The authors train by L-BFGS on some sets; here by
    Adam like all others. The products act on X W, which has fewer columns than X; the result is the same.
    """

    settings: SGCSettings

    def build(self) -> None:
        """W, b and A."""
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        self.add_linear("classifier", self.features, self.classes)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """A^k X W, step by step."""
        states = [self.times("classifier", drop.features(x))]
        for _ in range(self.settings.hops):
            states.append(self.adjacency @ states[-1])
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """The last state and the shift."""
        return states[-1] + self.shift("classifier")


@dataclass(frozen=True, kw_only=True)
class SmoothedSettings(SGCSettings):
    """Settings of logistic regression on features smoothed 0, 1, ..., `hops` times."""

    model: ClassVar[str] = "smoothed"


class Smoothed(BatchedModel):
    """logits = sum_k A^k X W_k + b: logistic regression on [X, A X, ..., A^K X], A symmetric with self-loops.

    Horner's rule takes K products: X W_0 + A (X W_1 + A (X W_2 + ...)).
    """

    settings: SmoothedSettings

    def build(self) -> None:
        """All W_k side by side, b and A."""
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        columns = (self.settings.hops + 1) * self.classes
        self.add_parameter("classifier_weight", self.uniform((self.features, columns), self.features**-0.5))
        self.add_parameter("classifier_bias", self.full((self.classes,), 0.0))

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The partial sums, the innermost first."""
        *terms, last = self.times("classifier", drop.features(x)).chunk(self.settings.hops + 1, -1)
        states = [last]
        for term in reversed(terms):
            states.append(term + self.adjacency @ states[-1])
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """The last sum and the shift."""
        return states[-1] + self.shift("classifier")


RECORDS = (
    ModelRecord(
        "sgc", "SGC", "classical", source="Wu et al., ICML 2019", rule="logits = A^K X W + b", settings=SGCSettings,
        network=SGC, published="SGC",
        line="-L@H",
    ),
    ModelRecord(
        "smoothed", "smoothed features", "simple", source="logistic regression on [X, A X, ..., A^K X]",
        rule="logits = sum_k A^k X W_k + b", settings=SmoothedSettings, network=Smoothed,
    ),
)  # fmt: skip
