"""`strang`: exact diffusion composed with the closed flow of the reaction, order 2 for every step size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from rdgraph.integrators.closed_reactions import make_reaction
from rdgraph.integrators.linear_part import diffusion_part
from rdgraph.integrators.prepared_flow import PreparedFlow

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField


class Strang:
    """Steps of f = [p(X) - p(1)]H + [p(1)H + r(H)]: half a reaction, the whole diffusion, half a reaction.

    Each part is solved exactly, so that a box both parts keep is kept for every step: [0, 1] (Fisher, Zeldovich) and
    [-1, 1] (Allen-Cahn) on row-stochastic operators. (Where L = D - A and X = L, diffusion rests at p(0).)

    `products` counts the sparse products of all steps so far.
    """

    def __init__(self, field: VectorField, *, rtol: float | None = None) -> None:
        self.reaction = make_reaction(field)
        self.diffusion = PreparedFlow(diffusion_part(field), rtol)
        self.products = 0

    def advance(self, H: Tensor, dt: Tensor) -> Tensor:
        """H after a step dt, () or (*batch, 1, 1); entries that pass their blow-up become infinite or NaN."""
        H = self.reaction(H, dt / 2)
        propagator = self.diffusion.over(dt, H)
        self.products += propagator.products
        return self.reaction(propagator(H)[0], dt / 2)


def make_strang(field: VectorField, *, rtol: float | None = None) -> Strang:
    """The stepper of a field whose reaction has a closed flow and whose diffusion is a polynomial in one operator.

    `rtol` is the accuracy of each diffusion step, as in `exact_states`. Raises `NotApplicable` with the reason.

    >>> import torch, rdgraph as rd
    >>> op = rd.Graph.from_edges([[0, 1], [1, 0]]).operator("row", dtype=torch.float64)
    >>> strang = make_strang(rd.lower("F", op, {"alpha": 1.0, "beta": 1.0}))
    >>> strang.advance(torch.tensor([[0.5], [0.5]], dtype=torch.float64), torch.tensor(1.0)).ravel()
    tensor([0.7311, 0.7311], dtype=torch.float64)
    """
    return Strang(field, rtol=rtol)
