"""`Stack`: GREAD with several blocks between encoder and decoder, each with a flow of the equation.

A block computes h -> norm(flow(h W + b) + residual), between blocks follow an activation and dropout. The settings are
`blocks`, `mixing`, `residual`, `norm`, `activation` and `shared` of `gread.settings.gread_settings.GreadSettings`;
`GREAD(settings, ...)` is a `Stack` if they ask for one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from gread.models.features import Features
from gread.models.flow import Flow
from gread.models.gread_model import GREAD, STEP_DROPOUT
from gread.models.norms import BatchNorm, LayerNorm
from gread.models.randomness import Dropper
from rdgraph.errors import NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.run import VectorField
from rdgraph.run.solvers.polynomial_flow import Piece

#: The distance between the first random streams of two blocks, for their initial parameters.
STREAMS = 256
#: The activations by name.
CURVES: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu, "gelu": functional.gelu, "tanh": torch.tanh, "none": lambda x: x
}  # fmt: skip
#: States that the norm, the residual and the activation of a block keep for their gradients.
KEPT_BY_BLOCK = 6


class Block(GREAD):
    """The parameters of one block of a stack: mixing, attention, coefficients, residual and norm.

    It has no encoder and decoder of its own. What all blocks share belongs to the first.

    Args:
        stack: The stack, whose operator and layout the block uses.
        number: Its place in the stack, from 0.
        first: The first block, for the others.
    """

    def __init__(self, stack: Stack, number: int, first: Block | None = None) -> None:
        self.number, self.operator, self.layout, self.storage = number, stack.operator, stack.layout, stack.storage
        # In a tuple, since a module that is an attribute would be registered here as well.
        self._first = () if first is None else (first,)
        width = stack.layout.encoded_width
        super().__init__(
            stack.config, stack.place, features=width, classes=width, seeds=stack.seeds.tolist(), each=stack.each
        )

    def build(self) -> None:
        """Add the parameters of the block."""
        config, width = self.config, self.layout.encoded_width
        self.system = config.system
        self._streams = STREAMS * (self.number + 1)
        if config.mixing:
            self.add_linear("mixing", width, width)
        if not self._lender("adjacency"):
            self.add_attention()
        if not self._lender("coefficients"):
            self.add_coefficients()
        if config.residual == "linear":
            self.add_linear("residual", width, width)
        self.norm: LayerNorm | BatchNorm | None = None
        if config.norm != "none":
            self.norm = (LayerNorm if config.norm == "layer" else BatchNorm)(self, "norm", width)

    def _lender(self, part: str) -> tuple[Block, ...]:
        """The first block, if this one uses its coefficients or adjacency."""
        return self._first if self.config.shares(part) else ()

    def coefficients(self) -> dict[str, Tensor]:
        """The coefficients of the flow of this block."""
        for first in self._lender("coefficients"):
            return first.coefficients()
        return super().coefficients()

    def couple(self, H: Tensor) -> Operator:
        """The operator A of this block for a state."""
        for first in self._lender("adjacency"):
            return first.couple(H)
        return super().couple(H)

    # ------------------------------------------------------------------ what surrounds the flow
    def mixed(self, h: Tensor) -> Tensor:
        """The encoded columns at which the flow starts."""
        return self.linear("mixing", h) if self.config.mixing else h

    def finished(self, result: Tensor, h: Tensor, is_training: bool) -> Tensor:
        """The output of the block, from the result of the flow and the input h of the block."""
        if self.config.residual == "identity":
            result = result + h
        elif self.config.residual == "linear":
            result = self.linear_onto(result, "residual", h)
        if isinstance(self.norm, BatchNorm):
            return self.norm(self, result, is_training)
        return result if self.norm is None else self.norm(self, result)


class Stack(GREAD):
    """GREAD in blocks; `forward` gives logits (M, n, classes).

    H_0 = e(X), H_k = norm(Phi_k(H_(k-1) W_k + b_k) + residual), Phi_k the flow of the equation up to T with the
    coefficients and the operator of block k, logits = o(H_K). For several fields the encoded states pass from block to
    block; velocities start as in GREAD in every block. With polynomials all blocks have the highest degree that one of
    them needs.

    Raises:
        NotApplicable: For a readout that is not encoded, which no block passes on.

    >>> import numpy as np, gread, rdgraph as rd
    >>> from gread.models.features import Features
    >>> from gread.settings.gread_settings import GreadSettings
    >>> place = gread.models.Place.of(rd.generators.path(4))
    >>> settings = GreadSettings(hidden=8, adjacency="original", blocks=3, mixing=True, norm="layer")
    >>> model = gread.models.GREAD(settings, place, features=3, classes=2, seeds=[0, 1])
    >>> type(model).__name__, model(Features.make(np.eye(4, 3))).shape
    ('Stack', torch.Size([2, 4, 2]))
    """

    def add_flows(self) -> None:
        """Add the blocks."""
        if missing := set(self.layout.read) - set(self.layout.encoded):
            raise NotApplicable(
                f"expected a readout that the blocks pass on, got {min(missing)}, which is not encoded; set "
                "velocity=encoded, or readout=all"
            )
        blocks = [Block(self, 0)]
        blocks += [Block(self, number, blocks[0]) for number in range(1, self.config.blocks)]
        self.blocks = nn.ModuleList(blocks)
        self.undecayed |= {f"blocks.{block.number}.{name}" for block in blocks for name in block.undecayed}

    def block(self, number: int) -> Block:
        """One of the blocks, counted from 0."""
        block = self.blocks[number]
        assert isinstance(block, Block)
        return block

    def member_part(self, name: str, value: Tensor, member: int) -> Tensor:
        """The value of one member in a part of all members."""
        if not name.startswith("blocks."):
            return super().member_part(name, value, member)
        _, number, part = name.split(".", 2)
        return self.block(int(number)).member_part(part, value, member)

    def coefficients(self) -> dict[str, Tensor]:
        """The coefficients of all blocks, by name and block such as alpha[1]; of the first only if they are shared."""
        if self.config.shares("coefficients"):
            return self.block(0).coefficients()
        return {
            f"{name}[{number + 1}]": value
            for number in range(self.config.blocks)
            for name, value in self.block(number).coefficients().items()
        }

    # ------------------------------------------------------------------ the flow
    def couple(self, H: Tensor) -> Operator:
        """The operator A of the first block for a state."""
        return self.block(0).couple(H)

    def field_on(self, operator: Operator) -> VectorField:
        """dH/dt in the first block, with this operator A."""
        return self.block(0).field_on(operator)

    def begin(self, encoded: Tensor, drop: Dropper) -> Tensor:
        """The encoded columns (M, n, encoded*d), which the first block takes."""
        return encoded

    def opening(self, encoded: Tensor) -> Tensor:
        """The state at which the flow of the first block starts."""
        return self._start(self.block(0), encoded)

    def _start(self, block: Block, h: Tensor) -> Tensor:
        return self.layout.start(block.mixed(h.to(self.place.dtype))).to(self.storage)

    def readout(self, H: Tensor) -> Tensor:
        """The encoded columns that the decoder reads."""
        return self.layout.read_encoded(H)

    def needed_degrees(self, flow: Flow, start: Tensor, time: Tensor) -> list[int]:
        """The degree that every member's polynomials need, in the block that needs most."""
        count = 1 if self.config.shares("coefficients") else self.config.blocks
        operator = self.couple(start)
        needed = [flow.degrees(self.block(k).field_on(operator), start, time) for k in range(count)]
        return [max(each) for each in zip(*needed, strict=True)]

    def through(
        self, encoded: Tensor, time: Tensor, flow: Flow, degree: int, drop: Dropper, pieces: Sequence[Piece] = ()
    ) -> tuple[Tensor, Tensor | None]:
        """The output of the last block (M, n, encoded*d), and the largest truncation of a block's polynomial."""
        states, tail = self._outputs(encoded, time, flow, degree, drop, pieces)
        return states[-1], tail

    def _outputs(
        self, encoded: Tensor, time: Tensor, flow: Flow, degree: int, drop: Dropper, pieces: Sequence[Piece] = ()
    ) -> tuple[list[Tensor], Tensor | None]:
        """The input of the first block and the output of every block; and the truncation as in `through`."""
        h, tail = encoded.to(self.place.dtype), None
        states, operator = [h], None
        for number in range(self.config.blocks):
            block = self.block(number)
            if number:
                h = self._activated(h, drop)
            start = self._start(block, h)
            if number == 0 and self.config.adjacency == "soft" and self.config.shares("adjacency"):
                operator = block.couple(start)
            make_field = block.field if operator is None else _fixed(block, operator)
            H, cut = self.evolve(start, time, flow, degree, drop, pieces, make_field)
            tail = cut if tail is None or cut is None else torch.maximum(tail, cut)
            h = block.finished(self.layout.seen(H).to(self.place.dtype), h, drop.is_training)
            states.append(h)
        return states, tail

    def _activated(self, h: Tensor, drop: Dropper) -> Tensor:
        if self.config.activation == "relu":
            return drop(h, relu=True)  # in one kernel with dropout
        return drop(CURVES[self.config.activation](h))

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The input of the first block and the output of every block."""
        encoded = self.encode(x, drop.rates, drop.random)
        time, flow, degree = self.whole_flow(encoded)
        return self._outputs(encoded, time, flow, degree, Dropper(drop.rates, drop.random, first=STEP_DROPOUT))[0]

    def memory(self, x: Features) -> int:
        """Numbers that one member keeps for its gradient."""
        width = self.place.nodes * self.layout.encoded_width
        ends = x.values[0].numel() * 2 + self.place.nodes * self.classes * 8
        return ends + self.config.blocks * (super().memory(x) - ends + KEPT_BY_BLOCK * width)


def _fixed(block: Block, operator: Operator) -> Callable[[Tensor], VectorField]:
    """The field of a block whose operator is given."""
    return lambda H: block.field_on(operator)
