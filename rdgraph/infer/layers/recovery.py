"""`recover`: the equation that a layer computes, or why none was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.answers import Answer, Status
from rdgraph.infer.fit.damped_steps import Effort
from rdgraph.infer.formulas.slopes_and_inverses import BESIDE_THE_STATE, GATES, OF_ENTRIES, inverses, is_in_range
from rdgraph.infer.layers.coefficient_fit import LEAST
from rdgraph.infer.layers.equation_target import Target, right_hand_side
from rdgraph.infer.layers.layer_call import Adaptor, LayerCall
from rdgraph.infer.layers.layer_check import NEAR, Comparison, LayerCheck
from rdgraph.infer.layers.layer_properties import (
    Agreement,
    LayerProperty,
    agreement_of,
    is_polynomial,
    layer_properties,
    reach_of,
    slopes,
)
from rdgraph.infer.layers.probe_graphs import Reading, declared_readings, read_graph, read_graphs
from rdgraph.infer.layers.probe_stack import Probe, Stack, ask
from rdgraph.language.reader import Vocabulary, read_expression
from rdgraph.language.tree import Kind
from rdgraph.systems.parser import parse
from rdgraph.theory.equality.dense_oracle import evaluate
from rdgraph.wording import fraction_text, near_fraction, scaled_term, signed_sum

# ---------------------------------------------------------------------- feature fit
# Interpolation by features: which words A^k and which functions of entries occur in the outputs of a layer.

_VOCABULARY = Vocabulary.standard({"D": Kind.OPERATOR})
#: Coefficients below this share of the largest one are zero.
NOTHING = 1e-8

Array = np.ndarray


@dataclass(frozen=True)
class FeatureFit:
    """sum_k F_k W_k + sum_m c_m G_m + b: matrices for the words, a number per channel for functions, a constant."""

    words: tuple[str, ...]
    matrices: tuple[Array, ...]
    entries: tuple[str, ...]
    factors: tuple[Array, ...]
    constant: Array
    error: float

    @property
    def occurring(self) -> int:
        """The number of words and functions with a nonzero coefficient."""
        return sum(not is_zero(m, self.size) for m in (*self.matrices, *self.factors))

    @property
    def size(self) -> float:
        """The largest coefficient."""
        parts = [*self.matrices, *self.factors]
        return max((float(np.abs(m).max(initial=0.0)) for m in parts), default=0.0)


def is_zero(array: Array, size: float) -> bool:
    """Whether an array is negligible relative to the largest coefficient."""
    return bool(np.abs(array).max(initial=0.0) <= NOTHING * max(size, 1e-300))


def fit_features(
    stack: Stack,
    reading: Reading,
    words: Sequence[str],
    entries: Sequence[str] = (),
    inverse: Callable[[Array], Array] | None = None,
) -> FeatureFit:
    """Least squares for the coefficients; `inverse` inverts an outermost function, nan where it has no inverse.

    The error is relative, and that of the arguments of the outermost function.
    """
    letters = {**stack.states, **stack.operators(reading)}
    mixed = np.hstack([evaluate(tree_of(word), letters) for word in words])
    single = [evaluate(tree_of(entry), letters) for entry in entries]
    wanted = stack.outputs if inverse is None else inverse(stack.outputs)
    scale = stack.tolerance(1.0)
    out = wanted.shape[1]
    solved, worst = np.zeros((mixed.shape[1] + len(entries) + 1, out)), 0.0
    # Channels share their equations where nothing acts entry by entry.
    for channels in [slice(None)] if inverse is None and not entries else [slice(k, k + 1) for k in range(out)]:
        design = np.hstack([mixed, *(g[:, channels] for g in single), np.ones((len(wanted), 1))]) / scale
        right = wanted[:, channels] / scale
        is_known = np.isfinite(right).all(axis=1)
        design, right = design[is_known], right[is_known]
        if len(design) < design.shape[1] or not np.isfinite(design).all():
            return FeatureFit(tuple(words), (), tuple(entries), (), np.zeros(out), np.inf)
        solved[:, channels] = np.linalg.lstsq(design, right, rcond=1e-11)[0]
        worst = max(worst, float(np.abs(design @ solved[:, channels] - right).max(initial=0.0)))
    width = mixed.shape[1] // len(words)
    matrices = tuple(solved[k * width : (k + 1) * width] for k in range(len(words)))
    factors = tuple(solved[mixed.shape[1] : -1])
    return FeatureFit(tuple(words), matrices, tuple(entries), factors, solved[-1], worst)


@cache
def tree_of(text: str) -> sp.Basic:
    """The tree of a feature; D is the degree matrix."""
    return read_expression(text, _VOCABULARY)


@dataclass(frozen=True)
class Line:
    """A line of the language with the kinds and values of its coefficients."""

    text: str
    kinds: dict[str, str]
    values: dict[str, Array]


def written(fit: FeatureFit) -> Line:
    """The fit as a line: numbers where a matrix is a multiple of I, one matrix where all are multiples of it.

    >>> fit = FeatureFit(("H", "A@H"), (np.zeros((2, 2)), 0.5*np.eye(2)), (), (), np.zeros(2), 0.0)
    >>> written(fit).text
    '0.5*A@H'
    """
    size = fit.size
    blocks = [(w, m) for w, m in zip(fit.words, fit.matrices, strict=True) if not is_zero(m, size)]
    kinds: dict[str, str] = {}
    values: dict[str, Array] = {}
    shared = _shared(blocks)
    terms: list[str] = []
    if shared is not None:
        matrix, numbers = shared
        inner = signed_sum([scaled_term(number_text(c), w) for c, (w, _) in zip(numbers, blocks, strict=True)])
        kinds["W"], values["W"] = "matrix", matrix
        terms.append(f"({inner})@W" if len(blocks) > 1 or "@" in inner or "*" in inner else f"{inner}@W")
    else:
        for k, (word, matrix) in enumerate(blocks):
            terms.append(_block(word, matrix, f"W{k + 1}", f"k{k + 1}", kinds, values))
    for m, (entry, factor) in enumerate(zip(fit.entries, fit.factors, strict=True)):
        if not is_zero(factor, size):
            terms.append(_channelled(entry, factor, f"c{m + 1}", kinds, values))
    if not is_zero(fit.constant, max(size, 1.0)):
        terms.append(_constant(fit.constant, kinds, values))
    return Line(signed_sum(terms) if terms else "0*H", kinds, values)


def _shared(blocks: Sequence[tuple[str, Array]]) -> tuple[Array, list[float]] | None:
    """A matrix of which all are multiples, with the factors; None if there is none, or numbers suffice."""
    if not blocks or all(_multiple_of_identity(m) is not None for _, m in blocks):
        return None
    if any(_diagonal(m) is not None and m.shape[0] > 1 for _, m in blocks):
        return None
    matrix = max((m for _, m in blocks), key=lambda m: float(np.abs(m).max()))
    largest = np.unravel_index(np.abs(matrix).argmax(), matrix.shape)
    numbers = [float(m[largest] / matrix[largest]) for _, m in blocks]
    near = all(
        np.abs(m - c * matrix).max() <= NOTHING * np.abs(matrix).max()
        for c, (_, m) in zip(numbers, blocks, strict=True)
    )
    return (matrix, numbers) if near else None


def _block(word: str, matrix: Array, name: str, channel: str, kinds: dict[str, str], values: dict[str, Array]) -> str:
    if (number := _multiple_of_identity(matrix)) is not None:
        return scaled_term(number_text(number), word)
    if (diagonal := _diagonal(matrix)) is not None:
        return _channelled(word, diagonal, channel, kinds, values)
    kinds[name], values[name] = "matrix", matrix
    return f"{word}@{name}"


def _channelled(entry: str, factor: Array, name: str, kinds: dict[str, str], values: dict[str, Array]) -> str:
    if np.ptp(factor) <= NOTHING * np.abs(factor).max():
        return scaled_term(number_text(float(factor.mean())), entry)
    kinds[name], values[name] = "channel", factor
    return f"{name}*({entry})" if "+" in entry else f"{name}*{entry}"


def _constant(constant: Array, kinds: dict[str, str], values: dict[str, Array]) -> str:
    if np.ptp(constant) <= NOTHING * np.abs(constant).max():
        return number_text(float(constant.mean()))
    kinds["b"], values["b"] = "channel", constant
    return "b"


def number_text(value: float) -> str:
    """A number that the language reads: a short decimal or fraction where it is near one.

    >>> number_text(0.3333333333333), number_text(-0.25), number_text(2.0000000000001)
    ('1/3', '-0.25', '2')
    """
    if (plain := near_fraction(value, NEAR * max(1.0, abs(value)))) is not None:
        return fraction_text(plain)
    return f"{value:.13g}" if "e" not in f"{value:.13g}" else f"{value:.16f}"


def _multiple_of_identity(matrix: Array) -> float | None:
    diagonal = _diagonal(matrix)
    if diagonal is None or np.ptp(diagonal) > NOTHING * np.abs(matrix).max():
        return None
    return float(diagonal.mean())


def _diagonal(matrix: Array) -> Array | None:
    if matrix.shape[0] != matrix.shape[1]:
        return None
    rest = matrix - np.diag(matrix.diagonal())
    return matrix.diagonal() if np.abs(rest).max(initial=0.0) <= NOTHING * np.abs(matrix).max() else None


# ---------------------------------------------------------------------- line recovery
# Searches for the line of the language that a layer computes.

#: The longest words that are tried.
LONGEST = 4
#: Budget of the fits; once it is used up, no further class of lines is tried.
RECOVERY_EFFORT = 60_000_000
#: The most unknown numbers of an iterative fit: its cost grows with their cube.
MOST_SEARCHED = 200
#: Number of readings, the usual ones, that are tried for lines that are not affine.
USUAL = 20
MONOMIALS = ("H**2", "H**3", "H*(A@H)", "(A@H)**2", "H**2*(A@H)", "H*(A@H)**2", "(A@H)**3", "A@(H**2)", "A@(H**3)")
_RESIDUAL = "c*H + a*{}(H@W + A@H@V + b) where b channel, V matrix, a real, c real"


@dataclass(frozen=True)
class RecoveredLine:
    """A line with the values of its coefficients, and the comparison that agrees."""

    text: str
    comparison: Comparison
    line: Line


def recovered_line(
    check: LayerCheck, readings: Sequence[Reading] | None = None, reach: int | None = None
) -> RecoveredLine | None:
    """The simplest line that agrees with all outputs; None if none of those tried does.

    Tried: words up to A^4 on H and H0 with matrices; the degree matrix D; monomials up to degree 3; functions of H and
    A@H; gates, as in sigmoid(H)*(A@H); an outermost function; H plus a function of H and A@H.
    """
    given = tuple(readings or declared_readings(transposed=None))
    bare = replace(check, known={}, rules={}, effort=Effort(RECOVERY_EFFORT))
    longest = LONGEST if reach is None else min(reach, LONGEST)
    for candidates in (_affine, _with_degrees, _outer, _monomials, _functions, _gated, _residual):
        for line, reading in candidates(bare, given if candidates is _affine else given[:USUAL], longest):
            if (recovered := _confirmed(bare, line, reading)) is not None:
                return recovered
        if bare.effort.is_spent:
            break
    return None


Candidates = Iterator[tuple[Line, Reading]]


def degree_matrix(adjacency: np.ndarray) -> np.ndarray:
    """D: the sums of the rows on the diagonal."""
    return np.diag(adjacency.sum(axis=1))


def _confirmed(check: LayerCheck, line: Line, reading: Reading) -> RecoveredLine | None:
    """The line, parsed again and compared with all outputs; None if it disagrees."""
    rules = {"D": degree_matrix} if "D@" in line.text else {}
    kinds = {name: kind for name, kind in line.kinds.items() if name != "W"}  # a matrix by default
    system = parse(line.text, kinds, operators=dict.fromkeys(rules, "operator"))
    held = replace(check, rules=rules, assumptions=system.assumptions)
    comparison = held.compared(Target(right_hand_side(system)), reading, line.values)
    return RecoveredLine(str(system), comparison, line) if held.agrees(comparison) else None


def _words(check: LayerCheck, longest: int) -> list[str]:
    powers = ["H", *("@".join(["A"] * k) + "@H" for k in range(1, longest + 1))]
    starts = ["H0", "A@H0"] if check.call.takes_start else []
    return powers + starts


def _fitted(
    check: LayerCheck, stack: Stack, reading: Reading, words: Sequence[str], entries: Sequence[str] = (), **how: Any
) -> FeatureFit:
    """The fit of some features; charges its cost to the budget."""
    check.effort.spend((len(words) * check.widths[0] + len(entries)) * max(stack.outputs.size, LEAST))
    return fit_features(stack, reading, words, entries, **how)


def _best(fits: list[tuple[FeatureFit, Reading]], precision: float) -> Candidates:
    """The lines of the accurate fits, those with the fewest words first."""
    good = [(fit, reading) for fit, reading in fits if fit.error <= precision]
    for fit, reading in sorted(good, key=lambda pair: pair[0].occurring)[:3]:
        yield written(fit), reading


def _affine(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    words = _words(check, longest)
    stack = check.part(len(words) * check.widths[0])
    yield from _best([(_fitted(check, stack, reading, words), reading) for reading in readings], check.precision)


def _with_degrees(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    """Words with D@H, and constants added before a sum over neighbours: H**0 is 1 everywhere."""
    words = [*_words(check, min(longest, 2)), "D@H", *(["D@H0"] if check.call.takes_start else [])]
    is_square = check.widths[0] == check.widths[1]
    stack = Stack(check.part(len(words) * check.widths[0] + 8).probes, {"D": degree_matrix})
    sums = {r: ["D@(H**0)" if r.normalisation == "none" else "A@(H**0)"] if is_square else [] for r in readings}
    yield from _best([(_fitted(check, stack, r, words, sums[r]), r) for r in readings], check.precision)


def _outer(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    words = _words(check, min(longest, 2))
    stack = check.part(2 * len(words) * check.widths[0])
    for name, inverse in inverses().items():
        if check.effort.is_spent:
            return
        with np.errstate(all="ignore"):
            if np.isfinite(inverse(stack.outputs)).mean() < 0.05 or not is_in_range(name, stack.outputs):
                continue
        fits = [(_fitted(check, stack, reading, words, inverse=inverse), reading) for reading in readings]
        for line, reading in _best(fits, 1e3 * check.precision):
            yield replace(line, text=f"{name}({line.text})"), reading


def _monomials(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    if check.widths[0] != check.widths[1]:
        return
    words = _words(check, min(longest, 3))
    entries = [*MONOMIALS, *(["H*H0", "H0**2"] if check.call.takes_start else [])]
    stack = check.part(2 * (len(words) * check.widths[0] + len(entries)))
    yield from _best([(_fitted(check, stack, r, words, entries), r) for r in readings], check.precision)


def _functions(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    if check.widths[0] != check.widths[1]:
        return
    families = [[f"{name}(H)", f"{name}(A@H)", f"A@{name}(H)"] for name in OF_ENTRIES]
    yield from _with_words(check, readings, longest, families)


def _gated(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    """A function of H or A@H times H or A@H, added to words."""
    if check.widths[0] != check.widths[1]:
        return
    states = ("H", "(A@H)")
    yield from _with_words(check, readings, longest, [[f"{g}({x})*{y}" for x in states for y in states] for g in GATES])


def _with_words(
    check: LayerCheck, readings: Sequence[Reading], longest: int, families: Sequence[Sequence[str]]
) -> Candidates:
    """Words plus the entries of one family after the other."""
    words = _words(check, min(longest, 2))
    stack = check.part(2 * (len(words) * check.widths[0] + max(map(len, families))))
    for entries in families:
        if check.effort.is_spent:
            return
        with np.errstate(all="ignore"):
            fits = [(_fitted(check, stack, reading, words, entries), reading) for reading in readings]
        yield from _best(fits, check.precision)


def _residual(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    """H plus a function of an affine map, if the Jacobian at zero is a sum of words under some reading."""
    width = check.widths[0]
    if check.widths[1] != width or check.call.is_single_precision or 2 * width**2 + width + 2 > MOST_SEARCHED:
        return
    stack = _linearised(check)
    fits = [(_fitted(check, stack, reading, ["H", "A@H"]), reading) for reading in readings]
    near = [reading for fit, reading in sorted(fits, key=lambda pair: pair[0].error) if fit.error <= 1e-6]
    for name in BESIDE_THE_STATE:
        system = parse(_RESIDUAL.format(name))
        held = replace(check, assumptions=system.assumptions)
        for reading in near[:2]:
            if check.effort.is_spent:
                return
            comparison = held.compared(Target(right_hand_side(system)), reading, {}, starts=4)
            if held.agrees(comparison):
                values = comparison.fit.values
                yield Line(_RESIDUAL.format(name), {}, values), reading


def _linearised(check: LayerCheck) -> Stack:
    """A stack of the Jacobian of the layer at zero applied to generic states."""
    probes = []
    rng = np.random.default_rng(41)
    for graph in check.answers.graphs:
        zero = np.zeros((graph.num_nodes, check.call.width))
        jacobian = slopes(check.call, graph, zero)
        for _ in range(4):
            state = rng.normal(size=zero.shape)
            probes.append(Probe(graph, state, state, (jacobian @ state.ravel()).reshape(graph.num_nodes, -1)))
    return Stack(probes)


# ---------------------------------------------------------------------- recovery
#: The largest degree of polynomials that is distinguished.
MOST_DEGREE = 3


@dataclass(frozen=True, repr=False)
class Recovery(Answer):
    """A recovered equation with its reading and coefficient values, or the reason why none was found."""

    equation: str | None
    reading: str
    reason: str = field()
    values: Mapping[str, np.ndarray]
    agreement: Agreement | None
    properties: tuple[LayerProperty, ...] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> str | None:
        """The recovered equation, a line of the language; None if none was found."""
        return self.equation

    @property
    def status(self) -> Status:
        """proved where the agreement is a proof, measured where it was observed on graphs, undecided without a line."""
        if self.equation is None:
            return Status.UNDECIDED
        return Status.PROVED if self.agreement is not None and self.agreement.is_proof else Status.MEASURED

    def __bool__(self) -> bool:
        return self.equation is not None

    def __str__(self) -> str:
        if self.equation is None:
            return f"no equation was found: {self.reason}"
        return f"{self.equation} ({self.reading}); {self.agreement}"

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, for json."""
        return {
            "equation": self.equation, "status": str(self.status), "reading": self.reading, "reason": self.reason,
            "values": {name: value.tolist() for name, value in self.values.items()},
            "agreement": None if self.agreement is None else str(self.agreement),
            "properties": [{"name": p.name, "holds": p.holds, "measured": p.measured} for p in self.properties],
            "notes": list(self.notes),
        }  # fmt: skip


def recover(
    layer: Any,
    *,
    channels: int | None = None,
    graph: Any = None,
    graphs: Any = "all",
    call: Adaptor | None = None,
    seed: int = 0,
) -> Recovery:
    """The equation that a layer computes, or why none was found.

    docs/guides/finding.md compares the functions that find equations.

    Args:
        layer: as in `conform`.
        channels: of the state, where the layer has no such attribute.
        graph: the graph that f(t, x) uses.
        graphs: "all", "undirected", "simple", or a list of graphs.
        call: how the layer is called, where the names of its parameters do not tell.
        seed: of the probes.

    Returns:
        The equation, the reading of A, the coefficient values, and how far the agreement reaches; or the reason.

    Raises:
        InvalidArgument: a layer that cannot be called.

    >>> import rdgraph as rd
    >>> def layer(x, edge_index):
    ...     source, target = edge_index
    ...     return x - 0.25*x.new_zeros(x.shape).index_add(0, target, x[source])
    >>> rd.recover(layer).equation, rd.recover(layer).reading
    ('H - 0.25*A@H', 'no normalisation without self-loops')
    """
    bound = None if graph is None else read_graph(graph)
    asked = LayerCall(layer, channels, bound, call)
    chosen = read_graphs([bound] if bound else graphs, weighted=asked.takes_weights, seed=seed)
    largest = max(chosen, key=lambda g: len(g.edges))
    if asked.is_random(largest):
        return Recovery(None, "", _random_reason(asked), {}, None, (), tuple(asked.notes))
    answers = ask(asked, chosen, None, seed)
    check = LayerCheck(asked, answers)
    degree = next((m for m in range(1, MOST_DEGREE + 1) if is_polynomial(check, m)), None)
    check = LayerCheck(asked, ask(asked, chosen, degree, seed))
    properties = layer_properties(asked, check.answers.graphs, check.precision)
    check, line = _searched_line(check, degree, properties)
    if line is None:
        return Recovery(None, "", _reason(properties, degree), {}, None, properties, tuple(asked.notes))
    worth = agreement_of(check, line.comparison)
    reading = check.words(line.comparison)
    values = {**line.line.values, **line.comparison.fit.values}
    return Recovery(line.text, reading, "", values, worth, properties, tuple(asked.notes))


def _searched_line(
    check: LayerCheck, degree: int | None, properties: Sequence[LayerProperty]
) -> tuple[LayerCheck, RecoveredLine | None]:
    """The line and the check that found it, which may allow for constants rounded to single precision."""
    held = {p.name: p.holds for p in properties}
    if held["permutation equivariance"] is False or held["local"] is False:
        return check, None
    reach = reach_of(properties)
    readings, longest = declared_readings(transposed=None), LONGEST if reach is None else reach
    line = recovered_line(check, readings, longest)
    if line is None and degree == 1:
        check = replace(check, is_mixed=True)
        line = recovered_line(check, readings, longest)
    return check, line


def _random_reason(call: LayerCall) -> str:
    remedy = "; call layer.eval()" if call.is_training else ""
    return f"the same input gives different outputs, for instance by active dropout{remedy}"


def _reason(properties: Sequence[LayerProperty], degree: int | None) -> str:
    """Why no line was found, from the properties that were measured."""
    held = {p.name: p for p in properties}
    if held["permutation equivariance"].holds is False:
        return "it depends on the numbering of the nodes"
    if held["local"].holds is False:
        return "a node reaches the whole graph, unlike any word of A"
    if degree == 1:
        return (
            f"it is affine in the state, but no combination of I, A, ..., A^{LONGEST} and D under any normalisation "
            "equals it: its weights depend on the graph in another way"
        )
    if degree is not None:
        return (
            f"it is a polynomial of degree {degree} in the state, but none of the monomials in H and A@H that are tried"
        )
    return (
        "it is no polynomial in the state, and none of the lines that are tried: words of A plus one function of H "
        f"or A@H ({', '.join(OF_ENTRIES)}), gated by {' or '.join(GATES)} of H or A@H, or inside one function. Not "
        "tried: gates with a matrix, as sigmoid(H@W)*H, functions inside functions, and weights that depend on the "
        "states at both ends of an edge, as in attention; conform checks such a line if it is given"
    )
