"""Networks around an equation: `LineModel`, CGNN, GDE, GRAND, GRAND++, BLEND, ACMP, GRAFF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import eigsh
from torch import Tensor
from torch.nn import functional

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.flow import Additions
from gread.models.gread_model import GREAD
from gread.models.norms import standardised
from gread.models.randomness import Dropper, Randomness, Rates
from gread.settings.gread_settings import GreadSettings
from gread.settings.line_settings import LineSettings
from gread.settings.model_records import ModelSettings, printed_records
from gread.zoo.neighbour_networks import neighbour_pattern
from rdgraph import Graph
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.operator import Operator
from rdgraph.language.tree import Kind
from rdgraph.run.solvers.schedules import Schedule
from rdgraph.run.solvers.steppers import combine
from rdgraph.vocabulary.methods import FIXED, find_method

# ---------------------------------------------------------------------- line model
# `LineModel`: GREAD around the equation of another network, with that network's further parts (`LineSettings`).
#: Initial gains of orthogonal matrices: near the end of (0, 1), where clamp still has a gradient on both sides.
GAIN_START = 0.999


class LineModel(GREAD):
    """A batch of networks around an equation: H(0) = e(X), dH/dt = f(t, H), logits = o(H(T)).

    It differs from GREAD in the settings of `gread.settings.line_settings.LineSettings`: structured matrices, sources
    other than H(0), fixed coefficients, operators besides A, and what happens between steps.
    """

    config: LineSettings

    # ------------------------------------------------------------------ parameters
    def add_encoder(self, columns: int) -> None:
        """Add the linear encoder; half as wide if the other half of the channels starts at zero."""
        columns = columns // 2 if self.config.augmented else columns
        self.add_linear("encoder", self.features, columns, start=self.config.encoder_start)

    def add_decoder(self, columns: int) -> None:
        """Add the decoder; half as wide if the other half is not read."""
        super().add_decoder(columns // 2 if self.config.augmented else columns)

    def _add_coefficient(self, name: str, kind: Kind) -> None:
        start = self.config.start_asked(name)
        parameter, d = f"coefficient_{name}", self.config.hidden
        if kind is Kind.MATRIX and self.config.matrices == "orthogonal":
            self.add_parameter(
                parameter, torch.eye(d, dtype=self.place.dtype, device=self.place.device) + self.full((d, d), 0.0)
            )
            self.add_parameter(f"{parameter}_gain", self.full((d,), GAIN_START))
            return
        super()._add_coefficient(name, kind)
        if kind is Kind.MATRIX and self.config.matrices == "dominant":
            self.add_parameter(f"{parameter}_slope", self.uniform((d,), 1.0))
            self.add_parameter(f"{parameter}_shift", self.uniform((d,), 1.0))
        if start is not None:
            with torch.no_grad():
                self.get_parameter(parameter).fill_(start)

    def link(self, name: str, kind: Kind) -> str:
        """How a parameter becomes a coefficient: sigmoid, negated sigmoid or free."""
        return self.config.link_asked(name) or super().link(name, kind)

    def coefficient(self, name: str, kind: Kind) -> Tensor:
        """The values of one coefficient."""
        value = self.get_parameter(f"coefficient_{name}")
        if kind is not Kind.MATRIX or self.config.matrices == "free":
            return super().coefficient(name, kind)
        if self.config.matrices == "orthogonal":
            gain = self.get_parameter(f"coefficient_{name}_gain").clamp(0, 1)
            return (value * gain[:, None, :]) @ value.mT
        symmetric = (value + value.mT) / 2
        if self.config.matrices == "symmetric":
            return symmetric
        slope, shift = (self.get_parameter(f"coefficient_{name}_{part}") for part in ("slope", "shift"))
        hollow = symmetric - torch.diag_embed(symmetric.diagonal(dim1=1, dim2=2))
        return hollow + torch.diag_embed(torch.addcmul(shift, slope, hollow.abs().sum(-1)))

    # ------------------------------------------------------------------ the parts
    @property
    def further_operators(self) -> dict[str, Operator]:
        """The operators besides A, on the edges of the graph and the self-loops that A has."""
        loops = self.operator.self_loops
        return {name: self.place.operator(self.config.beside, loops) for name in self.system.operators.names}

    def encode(self, x: Features, rates: Rates | None = None, random: Randomness | None = None) -> Tensor:
        """H(0), (M, n, states*d); rates and random numbers drop entries as in training."""
        if rates is not None and random is not None:
            self.straighten()
        return super().encode(x, rates, random)

    def begin(self, encoded: Tensor, drop: Dropper) -> Tensor:
        """All initial states, from the encoded ones."""
        config = self.config
        encoded = torch.relu(encoded) if config.encoder_relu else encoded
        if config.augmented:
            parts = encoded.chunk(len(self.layout.encoded), -1)
            encoded = torch.cat([half for part in parts for half in (part, torch.zeros_like(part))], -1)
        start = self.layout.start(encoded)
        return drop(start) if config.step_dropout else start

    def readout(self, H: Tensor) -> Tensor:
        """The columns of a state that the decoder reads."""
        read = self.layout.readout(H)
        if not self.config.augmented:
            return read
        blocks = read.chunk(len(self.layout.read), -1)
        return torch.cat([block.chunk(2, -1)[0] for block in blocks], -1)

    def straighten(self) -> None:
        """Set U <- 3/2 U - 1/2 U U' U for orthogonal matrices, as CGNN's authors do after every step."""
        if self.config.matrices != "orthogonal":
            return
        with torch.no_grad():
            for name, kind in self.coefficient_kinds.items():
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
        """The value of H0 in the equation; None if it is the initial state."""
        if self.config.source_term == "start":
            return None
        if self.config.source_term == "detached":
            return H0.detach()
        if self.place.trusted is None:
            raise InvalidArgument("a source centred over the trusted nodes needs them; pass Place(..., trusted=...)")
        share = self.place.trusted / self.place.trusted.sum(-1, keepdim=True)
        return H0 - (share[:, None] @ H0.to(share.dtype)).to(H0.dtype)


# ---------------------------------------------------------------------- cgnn
# Xhonneux, Qu, Tang, "Continuous Graph Neural Networks", ICML 2020.


@dataclass(frozen=True, kw_only=True)
class CgnnSettings(LineSettings, model="cgnn"):
    """Settings of CGNN: dH/dt = a/2 (A H - H) + H W - H + H0, a = sigmoid of a number per node.

    W = U diag(clamp(w, 0, 1)) U' with U near orthogonal; `reaction` CGNN-unweighted has no W. The second half of the
    `hidden` channels starts at zero and is not read out, so 32 corresponds to the 16 of the authors' settings; H0
    carries no gradient; the weight of the self-loops in A is tuned. The equation is that of the released code, not the
    one printed in the GREAD paper, which has no decay.

    U <- 3/2 U - 1/2 U U' U is done at the beginning of the next training pass, not after the step. w starts at 0.999
    instead of 1, where the clamp has no gradient upwards. RMSprop, which two of their three settings use, is replaced
    by Adam, and dopri5 by rk4 with a fixed step.
    """

    usual_starts: ClassVar[dict[str, float]] = {"a": 1.0}
    usual_links: ClassVar[dict[str, str]] = {"a": "sigmoid"}

    hidden: int = 32
    reaction: str = "CGNN-authors"
    adjacency: str = "original"
    method: str = "rk4"
    step: float | None = 1.0
    matrices: str = "orthogonal"
    source_term: str = "detached"
    augmented: bool = True


# ---------------------------------------------------------------------- gde
# Poli et al., "Graph Neural Ordinary Differential Equations", AAAI workshop 2020.


@dataclass(frozen=True, kw_only=True)
class GdeSettings(ModelSettings, model="gde", least={"steps": 1}):
    """Settings of GDE: `steps` steps of a Runge-Kutta `method` from 0 to 1; `dropout` within the slope."""

    input_dropout: float = 0.4
    dropout: float = 0.9
    method: str = "rk4"
    steps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_one_of("method", tuple(name for name in FIXED if find_method(name).is_runge_kutta))


class GDE(BatchedModel):
    """H(0) = relu(A X U + u), dH/dt = A softplus(A H W + b) V + c on [0, 1], logits = A H(1) Q + q; A with self-loops.

    Dropout before both convolutions of the slope is redrawn at every evaluation, so in training the slope is not a
    fixed system; without dropout it is the equation GDE of the catalogue. Nothing differs from the authors' code but
    the data and the number of epochs.
    """

    settings: GdeSettings

    def build(self) -> None:
        """Add four convolutions."""
        hidden = self.settings.hidden
        self.adjacency = self.place.operator("symmetric", self_loops=1.0)
        for name, inputs, outputs in (
            ("encoder", self.features, hidden), ("inner", hidden, hidden), ("outer", hidden, hidden),
            ("decoder", hidden, self.classes),
        ):  # fmt: skip
            self.add_linear(name, inputs, outputs, start="fan_out")

    def convolve(self, name: str, h: Tensor | Features) -> Tensor:
        """A h W + b."""
        return self.adjacency @ self.times(name, h) + self.shift(name)

    def slope(self, h: Tensor, drop: Dropper) -> Tensor:
        """The slope dH/dt of the equation, with newly drawn dropout."""
        return self.convolve("outer", drop(functional.softplus(self.convolve("inner", drop(h)))))

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """H at the start and after every step."""
        tableau = find_method(self.settings.method).tableau
        assert tableau is not None
        rows = [[float(a) for a in row] for row in tableau.stages]
        weights = [float(weight) for weight in tableau.weights]
        states = [torch.relu(self.convolve("encoder", drop.features(x)))]
        length = torch.full_like(states[0][:1, :1, :1], 1 / self.settings.steps)
        for _ in range(self.settings.steps):
            slopes: list[Tensor] = []
            for row in rows:
                slopes.append(self.slope(combine(states[-1], length, row, slopes), drop))
            states.append(combine(states[-1], length, weights, slopes))
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits of H(1)."""
        return self.convolve("decoder", states[-1])


# ---------------------------------------------------------------------- grand
# Chamberlain et al., "GRAND: Graph Neural Diffusion", ICML 2021; diffusion only, as an equation.


@dataclass(frozen=True)
class GrandSettings(GreadSettings, model="grand"):
    """Settings of GRAND: those of GREAD with diffusion as the equation.

    `adjacency` soft is the authors' GRAND-l, fixed attention from H(0); live is GRAND-nl, attention from H(t).
    """

    reaction: str = "diffusion"
    adjacency: str = "soft"


# ---------------------------------------------------------------------- grand plus
# Thorpe et al., "GRAND++: Graph Neural Diffusion with a Source Term", ICLR 2022.


@dataclass(frozen=True, kw_only=True)
class GrandPlusSettings(LineSettings, model="grand-pp"):
    """Settings of GRAND++: dH/dt = -L H + M (H0 - m), m the mean of H0 over the trusted nodes.

    M marks the nodes whose labels are known in training: it uses which nodes are labelled, but no label. The sources
    sum to zero, so a doubly stochastic A conserves the mean of H. `adjacency` soft is fixed attention from H(0), live
    is attention from H(t).

    The authors' code is not public; the rule is the paper's. The code of the GREAD paper adds the source to the initial
    state instead.
    """

    reaction: str = "GRAND++"
    adjacency: str = "soft"
    source_term: str = "centred"


# ---------------------------------------------------------------------- blend
# Chamberlain et al., "Beltrami Flow and Neural Diffusion on Graphs", NeurIPS 2021.
#
# Positions of nodes are computed from the graph: rows of personalised PageRank, or eigenvectors of the Laplacian.

#: Values that differ by less count as equal when the largest are kept.
TIE = 1e-9
#: The largest graph whose eigenvectors are computed from the dense matrix, in nodes.
DENSE = 600


def pagerank_rows(graph: Graph, teleport: float, largest: int, device: Any = "cpu") -> csr_array:
    """Row i of a (I - (1 - a) T)^-1, T = D^-1/2 (W + I) D^-1/2, cut to its `largest` entries, and divided by its sum.

    Graph diffusion convolution of Gasteiger et al. (NeurIPS 2019) with the transition matrix and the cut of BLEND's
    encodings. Entries that equal the last one kept are kept too, so that the numbering of the nodes does not matter.
    The inverse is computed densely, on the device.

    >>> from rdgraph.graphs.generators import path
    >>> pagerank_rows(path(3), 0.5, 3).toarray().round(3)
    array([[0.75 , 0.197, 0.054],
           [0.176, 0.648, 0.176],
           [0.054, 0.197, 0.75 ]])
    """
    if not 0 < teleport < 1 or largest < 1:
        raise InvalidArgument(f"expected 0 < teleport < 1 and one entry or more, got {teleport!r} and {largest!r}")
    if not graph.edge_index.shape[1]:
        return csr_array(eye_array(graph.num_nodes))
    transition = torch.as_tensor(_transition(graph).toarray(), device=device)
    matrix = torch.eye(graph.num_nodes, dtype=transition.dtype, device=device) - (1 - teleport) * transition
    rows = teleport * torch.cholesky_inverse(torch.linalg.cholesky(matrix))
    last = rows.topk(min(largest, len(rows)), sorted=True).values[:, -1:]
    chosen = torch.where((rows >= last - TIE) & (rows > TIE), rows, 0.0)
    return csr_array((chosen / chosen.sum(1, keepdim=True)).cpu().numpy())


def laplacian_vectors(graph: Graph, count: int) -> np.ndarray:
    """Eigenvectors (n, count) of I - T for its smallest eigenvalues, without the first one.

    Every vector has the sign that makes the sum of its cubes positive; the basis of a multiple eigenvalue is arbitrary.
    A graph with too few nodes is padded with zeros.

    >>> from rdgraph.graphs.generators import path
    >>> abs(laplacian_vectors(path(3), 2)).round(3)
    array([[0.707, 0.463],
           [0.   , 0.756],
           [0.707, 0.463]])
    """
    n = graph.num_nodes
    transition = _transition(graph)
    wanted = min(count + 1, n)
    if n <= DENSE or wanted >= n - 1:
        _, vectors = np.linalg.eigh(-transition.toarray())
        vectors = vectors[:, :wanted]
    else:
        values, vectors = eigsh(transition, wanted, which="LA", v0=np.ones(n), tol=1e-8)
        vectors = vectors[:, np.argsort(-values)]
    vectors = vectors[:, 1:] * np.where((vectors[:, 1:] ** 3).sum(0) < 0, -1.0, 1.0)
    return np.pad(vectors, [(0, 0), (0, count - vectors.shape[1])])


def _transition(graph: Graph) -> csr_array:
    """D^-1/2 (W + I) D^-1/2 of the undirected, unweighted graph."""
    n = graph.num_nodes
    looped = csr_array(neighbour_pattern(graph) + eye_array(n))
    scale = csr_array((looped.sum(1) ** -0.5, (np.arange(n), np.arange(n))), shape=(n, n))
    return csr_array(scale @ looped @ scale)


POSITIONS = ("pagerank", "laplacian")


@dataclass(frozen=True, kw_only=True)
class BlendSettings(LineSettings, model="blend"):
    """Settings of BLEND: u' = -L u, v' = -L v, with L = I - S(u, v), u from the features and v from positions.

    Attention is computed from features and positions together and diffuses both; the decoder reads both. `positions`
    pagerank are rows of personalised PageRank, cut to the `largest` entries, which the encoder of positions reads as n
    numbers (the authors' GDC); laplacian are `largest` eigenvectors. The authors' other encodings, DeepWalk and
    hyperbolic, are downloads. `adjacency` soft is fixed attention from the start, live follows the states.

    Features and positions have the same number of channels here, 64 and 16 in the authors' code; their graph rewiring
    and their product kernel are not implemented.
    """

    reaction: str = "BLEND"
    adjacency: str = "soft"
    positions: str = "pagerank"
    teleport: float = 0.05
    largest: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_one_of("positions", POSITIONS)
        self.check_at_least(1, "largest")
        self.check_share("teleport")


class Blend(LineModel):
    """H(0) = [X W + b, P V + c] for the two fields u and v, P the positions; then the equation as in `LineModel`."""

    config: BlendSettings

    @staticmethod
    def nodes_of(config: Any, parameters: Mapping[str, Tensor]) -> int:
        """The number of nodes that trained parameters fit: the length of PageRank's rows; 1 for any number."""
        return int(parameters["positions_weight"].shape[1]) if config.positions == "pagerank" else 1

    def add_encoder(self, columns: int) -> None:
        """Add one encoder for the features and one for the positions."""
        self.positions = self.place.once(
            ("positions", self.config.positions, self.config.largest, self.config.teleport), self._positions
        )
        super().add_encoder(columns // 2)
        self.add_linear("positions", self.positions.shape[1], columns // 2)

    def _positions(self) -> Features:
        """P of the graph, or of each member's graph."""
        c = self.config
        if c.positions == "laplacian":
            each = [laplacian_vectors(graph, c.largest) for graph in self.place.graphs]
            return Features.make(each[0] if len(each) == 1 else np.stack(each), self.place.device, self.place.dtype)
        rows = [pagerank_rows(graph, c.teleport, c.largest, self.place.device) for graph in self.place.graphs]
        if len(rows) == 1:
            return Features.make(rows[0], self.place.device, self.place.dtype, self.members)
        return Features.make(np.stack([part.toarray() for part in rows]), self.place.device, self.place.dtype)

    def first(self, x: Features, drop: Dropper) -> Tensor:
        """The outputs of both linear encoders, side by side."""
        return torch.cat([super().first(x, drop), self.linear("positions", drop.features(self.positions))], -1)


# ---------------------------------------------------------------------- acmp
# Wang et al., "ACMP: Allen-Cahn Message Passing for Graph Neural Networks", ICLR 2023.
#: The equation of the released code: B is 1 on every edge, b the repulsion, beta their optional source.
LINE = "alpha*(A@H - b*(B@H) - H) + delta*H*(1 - H**2) + beta*H0 where alpha channel, delta channel, B operator"


@dataclass(frozen=True, kw_only=True)
class AcmpSettings(LineSettings, model="acmp"):
    """Settings of ACMP: dH/dt = alpha (S H - b B H - H) + delta H (1 - H^2) + beta H0, B = 1 on every edge.

    The edges attract by S and repel by b, a fixed number; the Allen-Cahn term keeps the states near -1 and 1. alpha and
    delta have a value per channel in (0, 1); delta starts at sigmoid(-10), so the reaction is almost off, and beta, if
    trained, is free and starts at zero. H0 carries no gradient. `adjacency` soft is their attention from H(0), original
    their constant block. The terms are those of the authors' code; the paper scales -H by the row sums of S - b B.

    Their integrators are rk4 with a step of 0.1, and dopri5 with a loose tolerance, replaced here by rk4. Their search
    for the best integration time on the validation nodes is not implemented.
    """

    usual_starts: ClassVar[dict[str, float]] = {"alpha": 0.0, "delta": -10.0, "beta": 0.0}
    usual_links: ClassVar[dict[str, str]] = {"delta": "sigmoid"}

    reaction: str = LINE
    alpha: str = "channel"
    beta: str = "scalar"
    beta_link: str = "free"
    values: str = "b=0, beta=0"
    adjacency: str = "soft"
    method: str = "rk4"
    step: float | None = 0.2
    source_term: str = "detached"


# ---------------------------------------------------------------------- GRAFF
# Di Giovanni et al., "Understanding convolution on graphs via energies", TMLR 2023; a gradient flow.


@dataclass(frozen=True, kw_only=True)
class GraffSettings(LineSettings, model="graff"):
    """Settings of GRAFF: dH/dt = A H W - H Omega + beta H0 by Euler steps, W symmetric and shared by all steps.

    `reaction` GRAFF-diagonal has a diagonal W; GRAFF has a whole one, made symmetric as `matrices` says, by default
    dominant, W_ii = t_i sum_j |W_ij| + r_i. relu(...) around the line gives their nonlinear form. A is symmetric and,
    as in their runs, without self-loops; beta is one free number that starts at zero, and H0 is held without a
    gradient.

    `step_norm` is their batch norm of the slope (squirrel). Their code keeps the norms of the layers in a plain list:
    weights and shifts are not trained, prediction uses the means of the current nodes too, and all layers share the
    first norm. The same is done here. The last of T/tau steps is shortened, as theirs is.
    """

    usual_starts: ClassVar[dict[str, float]] = {"beta": 0.0}

    reaction: str = "GRAFF-diagonal"
    beta: str = "scalar"
    beta_link: str = "free"
    adjacency: str = "original"
    self_loops: float = 0.0
    time: float = 3.0
    method: str = "euler"
    step: float | None = 1.0
    matrices: str = "dominant"
    source_term: str = "detached"


RECORDS = printed_records(
    (CgnnSettings, LineModel), (GdeSettings, GDE), (GrandSettings, GREAD), (GrandPlusSettings, LineModel),
    (BlendSettings, Blend), (AcmpSettings, LineModel), (GraffSettings, LineModel),
)  # fmt: skip
