"""What is proved of a trained network as a whole: Lipschitz constants multiply; energies and training do not compose.

The norm is the p-norm of all entries of a state, in which |A| <= 1 for every graph with weights >= 0: 2 for the
symmetric normalisation, inf for row, 1 for column. A layer x W has the p-norm of W', a block
|norm| (|flow| |W| + |residual|). With f = sum_k c_k A^k H + r(H) + sum_k s_k A^k H0 the exact flow has
exp(m T) + sum |s_k| (exp(m T) - 1)/m, m the logarithmic norm of f; steps are composed as polynomials of A if f is
linear, else by sup |f'|. Coefficients are the trained numbers, of any sign.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp
import torch
from numpy.polynomial import polynomial
from scipy.special import exprel
from torch import Tensor

from gread.models.gread_model import GREAD, Block, Stack
from gread.models.norms import EPS, BatchNorm
from gread.settings.gread_settings import FULL, GreadSettings
from rdgraph.answers import Answer, Status
from rdgraph.errors import NotApplicable, RdgraphError
from rdgraph.language.normal_form import H
from rdgraph.reals.domain import Domain
from rdgraph.reals.maxima import maximum
from rdgraph.run.solvers.schedules import Schedule
from rdgraph.systems.structure import Structure
from rdgraph.systems.system import System
from rdgraph.theory.slope_bounds import slopes, steepest
from rdgraph.vocabulary.methods import find_method
from rdgraph.vocabulary.normalisations import find_normalisation

#: Largest slopes of the activations; that of gelu is 1.1289...
ACTIVATION_SLOPES = {"relu": 1.0, "tanh": 1.0, "none": 1.0, "gelu": 1.13}
#: Points of a maximum on [-1, 1], and the factor for rounding in double precision.
POINTS, ROUNDING = 1024, 1 + 1e-9


@dataclass(frozen=True)
class Factor:
    """A part of a network and its Lipschitz constant."""

    part: str
    value: float
    reason: str


@dataclass(frozen=True, eq=False)
class NetworkBounds:
    """What composes in a network, and what does not.

    Attributes:
        lipschitz: A constant of the map from the prepared features to the logits in prediction, on every graph.
        energy: Why the energies of the flows say nothing of the whole.
        training: Whether the constant holds in training as well.
        factors: The parts whose constants are multiplied.
    """

    lipschitz: Answer
    energy: Answer
    training: Answer
    factors: tuple[Factor, ...]


def network_bounds(config: GreadSettings, model: GREAD) -> NetworkBounds:
    """The bounds of a trained network around one equation; `model` is the network on any graph."""
    energy = Answer(
        None, Status.REFUSED,
        f"a law of the Dirichlet energy holds for the flow in each of {config.blocks} blocks; matrices, norms and "
        "activations between the flows can raise or lower it" if config.is_stacked else
        "a law of the Dirichlet energy holds for the flow; the encoder and the decoder can raise or lower it",
    )  # fmt: skip
    try:
        factors = tuple(_factors(config, model))
        constant = math.prod(one.value for one in factors) * ROUNDING
        norm = find_normalisation(config.normalisation).norm
        lipschitz = Answer(
            constant, Status.BOUNDED, f"the product of {len(factors)} constants in the {norm}-norm of all entries",
            assumes="weights are >= 0, and the exact method is the exact flow",
        )  # fmt: skip
    except NotApplicable as problem:
        factors, lipschitz = (), Answer(None, Status.UNDECIDED, str(problem))
    return NetworkBounds(lipschitz, energy, _in_training(config, lipschitz), factors)


def _in_training(config: GreadSettings, lipschitz: Answer) -> Answer:
    if config.norm == "batch":
        reason = (
            "batch norm in training divides by the deviation of the current states over the nodes; the constant holds "
            "for the deviations of the prediction"
        )
        return Answer(None, Status.REFUSED, reason)
    if config.dropout or config.input_dropout:
        reason = "dropout in training multiplies the remaining entries by 1/(1 - rate), a factor for each dropout"
        return Answer(None, Status.REFUSED, reason)
    return lipschitz


def _factors(config: GreadSettings, model: GREAD) -> list[Factor]:
    """The constants of encoder, blocks and decoder; raises NotApplicable with the reason where there is none."""
    if type(config) is not GreadSettings or config.storage != FULL:
        raise NotApplicable("no constant is known for networks of this kind; take GREAD in full precision")
    if config.adjacency != "original":
        raise NotApplicable(
            "attention depends on the state by products of states, whose slopes have no bound over all states; "
            "set adjacency=original"
        )
    norm = find_normalisation(config.normalisation).norm
    if norm is None:
        raise NotApplicable(f"no norm has |A| <= 1 for the normalisation {config.normalisation}")
    parts = {name: value[0].detach().double() for name, value in model.parts.items()}
    size = {name.removesuffix("_weight"): matrix_norm(w, norm) for name, w in parts.items() if w.ndim == 2}
    found = [Factor("encoder", size["encoder"], "norm of the matrix")]
    if config.encoder_mlp:
        value = (1 + size["encoder_first"]) * (1 + size["encoder_second"])
        found.append(Factor("encoder, hidden layers", value, "1 + the norm of each matrix"))
    if isinstance(model, Stack):
        for number in range(config.blocks):
            if number and config.activation != "none":
                found.append(Factor(config.activation, ACTIVATION_SLOPES[config.activation], "largest slope"))
            found += _block_factors(config, model.block(number), size, parts, norm)
    else:
        value, reason = flow_factor(config, {k: v[0] for k, v in model.coefficients().items()}, norm)
        found.append(Factor("flow", value, reason))
    if config.decoder_mlp:
        found.append(Factor("decoder, hidden layer", 1 + size["decoder_hidden"], "1 + the norm of the matrix"))
    found.append(Factor("decoder", size["decoder"], "norm of the matrix; ReLU and tanh have slopes of at most 1"))
    return found


def _block_factors(
    config: GreadSettings, block: Block, size: Mapping[str, float], parts: Mapping[str, Tensor], norm: str
) -> list[Factor]:
    """The constant of mixing, flow and residual of a block, and that of its norm."""
    prefix, title = f"blocks.{block.number}.", f"block {block.number + 1}"
    flow, reason = flow_factor(config, {k: v[0] for k, v in block.coefficients().items()}, norm)
    mixing = size[f"{prefix}mixing"] if config.mixing else 1.0
    residual = {"none": 0.0, "identity": 1.0}.get(config.residual)
    residual = size[f"{prefix}residual"] if residual is None else residual
    words = f"flow {flow:.4g} ({reason}), times matrix {mixing:.4g}, plus residual {residual:.4g}"
    found = [Factor(title, flow * mixing + residual, words)]
    if block.norm is None:
        return found
    weight = parts[f"{prefix}norm_weight"].abs()
    if isinstance(block.norm, BatchNorm):
        value, reason = (weight * (parts[f"{prefix}norm_variance"] + EPS).rsqrt()).max(), "its deviations are frozen"
    else:  # the slope of (h - mean)/deviation is at most 1/sqrt(EPS) in the 2-norm of the channels
        spread = 1.0 if norm == "2" else config.hidden**0.5
        value, reason = weight.max() * spread * EPS**-0.5, f"the deviation of a node is at least sqrt({EPS:g})"
    return [*found, Factor(f"{title}, {config.norm} norm", float(value), reason)]


def matrix_norm(weight: Tensor, norm: str) -> float:
    """The constant of x -> x W for the p-norm of all entries of x (n, inputs).

    >>> [matrix_norm(torch.tensor([[1.0, 2.0], [0.0, 0.0]]), norm) for norm in ("inf", "1")]
    [2.0, 3.0]
    """
    return float(torch.linalg.matrix_norm(weight.T.double(), {"2": 2, "inf": math.inf, "1": 1}[norm]))


# ---------------------------------------------------------------------- flows
def flow_factor(config: GreadSettings, values: Mapping[str, Tensor], norm: str) -> tuple[float, str]:
    """The constant of H(0) -> H(T) for these coefficients by the method of the network, and how it was found."""
    system, method = config.system, find_method(config.method)
    region = config.region
    if not system.is_single or system.learned or region.is_saturated or system.structure.coupled != 0:
        raise NotApplicable(
            "the constant of a flow is known for one field with powers of A and a reaction of single entries, without "
            "learned functions and bounded slopes"
        )
    structure = system.structure
    c, s = (_coefficients(system, part, values) for part in (structure.generator, structure.source))
    sources = np.abs(s).sum(0)
    if method.is_exact or (method.is_splitting and not sources.any()):
        rates = _rate(c, norm) + _slope(structure, values, is_one_sided=True)
        growth = np.exp(rates * config.time)
        return float(
            (growth + sources * config.time * exprel(rates * config.time)).max()
        ), "exponential of the logarithmic norm"
    if method.tableau is None or not method.is_runge_kutta:
        raise NotApplicable(f"the steps of {method.name} depend on the state; take the exact method or fixed steps")
    lengths = Schedule.make(config.method, config.time, config.step).lengths(
        torch.tensor([config.time], dtype=torch.float64)
    )
    weights = [[float(x) for x in row] for row in (*method.tableau.stages, method.tableau.weights)]
    if structure.linear:
        way = "largest value of its polynomial in A"
    else:  # |f(X) - f(Y)| <= K |X - Y| + k0 |X0 - Y0|: all signs count as positive
        c, s = np.abs(c).sum(0)[None] + _slope(structure, values, is_one_sided=False), sources[None]
        way = "largest slope, step by step"
    count, cut = max(c.shape[1], s.shape[1]), len(c)
    columns = {(*c[:, k % c.shape[1]], *s[:, k % s.shape[1]]) for k in range(count)}
    steps = weights, list(map(float, lengths)), structure.linear
    return max(_size(_after_steps(np.array(x[:cut]), np.array(x[cut:]), *steps), norm) for x in columns), way


def _after_steps(
    c: np.ndarray, s: np.ndarray, weights: Sequence[Sequence[float]], lengths: Sequence[float], is_linear: bool
) -> np.ndarray:
    """The coefficients of G, H(T) = G(A) H(0), for dH/dt = c(A) H + s(A) H(0)."""
    G: np.ndarray = np.ones(1)
    for length in lengths:
        stages: list[np.ndarray] = []
        for row in weights:
            state: np.ndarray = G
            for weight, stage in zip(row, stages, strict=True):
                state = polynomial.polyadd(state, length * (weight if is_linear else abs(weight)) * stage)
            stages.append(polynomial.polyadd(polynomial.polymul(c, state), s))
        G = state  # the last row holds the weights of the step
    return G


def _size(G: np.ndarray, norm: str) -> float:
    """A bound of |G(A)| over all graphs: the sum of |coefficients|, or in the 2-norm the largest |G| on [-1, 1]."""
    total = float(np.abs(G).sum())
    return min(total, max(float(_largest(sign * G)) for sign in (1, -1))) if norm == "2" else total


def _coefficients(system: System, part: Mapping[int, sp.Expr], values: Mapping[str, Tensor]) -> np.ndarray:
    """The coefficients of A^0, A^1, ... (degree + 1, channels) at the trained numbers."""
    numbers = {name: value.detach().double().cpu().numpy().reshape(-1) for name, value in values.items()}
    channels = max((len(v) for v in numbers.values()), default=1)
    result = np.zeros((max(part, default=0) + 1, channels))
    for power, expression in part.items():
        letters = sorted(expression.free_symbols, key=str)
        if missing := [x.name for x in letters if x.name not in numbers]:
            raise NotApplicable(f"{system.text} depends on {missing[0]}, which is no trained coefficient")
        result[power] = sp.lambdify(letters, expression, "numpy")(*(numbers[x.name] for x in letters))
    return result


def _rate(c: np.ndarray, norm: str) -> np.ndarray:
    """The logarithmic norm of sum_k c_k A^k over all graphs, channel by channel."""
    return _largest(c) if norm == "2" else np.asarray(c[0] + np.abs(c[1:]).sum(0))


def _largest(c: np.ndarray) -> np.ndarray:
    """A bound of the maximum on [-1, 1] of the polynomials sum_k c_k a^k: that on a grid, and what may lie between."""
    a, k = np.linspace(-1.0, 1.0, POINTS + 1), np.arange(len(c)).reshape(-1, *[1] * (c.ndim - 1))
    curvature = (k * (k - 1) * np.abs(c)).sum(0)  # at most max |p''|; a maximum inside is half a spacing away at most
    return np.asarray(polynomial.polyval(a, c).max(-1) + curvature * (2 / POINTS) ** 2 / 8)


def _slope(structure: Structure, values: Mapping[str, Tensor], *, is_one_sided: bool) -> np.ndarray:
    """sup r', or sup |r'|, of the reaction for every channel; raises NotApplicable where there is none."""
    letters = sorted((x for x in structure.reaction.free_symbols if x != H), key=str)
    columns = [values[x.name].detach().double().reshape(-1).tolist() for x in letters]
    known: dict[tuple[float, ...], float] = {}
    length = max(map(len, columns), default=1)
    rows = list(zip(*(column * (length // len(column)) for column in columns), strict=True)) or [()]
    for row in dict.fromkeys(rows):
        reaction = structure.reaction.xreplace({x: sp.Rational(v) for x, v in zip(letters, row, strict=True)})
        try:
            if is_one_sided:
                steep = slopes(reaction, Domain(), local=False)
                value = steep.restore(maximum(list(steep.candidates), steep.domain(Domain())))
            else:
                value = steepest(reaction, Domain(), local=False)
            known[row] = float(value)
        except (RdgraphError, TypeError):
            known[row] = math.inf
        if not math.isfinite(known[row]):
            raise NotApplicable("the slopes of the reaction have no bound over all states")
    return np.array([known[row] for row in rows])
