"""Neural sheaf diffusion: Bodnar et al., "Neural Sheaf Diffusion", NeurIPS 2022.

Every node has a small vector space, its stalk, and every end of an edge a learned map of it: diagonal, orthogonal or
general. Diffusion uses the Laplacian of these maps. In states (M, n, stalk*channels) the stalk is the outer axis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from gread.kernels.edge_attention import edge_sums, reversed_edges
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.model_records import StackedSettings, printed_records
from rdgraph.graphs.kernels import operations as ops

# ---------------------------------------------------------------------- small matrices
# Thousands of small matrices, (M, d, d, K): one for each of K nodes or edges, the last axis.
#
# A product is a few long multiplications of entries, which is faster than batched products of such sizes. Nothing here
# synchronises with the host, and every function is differentiable.

#: Steps of the iteration for inverse square roots: enough for condition numbers up to 1e6 in double precision.
STEPS = 30


def matrix_products(first: Tensor, second: Tensor) -> Tensor:
    """P Q (M, a, c, ...) of the matrices P (M, a, b, ...) and Q (M, b, c, ...), one for each of the last indices.

    >>> shears = torch.tensor([[1.0, 2.0], [0.0, 1.0]])[None, :, :, None]
    >>> matrix_products(shears, shears)[0, :, :, 0]
    tensor([[1., 4.],
            [0., 1.]])
    """
    total = first[:, :, 0, None] * second[:, None, 0]
    for k in range(1, first.shape[2]):
        total = torch.addcmul(total, first[:, :, k, None], second[:, None, k])
    return total


def identities(like: Tensor) -> Tensor:
    """The identity (1, d, d, 1) for matrices (M, d, d, K)."""
    return torch.eye(like.shape[1], dtype=like.dtype, device=like.device)[None, :, :, None]


def lower_vectors(entries: Tensor, size: int) -> list[Tensor]:
    """The columns (M, size, K) of unit lower triangular matrices, from their entries (M, k, K) column by column.

    >>> numbers = torch.tensor([2.0, 3.0, 4.0])[None, :, None]
    >>> [v.ravel().tolist() for v in lower_vectors(numbers, 3)]
    [[1.0, 2.0, 3.0], [0.0, 1.0, 4.0], [0.0, 0.0, 1.0]]
    """
    one, zero = torch.ones_like(entries[:, :1]), torch.zeros_like(entries[:, :1])
    columns, start = [], 0
    for k in range(size):
        below = entries[:, start : start + size - 1 - k]
        columns.append(torch.cat([*k * [zero], one, below], 1))
        start += size - 1 - k
    return columns


def householder(numbers: Tensor, size: int) -> Tensor:
    """Orthogonal matrices (M, size, size, K): products of I - 2 v v'/|v|^2, one for each of the `lower_vectors`.

    >>> Q = householder(torch.tensor([0.3, -1.0, 2.0])[None, :, None], 3)
    >>> torch.allclose(matrix_products(Q, Q.transpose(1, 2)), identities(Q), atol=1e-6)
    True
    """
    product = torch.eye(size, dtype=numbers.dtype, device=numbers.device)[None, :, :, None]
    for v in lower_vectors(numbers, size):
        scaled = 2 * v / v.square().sum(1, keepdim=True)
        product_v = (product * v[:, None]).sum(2)
        product = torch.addcmul(product, product_v[:, :, None], scaled[:, None], value=-1)
    return product


def inverse_root(matrices: Tensor, steps: int = STEPS) -> Tensor:
    """A^(-1/2) of symmetric positive definite matrices (M, d, d, K) by Newton's coupled iteration.

    With A divided by its largest row sum all eigenvalues lie in (0, 1], where Y <- Y T, Z <- T Z, T = (3 I - Z Y)/2
    converge to A^(1/2) and A^(-1/2); the smallest eigenvalue grows by a factor of 9/4 a step at first.

    >>> inverse_root(torch.tensor([[4.0, 0.0], [0.0, 0.25]])[None, :, :, None])[0, :, :, 0]
    tensor([[0.5000, 0.0000],
            [0.0000, 2.0000]])
    """
    identity = identities(matrices)
    size = matrices.abs().sum(2, keepdim=True).amax(1, keepdim=True).detach()
    root, inverse = matrices / size, identity.expand_as(matrices)
    for _ in range(steps):
        turn = 1.5 * identity - 0.5 * matrix_products(inverse, root)
        root, inverse = matrix_products(root, turn), matrix_products(turn, inverse)
    return inverse * torch.rsqrt(size)


# ---------------------------------------------------------------------- sheaf


@dataclass(frozen=True, kw_only=True)
class SheafSettings(StackedSettings, least={"stalk": 1}):
    """Settings of sheaf diffusion.

    Args:
        stalk: Dimensions of a stalk that have learned maps.
        hidden: Channels of every dimension of a stalk.
        low_pass: Whether a dimension with the maps 1, 1 is added: ordinary diffusion.
        high_pass: Whether a dimension with the maps 1, -1 is added: neighbours push each other apart.
        second_linear: Whether a second linear layer follows the encoder.
    """

    hidden: int = 16
    stalk: int = 3
    low_pass: bool = False
    high_pass: bool = False
    second_linear: bool = False

    @property
    def dimensions(self) -> int:
        """Dimensions of a stalk, fixed ones included."""
        return self.stalk + self.low_pass + self.high_pass


class SheafNetwork(BatchedModel):
    """X' = (1 + tanh(e)) X - elu(D(X) (I x W1) X W2), D(X) the normalised Laplacian of maps learned from X.

    The map at the end i of an edge to j is computed from tanh(V [x_i, x_j]). D has the blocks sum_e F'F on its diagonal
    and -F_i' F_j off it, normalised by (diagonal + I)^(-1/2) from both sides. Every layer learns its own maps. e starts
    at 0, W1 at the identity, W2 orthogonal. The authors use a separate weight decay for the maps and, for orthogonal
    ones, edge weights; here all parameters have the same decay and all edges the same weight.
    """

    settings: SheafSettings

    def build(self) -> None:
        """Add the encoder, the four parts of every layer and the classifier."""
        s = self.settings
        width = s.dimensions * s.hidden
        self.edges = self.place.operator("none")
        #: 1 at the edges that a member has (1 or M, 1, E), and how many each of its nodes has (1 or M, 1, n, 1).
        self.present = (self.edges.weights != 0).to(self.place.dtype).reshape(-1, 1, self.edges.num_edges)
        self.counts = self.node_sums(self.present)[..., None]
        self.add_linear("encoder", self.features, width)
        if s.second_linear:
            self.add_linear("second", width, width)
        for k in range(s.layers):
            for end in ("own", "neighbour"):
                self.add_parameter(f"maps_{k}_{end}", self.uniform((width, self.numbers), (2 * width) ** -0.5))
            identity = torch.eye(s.dimensions, dtype=self.place.dtype, device=self.place.device)
            self.add_parameter(f"stalks_{k}", identity.repeat(self.members, 1, 1))
            self.add_parameter(f"channels_{k}", torch.linalg.qr(self.normal((s.hidden, s.hidden))).Q.contiguous())
            self.add_parameter(f"keep_{k}", self.full((s.dimensions,), 0.0))
        self.add_linear("classifier", width, self.classes)

    @property
    def numbers(self) -> int:
        """The number of parameters of a map."""
        raise NotImplementedError

    def spread(self, maps: Tensor, x: Tensor) -> Tensor:
        """D x of the learned dimensions, from the maps (M, numbers, E) and x (M, stalk, n, channels)."""
        raise NotImplementedError

    # ------------------------------------------------------------------ sums over the edges
    def over_edges(self, weights: Tensor, x: Tensor) -> Tensor:
        """sum_j w_ij x_j of weights (M, b, E), or (1, 1, E) for all, and x (M, b, n, c)."""
        flat = x.reshape(-1, *x.shape[-2:]).contiguous()
        sums = ops.spmm(self.edges.pattern.tensors, weights.flatten(0, 1).contiguous(), flat, None, None, [], [])
        return sums.view(x.shape)

    def node_sums(self, weights: Tensor) -> Tensor:
        """sum_j w_ij (M, b, n) of weights (M, b, E)."""
        one = torch.ones((*weights.shape[:2], self.place.nodes, 1), dtype=weights.dtype, device=weights.device)
        return self.over_edges(weights, one)[..., 0]

    def maps(self, k: int, h: Tensor) -> Tensor:
        """tanh(V [x_i, x_j]) at every edge j -> i, (M, numbers, E)."""
        ends = (
            (h @ self.get_parameter(f"maps_{k}_{end}")).transpose(1, 2).reshape(-1, self.place.nodes)
            for end in ("own", "neighbour")
        )
        return torch.tanh(edge_sums(self.edges.pattern, *ends)).view(self.members, self.numbers, -1)

    def laplacian(self, k: int, h: Tensor, x: Tensor) -> Tensor:
        """D(h) x for x (M, dimensions, n, channels)."""
        stalk = self.settings.stalk
        parts = [self.spread(self.maps(k, h), x[:, :stalk])]
        signs = [1.0] * self.settings.low_pass + [-1.0] * self.settings.high_pass
        for position, sign in enumerate(signs, stalk):
            parts.append(self.from_counts(x[:, position : position + 1], partial(self.over_edges, sign * self.present)))
        return torch.cat(parts, 1)

    def from_counts(self, x: Tensor, sums: Callable[[Tensor], Tensor]) -> Tensor:
        """D x where the diagonal blocks are numbers of edges; `sums` computes the off-diagonal part."""
        scale = torch.rsqrt(self.counts + 1)
        scaled = scale * x
        return scale * (self.counts * scaled - sums(scaled))

    # ------------------------------------------------------------------ the network
    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The encoded features and the output of every layer."""
        s = self.settings
        h = drop(functional.elu(self.linear("encoder", drop.features(x))))
        states = [self.linear("second", h) if s.second_linear else h]
        for k in range(s.layers):
            seen = drop(states[-1]) if k else states[-1]
            stalks = self._stalks(drop(states[-1]))
            mixed = torch.einsum("mab,mbnc->manc", self.get_parameter(f"stalks_{k}"), stalks)
            mixed = mixed @ self.get_parameter(f"channels_{k}")[:, None]
            change = functional.elu(self.laplacian(k, seen, mixed))
            keep = 1 + torch.tanh(self.get_parameter(f"keep_{k}"))[:, :, None, None]
            states.append(self._flat(keep * self._stalks(states[-1]) - change))
        return states

    def read(self, states: list[Tensor], drop: Dropper) -> Tensor:
        """Logits of the last state."""
        return self.linear("classifier", states[-1])

    def _stalks(self, h: Tensor) -> Tensor:
        """(M, n, dimensions*channels) as (M, dimensions, n, channels)."""
        return h.view(self.members, self.place.nodes, self.settings.dimensions, -1).transpose(1, 2)

    def _flat(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).reshape(self.members, self.place.nodes, -1)


class DiagonalSheaf(SheafNetwork):
    """Diagonal maps: every dimension of the stalk has its own signed and weighted graph."""

    @property
    def numbers(self) -> int:
        """The diagonal."""
        return self.settings.stalk

    def spread(self, maps: Tensor, x: Tensor) -> Tensor:
        """D x, dimension by dimension."""
        maps = maps * self.present
        diagonal = self.node_sums(maps.square())[..., None]
        scale = torch.rsqrt(diagonal + 1)
        across = maps * reversed_edges(self.edges.pattern, maps)
        return scale * (diagonal * scale * x - self.over_edges(across, scale * x))


class MatrixSheaf(SheafNetwork):
    """Maps that are matrices (M, stalk, stalk, E)."""

    def blocks(self, maps: Tensor) -> Tensor:
        """F_i' F_j at every edge, (M, stalk, stalk, E)."""
        return matrix_products(maps.transpose(1, 2), reversed_edges(self.edges.pattern, maps))

    def block_sums(self, blocks: Tensor, x: Tensor) -> Tensor:
        """sum_j B_ij x_j: one sparse product for every entry of a block."""
        d = self.settings.stalk
        pairs = x[:, None].expand(-1, d, -1, -1, -1).flatten(1, 2)
        return self.over_edges(blocks.flatten(1, 2), pairs).unflatten(1, (d, d)).sum(2)


class OrthogonalSheaf(MatrixSheaf):
    """Orthogonal maps, as products of Householder reflections: the diagonal blocks are numbers of edges."""

    @property
    def numbers(self) -> int:
        """The entries below the diagonal; at least one, so that there is something to learn."""
        return max(1, self.settings.stalk * (self.settings.stalk - 1) // 2)

    def spread(self, maps: Tensor, x: Tensor) -> Tensor:
        """D x, block by block."""
        blocks = self.blocks(householder(maps, self.settings.stalk)) * self.present[:, None]
        return self.from_counts(x, partial(self.block_sums, blocks))


class GeneralSheaf(MatrixSheaf):
    """General maps. The authors take square roots by a perturbed singular value decomposition; here by iteration."""

    @property
    def numbers(self) -> int:
        """All entries."""
        return self.settings.stalk**2

    def spread(self, maps: Tensor, x: Tensor) -> Tensor:
        """D x, block by block."""
        maps = (maps * self.present).unflatten(1, (self.settings.stalk, self.settings.stalk))
        within = matrix_products(maps.transpose(1, 2), maps)
        diagonal = self.node_sums(within.flatten(1, 2)).unflatten(1, maps.shape[1:3])
        scale = inverse_root(diagonal + identities(diagonal))
        scaled = self._times(scale, x)
        return self._times(scale, self._times(diagonal, scaled) - self.block_sums(self.blocks(maps), scaled))

    def _times(self, matrices: Tensor, x: Tensor) -> Tensor:
        """The matrix of every node (M, a, b, n) times its columns x (M, b, n, channels)."""
        return matrix_products(matrices[..., None], x[:, :, None])[:, :, 0]


@dataclass(frozen=True, kw_only=True)
class DiagonalSheafSettings(SheafSettings, model="sheaf-diagonal"):
    """Settings of sheaf diffusion with diagonal maps."""


@dataclass(frozen=True, kw_only=True)
class OrthogonalSheafSettings(SheafSettings, model="sheaf"):
    """Settings of sheaf diffusion with orthogonal maps."""


@dataclass(frozen=True, kw_only=True)
class GeneralSheafSettings(SheafSettings, model="sheaf-general"):
    """Settings of sheaf diffusion with general maps."""


RECORDS = printed_records(
    (OrthogonalSheafSettings, OrthogonalSheaf), (DiagonalSheafSettings, DiagonalSheaf),
    (GeneralSheafSettings, GeneralSheaf),
)  # fmt: skip
