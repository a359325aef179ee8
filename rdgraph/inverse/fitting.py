"""`fit`: the coefficients of a system from states that were observed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import sympy as sp
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.graphs.graph import Graph
from rdgraph.graphs.normalisation import dense_adjacency
from rdgraph.graphs.operator import Operator
from rdgraph.identifiability.answer import UNDECIDED, Identifiability
from rdgraph.identifiability.question import identify
from rdgraph.inverse.far_values import drawn_back
from rdgraph.inverse.fitted_values import Fit, entries_of
from rdgraph.inverse.least_squares import Problems
from rdgraph.inverse.observations import Observations, check_seed, numbers_of, read_observations
from rdgraph.inverse.profiles import Border, border_of, profile
from rdgraph.inverse.residuals import Residuals
from rdgraph.inverse.unknowns import Unknowns
from rdgraph.lowering.coefficients import valued_letters
from rdgraph.syntax.tree import Kind
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.method_choice import choose_method

#: Rows that are looked at before the best of them are taken as starts, for each start.
_CANDIDATES = 8
#: All starts are followed for so many steps, and then the best of them to their end.
_FIRST_STEPS, _LEADING = 6, 3
#: Directions of the unknowns that change no observed value by more than this share of the strongest one.
_RANK_TOLERANCE = 1e-9
#: The least part that an unknown has in such a direction of length one.
_MOVED = 1e-5
#: Of the runs, relative.
_RTOL = 1e-6
#: Of methods that have no tolerance.
_ROUNDING = 1e-12
#: A run that needs more steps, or goes that many times farther than the observations, is no fit.
_MAX_TRIES, _FAR = 1000, 100.0
_MAX_UNKNOWNS = 4000
_MAX_REFITS = 3
#: Which numbers have a declared sign; NaN has none, and real ones are finite.
_HAS_SIGN: dict[str, Callable[[Tensor], Tensor]] = {
    "positive": lambda x: x > 0,
    "nonnegative": lambda x: x >= 0,
    "negative": lambda x: x < 0,
    "nonpositive": lambda x: x <= 0,
    "real": torch.isfinite,
}


@reads_system
def fit(
    system: System,
    states: Any,
    times: Any,
    *,
    graph: Any,
    normalisation: str = "symmetric",
    initial: Any = None,
    fixed: Mapping[str, Any] | None = None,
    start: Mapping[str, Any] | None = None,
    starts: int = 8,
    sigma: float | None = None,
    level: float | None = 0.95,
    seed: int = 0,
    method: str | None = None,
    step: float | None = None,
) -> Fit:
    """Coefficients from observed states, by least squares through the flow, with intervals by profile likelihood.

    Many starts are fitted as one batch. Before anything is fitted, `identify` is asked which coefficients the flow
    reveals at all; one that it does not is refused, with the combination that it does reveal.

    Args:
        system: whose coefficients are looked for; positive ones are looked for on the scale of their logarithm.
        states: observed states (K, n) or (K, n, d), NaN where nothing was observed; of several fields a dictionary by
            name, where a field that is left out was not observed.
        times: of the observations, rising, as irregular as they are; the first is the time of the start.
        graph: a Graph, a networkx graph, a scipy sparse matrix or a dense adjacency, or an Operator.
        normalisation: of the graph.
        initial: the start (n,) or (n, d) where it is known; without it, it is estimated with the coefficients, which
            needs every node to be observed at some time.
        fixed: coefficients that are known, by name; also masks and matrices.
        start: values to start from; the others are drawn.
        starts: how many starts.
        sigma: the standard deviation of the noise where it is known; without it, it is estimated.
        level: of the intervals; None leaves them out.
        seed: of the starts.
        method: of `solve`; by default the exact flow where the equation is linear, else dopri5.
        step: of a method that takes one.

    Returns:
        Values, intervals, which coefficients the data determine, and the fitted states.

    Raises:
        NotApplicable: the flow does not reveal a coefficient, or the system has noise of its own.
        InvalidArgument: states, times or settings that make no sense, or no start from which a run ends.

    >>> import torch, rdgraph as rd
    >>> ring = rd.generators.grid(3, 4)
    >>> field = rd.lower("F", ring.operator("row", dtype=torch.float64), {"alpha": 0.5, "beta": 2.0})
    >>> start = torch.linspace(0.01, 0.3, 12, dtype=torch.float64)[:, None]
    >>> seen = rd.solve(field, start, torch.linspace(0, 2, 9, dtype=torch.float64)).states
    >>> noisy = seen + 0.01 * torch.randn(seen.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    >>> found = fit("F", noisy, torch.linspace(0, 2, 9), graph=ring, normalisation="row", initial=start, starts=2)
    >>> abs(found.values["beta"] - 2) < 0.05, found.intervals["alpha"][0] < 0.5 < found.intervals["alpha"][1]
    (True, True)
    >>> fit("-a*L@H + b*L@H", noisy, torch.linspace(0, 2, 9), graph=ring)
    Traceback (most recent call last):
    ...
    rdgraph.errors.NotApplicable: the flow reveals a - b, and not a, b; fix some, as in fixed={'a': 1.0}
    """
    _check_system(system)
    operator = operator_of(graph, normalisation)
    observed = read_observations(system, states, times, operator.num_nodes)
    known = {name: _known(name, value, system) for name, value in (fixed or {}).items()}
    names = [name for name in valued_letters(system) if name not in known]
    if not names:
        raise InvalidArgument("expected a coefficient to look for, got all of them fixed; leave one out of fixed")
    _check_settings(starts, level, sigma, seed)
    for name in start or {}:
        if name not in names:
            raise UnknownName("coefficient to start from", name, names)
    revealed = _revealed(system, known, names, operator, None if isinstance(graph, Operator) else graph)
    nodes, channels = observed.shape
    origin = None if initial is None else _initial(initial, nodes, channels)
    if origin is None:
        _check_all_seen(observed)
    width = channels // len(system.fields) if not system.is_single else channels
    unknowns = Unknowns.of(system, names, nodes, width, nodes * channels if origin is None else 0)
    if unknowns.total > _MAX_UNKNOWNS:
        raise InvalidArgument(
            f"expected at most {_MAX_UNKNOWNS} unknowns, got {unknowns.total}; pass the start as initial="
        )
    settings = {**_settings(system, operator, method, step), "limit": _FAR * (1 + float(observed.values.abs().max()))}
    residuals = Residuals(system, operator, observed, unknowns, known, origin, settings)
    problems = Problems(residuals, observed.values[None])
    rows = _starting_rows(problems, start or {}, starts, seed)
    return _fitted(problems, rows, revealed, level, sigma)


def _check_system(system: System) -> None:
    if system.is_noisy:
        raise NotApplicable("expected a system without noise of its own, got one; fit its drift")
    if system.learned:
        raise NotApplicable(
            f"expected an equation whose functions are written out, got {', '.join(system.learned)}, which is learned; "
            "put a formula in its place, as in phi(H) where phi = H*(1 - H)"
        )


def _check_all_seen(observed: Observations) -> None:
    """A start that is not known is estimated, for which every node is needed at some time."""
    unseen = int((~observed.seen.any(0)).any(-1).sum())
    if unseen:
        raise InvalidArgument(
            f"expected every node to be observed where the start is unknown, got {unseen} that never are; "
            "pass the start as initial="
        )


def operator_of(graph: Any, normalisation: str) -> Operator:
    """The operator of whatever describes a graph, in double precision."""
    if isinstance(graph, Operator):
        return graph.to(dtype=torch.float64)
    made = graph if isinstance(graph, Graph) else Graph.from_dense(dense_adjacency(graph))
    return made.operator(normalisation, dtype=torch.float64)


def _known(name: str, value: Any, system: System) -> Tensor:
    if name not in valued_letters(system):
        raise UnknownName(f"coefficient of {system.text}", name, valued_letters(system))
    known, sign = numbers_of(value, name), system.assumptions.sign(name)
    if name in {mask.name for mask in system.algebra.masks} and bool(((known != 0) & (known != 1)).any()):
        raise InvalidArgument(
            f"expected zeros and ones for the mask {name}, got other values; declare a coefficient of each node, as in "
            '"m*H where m node"'
        )
    has_sign = system.coefficients.get(name, Kind.MATRIX) is not Kind.MATRIX  # masks and matrices have none
    if has_sign and not bool(_HAS_SIGN[sign](known).all()):
        raise InvalidArgument(
            f"expected a {sign} value for {name}, got {known.tolist()}; say 'where {name} real' in the equation if it "
            "may have either sign"
        )
    return known


def _has_two_operators(system: System, operator: Operator) -> bool:
    """Whether A and L = D - A both occur, which do not commute."""
    return operator.degree is not None and {"A", "L"} <= set(system.letters)


def _settings(system: System, operator: Operator, method: str | None, step: float | None) -> dict[str, Any]:
    if method is None and step is None:
        linear = choose_method(system).method == "exact" and not _has_two_operators(system, operator)
        return (
            {"method": "exact"}
            if linear
            else {"method": "dopri5", "rtol": _RTOL, "atol": 1e-3 * _RTOL, "max_steps": _MAX_TRIES}
        )
    return {"method": method or "rk4", **({} if step is None else {"step": step})}


def _check_settings(starts: Any, level: Any, sigma: Any, seed: Any) -> None:
    check_seed(seed)
    if not isinstance(starts, Integral) or starts < 1:
        raise InvalidArgument(f"expected at least one start, got {starts!r}; give a whole number")
    if level is not None and not (isinstance(level, Real) and 0 < float(level) < 1):
        raise InvalidArgument(f"expected a level between 0 and 1, such as 0.95, got {level!r}")
    if sigma is not None and not (isinstance(sigma, Real) and 0 < float(sigma) < float("inf")):
        raise InvalidArgument(f"expected a finite, positive sigma, got {sigma}; leave it out and it is estimated")


def _initial(given: Any, nodes: int, channels: int) -> Tensor:
    value = numbers_of(given, "initial")
    value = value[:, None] if value.ndim == 1 else value
    if value.shape != (nodes, channels) or not bool(torch.isfinite(value).all()):
        raise InvalidArgument(
            f"expected a finite start of shape ({nodes}, {channels}), got {tuple(value.shape)}; "
            "leave it out and it is estimated"
        )
    return value


def _revealed(
    system: System, known: Mapping[str, Tensor], names: list[str], operator: Operator, graph: Any
) -> Identifiability:
    """What the flow reveals once the known coefficients are put in; raises where it is too little."""
    if _has_two_operators(system, operator):
        note = "what A and L = D - A reveal together is not examined"
        return Identifiability((), (), (), rank=None, status=UNDECIDED, note=note)
    numbers = {name: sp.nsimplify(float(value), rational=True) for name, value in known.items() if not value.ndim}
    asked = system.replace(**numbers) if numbers else system
    if any(value.ndim for value in known.values()):
        # Known masks and matrices are unknown to the question: what it says is no reason to refuse.
        return replace(identify(asked), status=UNDECIDED, note="some coefficients are given as arrays")
    found = identify(asked)
    _refuse_lost(found, names, "")
    if graph is None or not system.is_single or found.status == UNDECIDED:
        return found
    found = identify(asked, graph, operator.normalisation)
    _refuse_lost(found, names, f" ({found.note})")
    return found


def _refuse_lost(found: Identifiability, names: list[str], note: str) -> None:
    lost = [name for name in names if name not in (*found.single, *found.local)]
    if found.status == UNDECIDED or not lost:
        return
    told = ", ".join(map(str, found.combinations)) or "none of them"
    raise NotApplicable(
        f"the flow reveals {told}, and not {', '.join(lost)}{note}; fix some, as in fixed={{{lost[0]!r}: 1.0}}"
    )


def _starting_rows(problems: Problems, start: Mapping[str, Any], starts: int, seed: int) -> Tensor:
    """The best of many drawn rows, so that few runs begin where a run ends early."""
    unknowns, observed = problems.residuals.unknowns, problems.residuals.observed
    generator = torch.Generator().manual_seed(seed)
    count = starts * _CANDIDATES
    rows = unknowns.starts(start, count, 1.5, generator)
    if unknowns.extra:
        rows = torch.cat([rows, _first_states(observed).expand(count, -1)], -1)
    squares = problems.squares(rows, torch.zeros(count, dtype=torch.long))
    order = torch.argsort(squares)[:starts]
    good = order[torch.isfinite(squares[order])]
    if not len(good):
        raise InvalidArgument(
            f"expected a start from which the run reaches the last time, got none among {count}; "
            "pass start={...} near the truth, or shorter times"
        )
    return rows[good]


def _first_states(observed: Observations) -> Tensor:
    """A first guess of the start: the earliest observation of every entry."""
    first = observed.seen.to(torch.int64).argmax(0)
    return observed.values.gather(0, first[None]).reshape(1, -1)


def _fitted(
    problems: Problems, rows: Tensor, revealed: Identifiability, level: float | None, sigma: float | None
) -> Fit:
    residuals = problems.residuals
    unknowns, observed = residuals.unknowns, residuals.observed
    which = torch.zeros(len(rows), dtype=torch.long)
    first = problems.minimise(rows, which, max_steps=_FIRST_STEPS)
    leading = torch.argsort(first.squares)[:_LEADING]
    end = problems.minimise(first.rows[leading], which[: len(leading)])
    best = int(end.squares.argmin())
    row, squares = end.rows[best : best + 1], end.squares[best : best + 1]
    resolution = _resolution(residuals)
    row, squares = drawn_back(problems, row, squares, max(float(squares) / observed.count, resolution**2))
    rank, _ = _rank(problems, row)
    freedom = observed.count - rank
    if freedom < 1:
        raise InvalidArgument(
            f"expected more observations than unknowns, got {observed.count} for {rank}; observe more, or fix some"
        )
    settled, ends = end.settled[best : best + 1], None
    for turn in range(_MAX_REFITS if level is not None else 0):
        border: Border = border_of(squares, freedom, float(level or 0), sigma, resolution)
        found = profile(problems, row, squares, border)
        ends = found.ends[0]
        if bool(torch.isnan(found.better).any()) or turn == _MAX_REFITS - 1:
            break
        again = problems.minimise(found.better, torch.zeros(1, dtype=torch.long))
        row, squares, settled = again.rows, again.squares, again.settled
    near = squares[0] * (1 + 1 / freedom) + observed.count * resolution**2
    agreeing = int((end.squares <= near).sum())
    states, _ = residuals.states(row)
    rank, undetermined = _rank(problems, row)
    noise = float((squares[0] / freedom).sqrt()) if sigma is None else sigma
    return Fit(
        system=residuals.system,
        values=entries_of(unknowns, row[0, : unknowns.count]),
        intervals=None if ends is None else entries_of(unknowns, ends),
        level=level,
        sigma=noise,
        observations=observed.count,
        states=states[0].detach().numpy(),
        times=observed.times.numpy(),
        observed=torch.where(observed.seen, observed.values, torch.nan).numpy(),
        identifiability=revealed,
        agreeing=agreeing,
        starts=len(leading),
        settled=bool(settled),
        directions_lost=unknowns.total - rank,
        undetermined=undetermined,
    )


def _resolution(residuals: Residuals) -> float:
    """The error of a run that is to be expected: noise below it is not told from it."""
    rtol, atol = residuals.settings.get("rtol", _ROUNDING), residuals.settings.get("atol", 1e-3 * _ROUNDING)
    return float(rtol * residuals.observed.values.abs().max() + atol)


def _rank(problems: Problems, row: Tensor) -> tuple[int, tuple[str, ...]]:
    """How many directions of the unknowns the observations see, and the coefficients that others move along."""
    slopes = problems.derivatives(row, torch.zeros(1, dtype=torch.long))[0]
    small = torch.linalg.qr(slopes, mode="r").R  # as many rows as unknowns at most, with the same directions
    _, sizes, directions = torch.linalg.svd(small, full_matrices=True)
    rank = int((sizes > _RANK_TOLERANCE * sizes.max()).sum())
    moved = (directions[rank:].abs() > _MOVED).any(0)
    places = problems.residuals.unknowns.slices()
    return rank, tuple(name for name, place in places.items() if bool(moved[place].any()))
