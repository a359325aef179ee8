"""`LineModel`: GREAD around an equation of others, with what their networks have beside it (`LineSettings`)."""

from __future__ import annotations

import torch
from torch import Tensor

from gread.models.features import Features
from gread.models.flow import Additions
from gread.models.gread_model import GREAD
from gread.models.norms import standardised
from gread.models.randomness import Dropper, Randomness, Rates
from gread.settings.line_settings import LineSettings
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.operator import Operator
from rdgraph.language.tree import Kind
from rdgraph.run.solvers.schedules import Schedule

#: Where the gains of orthogonal matrices start: at the end of (0, 1), where clamp still has a slope on both sides.
GAIN_START = 0.999


class LineModel(GREAD):
    """A batch of networks around an equation: H(0) = e(X), dH/dt = f(t, H), logits = o(H(T)).

    What differs from GREAD are the settings of `gread.settings.line_settings.LineSettings`: matrices of some kind,
    sources that are not H(0), coefficients that are numbers, operators beside A, and what happens between steps.
    """

    config: LineSettings

    # ------------------------------------------------------------------ parameters
    def add_encoder(self, columns: int) -> None:
        """The linear encoder; half as wide where the other half of the channels starts at zero."""
        columns = columns // 2 if self.config.augmented else columns
        self.add_linear("encoder", self.features, columns, start=self.config.encoder_start)

    def add_decoder(self, columns: int) -> None:
        """The decoder; half as wide where the other half is not read."""
        super().add_decoder(columns // 2 if self.config.augmented else columns)

    def _add_coefficient(self, name: str, kind: Kind) -> None:
        start = self.config.start_asked(name)
        own, d = f"coefficient_{name}", self.config.hidden
        if kind is Kind.MATRIX and self.config.matrices == "orthogonal":
            self.add_parameter(
                own, torch.eye(d, dtype=self.place.dtype, device=self.place.device) + self.full((d, d), 0.0)
            )
            self.add_parameter(f"{own}_gain", self.full((d,), GAIN_START))
            return
        super()._add_coefficient(name, kind)
        if kind is Kind.MATRIX and self.config.matrices == "dominant":
            self.add_parameter(f"{own}_slope", self.uniform((d,), 1.0))
            self.add_parameter(f"{own}_shift", self.uniform((d,), 1.0))
        if start is not None:
            with torch.no_grad():
                self.get_parameter(own).fill_(start)

    def link(self, name: str, kind: Kind) -> str:
        """sigmoid, negated sigmoid or free: how a parameter becomes a coefficient."""
        return self.config.link_asked(name) or super().link(name, kind)

    def coefficient(self, name: str, kind: Kind) -> Tensor:
        """The values of one coefficient."""
        value = self.get_parameter(f"coefficient_{name}")
        if kind is not Kind.MATRIX or self.config.matrices == "free":
            return super().coefficient(name, kind)
        if self.config.matrices == "orthogonal":
            gain = self.get_parameter(f"coefficient_{name}_gain").clamp(0, 1)
            return (value * gain[:, None, :]) @ value.mT
        even = (value + value.mT) / 2
        if self.config.matrices == "symmetric":
            return even
        slope, shift = (self.get_parameter(f"coefficient_{name}_{part}") for part in ("slope", "shift"))
        hollow = even - torch.diag_embed(even.diagonal(dim1=1, dim2=2))
        return hollow + torch.diag_embed(torch.addcmul(shift, slope, hollow.abs().sum(-1)))

    # ------------------------------------------------------------------ the parts
    @property
    def beside(self) -> dict[str, Operator]:
        """The further operators, besides A, on the edges of the graph and the self-loops that A has."""
        loops = self.operator.self_loops
        return {name: self.place.operator(self.config.beside, loops) for name in self.system.operators.names}

    def encode(self, x: Features, rates: Rates | None = None, random: Randomness | None = None) -> Tensor:
        """H(0), (M, n, states*d); with rates and random numbers, entries are dropped as in training."""
        if rates is not None and random is not None:
            self.straighten()
        return super().encode(x, rates, random)

    def begin(self, encoded: Tensor, drop: Dropper) -> Tensor:
        """All states at 0 from what was encoded."""
        config = self.config
        encoded = torch.relu(encoded) if config.encoder_relu else encoded
        if config.augmented:
            parts = encoded.chunk(len(self.layout.encoded), -1)
            encoded = torch.cat([half for part in parts for half in (part, torch.zeros_like(part))], -1)
        start = self.layout.start(encoded)
        return drop(start) if config.step_dropout else start

    def readout(self, H: Tensor) -> Tensor:
        """What the decoder reads."""
        read = self.layout.readout(H)
        if not self.config.augmented:
            return read
        blocks = read.chunk(len(self.layout.read), -1)
        return torch.cat([block.chunk(2, -1)[0] for block in blocks], -1)

    def straighten(self) -> None:
        """U <- 3/2 U - 1/2 U U' U for orthogonal matrices, as CGNN's authors have it after every step."""
        if self.config.matrices != "orthogonal":
            return
        with torch.no_grad():
            for name, kind in self.letters.items():
                if kind is Kind.MATRIX:
                    U = self.get_parameter(f"coefficient_{name}")
                    U.copy_(1.5 * U - 0.5 * (U @ (U.mT @ U)))

    def additions(self, H0: Tensor, drop: Dropper) -> Additions:
        """The source, dropout between steps, and the norm of the slope."""
        config, bounded = self.config, super().additions(H0, drop)
        if not (config.step_dropout or config.step_norm or config.source_term != "start"):
            return bounded
        last = Schedule.make(config.method, config.time, config.step).steps - 1 if config.step_dropout else 0

        def dropped(number: int, H: Tensor) -> Tensor:
            return H if number == last else drop(H)

        return Additions(
            self.source(H0), dropped if config.step_dropout else None,
            standardised if config.step_norm else bounded.change, bounded.at,
        )  # fmt: skip

    def source(self, H0: Tensor) -> Tensor | None:
        """What H0 in the equation is, None where it is the start."""
        if self.config.source_term == "start":
            return None
        if self.config.source_term == "detached":
            return H0.detach()
        if self.place.trusted is None:
            raise InvalidArgument(
                "expected trusted nodes for a source that is centred over them, got none; pass Place(..., trusted=...)"
            )
        share = self.place.trusted / self.place.trusted.sum(-1, keepdim=True)
        return H0 - (share[:, None] @ H0.to(share.dtype)).to(H0.dtype)
