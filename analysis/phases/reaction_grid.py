"""The phase diagram of a nonlinear reaction: proved fates, compared with a batch of runs from random starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from analysis.figure_files import PALETTE, plain
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.graphs.operator import Operator
from rdgraph.language.answer_symbols import h
from rdgraph.reals.domain import Domain
from rdgraph.run.lowering.vector_field import lower
from rdgraph.run.solvers.solution import Solution
from rdgraph.run.solvers.solver import solve
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.growth_at_infinity import Trend, growth
from rdgraph.theory.patterns.states import line_states

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# ---------------------------------------------------------------------- scalar fates
# Phase diagrams of nonlinear reactions over two coefficients: what constant states the flow goes to, and simulations.
#
# f = r(H) + c_0 H + c_1 A@H + ... with c_k >= 0 for k >= 1 is cooperative where A has entries >= 0: with A@1 = 1 every
# entry stays between the solutions of h' = r(h) + sum_k c_k h from the least and from the largest entry of the start.
# The zeros of this rate are all found and its signs proved (`rdgraph.theory.patterns.states`), so that the prediction
# holds for every start in the interval:
#
#     settles at z          both go to the constant state z,
#     depends on the start  they go to different places,
#     grows without bound   both go to infinity, which takes for ever,
#     blows up              both reach infinity in finite time.

BLOWS_UP, GROWS, DEPENDS, AGREES, OPEN = (
    "blows up", "grows without bound", "depends on the start", "agrees on a mean", "not predicted",
)  # fmt: skip
#: More different scalar equations than this are not solved.
MAX_EQUATIONS = 1_000
#: Digits of numbers that are put into an equation.
DIGITS = 12


def settles_at(state: float) -> str:
    """The class of members whose entries all converge to one constant state."""
    return f"settles at {state:.4g}"


@dataclass(frozen=True)
class Fate:
    """What a scalar equation does from the ends of an interval: the class, its goal, and all constant states."""

    name: str
    goal: float = float("nan")
    states: tuple[float, ...] = ()


def reaction_fates(
    system: System | str,
    op: Operator,
    names: tuple[str, str],
    alphas: np.ndarray,
    betas: np.ndarray,
    values: Mapping[str, float],
    start: tuple[float, float],
) -> list[list[Fate]]:
    """The fates (ny, nx) of starts with all entries in an interval, proved by comparison with two scalar equations.

    Args:
        system: A `System`, a name of the catalogue, or a line of text; one field, without H0.
        op: An operator with A@1 = 1 and entries >= 0.
        names: The two coefficients.
        alphas: (nx,) values of the first one.
        betas: (ny,) values of the second one.
        values: Values of the other coefficients.
        start: The interval of the entries of the start.

    Returns:
        One row for every value of the second coefficient.

    Raises:
        NotApplicable: For a system of another form, or an operator that does not keep constants.

    Example:
        >>> import rdgraph as rd
        >>> op = rd.generators.ring(5).operator("row", dtype=torch.float64)
        >>> fates = reaction_fates("F", op, ("alpha", "beta"), np.ones(1), np.array([-1.0, 1.0]), {}, (0.1, 0.9))
        >>> [row[0].name for row in fates]
        ['settles at 0', 'settles at 1']
    """
    system = parse(system)
    system.require_single()
    structure = system.structure
    if structure.coupled != 0 or structure.has_source:
        raise NotApplicable(
            "expected a polynomial in A plus a reaction in every entry, without H0, for a phase diagram"
        )
    _check_operator(op)
    symbols = {name: system.algebra.symbols[name] for name in system.coefficients}
    rate = structure.scalar_field(h, sp.S.Zero)
    averages = [c for k, c in structure.generator.items() if k > 0]
    fixed = {symbols[n]: _number(v) for n, v in values.items()}
    fates = []
    for beta in betas:
        row = []
        for alpha in alphas:
            numbers = {**fixed, symbols[names[0]]: _number(alpha), symbols[names[1]]: _number(beta)}
            if any(sp.sympify(c.xreplace(numbers)) < 0 for c in averages):
                row.append(Fate(OPEN))
            else:
                number, shape = sp.factor_terms(sp.expand(rate.xreplace(numbers))).as_coeff_Mul()
                row.append(_fate(sp.sign(number) * shape, start))
        fates.append(row)
    return fates


def _number(value: Any) -> sp.Rational:
    return sp.Rational(f"{float(value):.{DIGITS}g}")


def _check_operator(op: Operator) -> None:
    ones = torch.ones(op.num_nodes, 1, dtype=op.dtype, device=op.device)
    keeps_constants = torch.allclose(op @ ones, ones, atol=1e-9)
    if not keeps_constants or bool((op.weights < 0).any()):
        raise NotApplicable(
            "expected an operator with A@1 = 1 and entries >= 0, got another one; take the row normalisation of a "
            "graph without isolated nodes, or a regular graph"
        )


@lru_cache(maxsize=MAX_EQUATIONS)
def _fate(rate: sp.Expr, start: tuple[float, float]) -> Fate:
    """Where the solutions of h' = rate from both ends of an interval go."""
    if rate == 0:
        return Fate(AGREES)
    line = line_states(rate, h)
    if not line.is_complete:
        raise Undecided(f"the constant states of h' = {rate} are not all known; {line.note}")
    states = tuple(float(state.point[h]) for state in line.states)
    ends = {_goal(rate, end, states) for end in start}
    if len(ends) > 1:
        return Fate(DEPENDS, states=states)
    goal = ends.pop()
    if np.isfinite(goal):
        return Fate(settles_at(goal), goal, states)
    way = 1 if goal > 0 else -1
    escapes = growth(rate, h, way, Domain()).trend is Trend.ESCAPING
    return Fate(BLOWS_UP if escapes else GROWS, goal, states)


def _goal(rate: sp.Expr, begin: float, states: tuple[float, ...]) -> float:
    """The next zero in the direction of the rate; infinite without one."""
    speed = float(sp.N(rate.xreplace({h: _number(begin)}), 30))
    if speed == 0 or any(abs(begin - z) < 1e-12 * (1 + abs(z)) for z in states):
        return begin
    ahead = [z for z in states if (z - begin) * speed > 0]
    return min(ahead, key=lambda z: abs(z - begin)) if ahead else float(np.copysign(np.inf, speed))


def check_start(start: tuple[float, float]) -> tuple[float, float]:
    """Return the interval of start values as two finite numbers, the smaller one first; raise if it is not one."""
    lower, upper = (float(end) for end in start)
    if not (np.isfinite([lower, upper]).all() and lower < upper):
        raise InvalidArgument(f"expected an interval of finite numbers for the start, got {start}; give (0.1, 0.9)")
    return lower, upper


# ---------------------------------------------------------------------- reaction grid
#: Entries that keep apart from one another, and from every constant state that all would share.
PATTERN = "keeps a pattern"
#: Members that are still moving at the end.
ON_ITS_WAY = "on its way"
#: Save times, how near to a constant state a member has arrived, and the size beyond which it grows.
SAVES, NEAR, LARGE = 13, 0.05, 1e3
#: Colours of the classes; constant states have those of `SETTLED` in their order.
COLOURS = {
    BLOWS_UP: PALETTE[1], GROWS: PALETTE[4], PATTERN: PALETTE[3], AGREES: "#F0E442", ON_ITS_WAY: "#999999",
    DEPENDS: "#DDDDDD", OPEN: "#FFFFFF",
}  # fmt: skip
ELSEWHERE = "settles at a state that depends on the coefficients"
SETTLED = (PALETTE[0], PALETTE[5], PALETTE[2], PALETTE[6])


@dataclass(frozen=True, eq=False)
class ReactionDiagram:
    """Classes by name over a grid of two coefficients.

    Attributes:
        system: The equation.
        operator: The operator of the graph.
        names: The two coefficients.
        alphas: (nx,) values of the first one.
        betas: (ny,) values of the second one.
        predicted: (ny, nx) names, proved for every start in the interval.
        simulated: (ny, nx) names, from one random start.
        start: The interval of the entries of the start.
        T: The end time.
        step: The step of RK4.

    Example:
        See `reaction_diagram`.
    """

    system: System
    operator: Operator
    names: tuple[str, str]
    alphas: np.ndarray
    betas: np.ndarray
    predicted: np.ndarray
    simulated: np.ndarray
    start: tuple[float, float]
    T: float
    step: float

    @property
    def is_predicted(self) -> np.ndarray:
        """(ny, nx) bool, members whose fate does not depend on the start."""
        return ~np.isin(self.predicted, (DEPENDS, OPEN))

    @property
    def agreement(self) -> float:
        """The share of predicted members that were simulated as predicted."""
        same = (self.predicted == self.simulated)[self.is_predicted]
        return float(same.mean()) if same.size else float("nan")

    def rows(self) -> list[dict[str, Any]]:
        """One row a member."""
        x, y = np.meshgrid(self.alphas, self.betas)
        columns = (x, y, self.predicted, self.simulated)
        return [
            {self.names[0]: a, self.names[1]: b, "predicted": p, "simulated": s}
            for a, b, p, s in zip(*(c.ravel().tolist() for c in columns), strict=True)
        ]


def reaction_diagram(
    system: System | str,
    op: Operator,
    alphas: np.ndarray,
    betas: np.ndarray,
    *,
    names: tuple[str, str] = ("alpha", "beta"),
    values: Mapping[str, float] | None = None,
    start: tuple[float, float] = (0.1, 0.9),
    T: float = 40.0,
    step: float = 0.25,
    seed: int = 0,
) -> ReactionDiagram:
    """The diagram of a reaction on a graph; all len(betas) x len(alphas) members run as one batch.

    Args:
        system: A `System`, a name of the catalogue, or a line of text; a polynomial in A plus a reaction.
        op: An operator with A@1 = 1 and entries >= 0, such as the row normalisation.
        alphas: (nx,) values of the first coefficient.
        betas: (ny,) values of the second one.
        names: The two coefficients.
        values: Values of the coefficients that are not swept.
        start: The interval of the entries of the start, which are uniform on it.
        T: The end time.
        step: The step of RK4.
        seed: The seed of the start.

    Returns:
        The `ReactionDiagram`.

    Raises:
        InvalidArgument: For invalid names or an invalid interval.
        NotApplicable: For a system of another form, or an operator that does not keep constants.
        Undecided: If not all constant states are known.

    Example:
        >>> import numpy as np, torch, analysis, rdgraph as rd
        >>> op = rd.generators.ring(5).operator("row", dtype=torch.float64)
        >>> d = analysis.reaction_diagram("AC", op, np.array([0.5]), np.array([-1.0, 1.0]))
        >>> d.predicted[:, 0].tolist(), d.simulated[:, 0].tolist()
        (['settles at 0', 'settles at 1'], ['settles at 0', 'settles at 1'])
    """
    system, fixed, ends = parse(system), dict(values or {}), check_start(start)
    missing = sorted(set(system.coefficients) - {*names, *fixed})
    if missing or not set(names) <= set(system.coefficients):
        raise InvalidArgument(
            f"expected two of the coefficients {', '.join(system.coefficients)} to sweep and numbers for the others, "
            f"got names={', '.join(names)} and {', '.join(sorted(fixed)) or 'none'}"
        )
    op = op.to(dtype=torch.float64)
    x, y = (np.asarray(values, dtype=float) for values in (alphas, betas))
    fates = reaction_fates(system, op, names, x, y, fixed, ends)
    solution = _runs(
        system, op, {names[0]: x[None, :], names[1]: y[:, None], **fixed}, (len(y), len(x)), ends, T, step, seed
    )
    predicted = np.array([[fate.name for fate in row] for row in fates])
    simulated = _judged(solution, fates)
    return ReactionDiagram(system, op, names, x, y, predicted, simulated, ends, float(T), float(step))


def _runs(
    system: System, op: Operator, values: Mapping[str, Any], batch: tuple[int, int], start: tuple[float, float],
    T: float, step: float, seed: int,
) -> Solution:  # fmt: skip
    """All members from one random start, their least and largest entries measured."""
    tensors = {
        name: torch.as_tensor(np.broadcast_to(v, batch).copy(), dtype=op.dtype, device=op.device)
        for name, v in values.items()
    }
    entries = np.random.default_rng(seed).uniform(*start, size=(op.num_nodes, 1))
    H0 = torch.as_tensor(entries, dtype=op.dtype, device=op.device)

    def measure(H: Tensor) -> Tensor:
        return torch.stack((H.amin((-2, -1)), H.amax((-2, -1))))

    return solve(
        lower(system, op, tensors, batch=batch), H0.expand(*batch, *H0.shape).contiguous(), [0.0, float(T)], "rk4",
        save_at=np.linspace(0.0, T, SAVES).tolist(), measures={"ends": measure}, keep_states=False, step=step,
    )  # fmt: skip


def _judged(solution: Solution, fates: list[list[Fate]]) -> np.ndarray:
    least, largest = (solution.measures["ends"][:, k].cpu().numpy() for k in (0, 1))
    failed = np.isfinite(np.nan_to_num(solution.failed_at.cpu().numpy(), nan=np.inf))
    names = [
        [_class(least[:, i, j], largest[:, i, j], bool(failed[i, j]), fate) for j, fate in enumerate(row)]
        for i, row in enumerate(fates)
    ]
    return np.array(names)


def _class(least: np.ndarray, largest: np.ndarray, failed: bool, fate: Fate) -> str:
    """The class of one run, from the ranges of its entries over time."""
    if failed:
        return BLOWS_UP
    if max(abs(least[-1]), abs(largest[-1])) > LARGE:
        return GROWS
    spread = largest - least
    for state in fate.states:
        distance = np.maximum(np.abs(least - state), np.abs(largest - state))
        nearing = state == fate.goal and distance[-1] < 0.999 * distance[-4]
        if distance[-1] < NEAR * (1 + abs(state)) or nearing:
            return settles_at(state)
    shrinks = spread[-1] < NEAR * spread[0] or spread[-1] < 0.99 * spread[-4]
    if shrinks and not fate.states:
        return AGREES
    before, after = (abs(largest[k] - largest[k - 3]) + abs(least[k] - least[k - 3]) for k in (-4, -1))
    if np.isinf(fate.goal) and after > 0.9 * before > 0:
        return GROWS  # steadily
    return ON_ITS_WAY if shrinks or after > 1e-3 * (1 + spread[-1]) else PATTERN


def reaction_figure(diagram: ReactionDiagram) -> Figure:
    """Figure of a reaction diagram: what is proved for every start in the interval, and what one start did.

    Args:
        diagram: The result of `reaction_diagram`.

    Returns:
        A matplotlib figure; `diagram.rows()` are its numbers.

    Example:
        >>> import numpy as np, torch, analysis, rdgraph as rd
        >>> op = rd.generators.ring(5).operator("row", dtype=torch.float64)
        >>> diagram = analysis.reaction_diagram("F", op, np.array([0.5, 1.0]), np.array([-1.0, 1.0]), T=20.0)
        >>> figure = analysis.reaction_figure(diagram)
        >>> [panel.get_title() for panel in figure.axes]
        ['proved for every start in the interval', 'simulated from one start']
    """
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    grids = [_joined(classes) for classes in (diagram.predicted, diagram.simulated)]
    names = sorted({name for grid in grids for name in grid.ravel().tolist()})
    settled = [name for name in names if name.startswith("settles")]
    colours = {**COLOURS, **{name: SETTLED[k % len(SETTLED)] for k, name in enumerate(settled)}}
    figure = Figure(figsize=(10.0, 5.2), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    shades = ListedColormap([colours[name] for name in names])
    norm = BoundaryNorm(np.arange(len(names) + 1) - 0.5, len(names))
    titles = ("proved for every start in the interval", "simulated from one start")
    for panel, classes, title in zip(panels, grids, titles, strict=True):
        codes = np.searchsorted(names, classes)
        panel.pcolormesh(
            diagram.alphas, diagram.betas, codes, cmap=shades, norm=norm, shading="nearest", rasterized=True
        )
        panel.set(title=title, xlabel=plain(diagram.names[0]))
    panels[0].set_ylabel(plain(diagram.names[1]))
    labels = {BLOWS_UP: f"{BLOWS_UP} (in finite time)"}
    handles = [Patch(facecolor=colours[name], edgecolor="black", label=labels.get(name, name)) for name in names]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)), frameon=False)
    op, (low, high) = diagram.operator, diagram.start
    figure.suptitle(
        f"{plain(diagram.system.name or str(diagram.system))} on {op.num_nodes} nodes ({op.normalisation}), entries of "
        f"the start in [{low:g}, {high:g}], T = {diagram.T:g}; of what is predicted {diagram.agreement:.2%} agree",
        fontsize=11,
    )
    return figure


def _joined(classes: np.ndarray) -> np.ndarray:
    """Constant states that move with the coefficients as one class."""
    settled = {name for name in classes.ravel().tolist() if name.startswith("settles")}
    if len(settled) <= len(SETTLED):
        return classes
    return np.where(np.isin(classes, sorted(settled - {settles_at(0.0)})), ELSEWHERE, classes)
