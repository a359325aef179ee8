"""`fit`: the coefficients of a system from observed states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import sympy as sp
import torch
from torch import Tensor

from rdgraph.answers import Status
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.graphs.graph import Graph
from rdgraph.graphs.normalisation import dense_adjacency
from rdgraph.graphs.operator import Operator
from rdgraph.infer.fit.damped_steps import Array, Effort
from rdgraph.infer.fit.fitted_values import Fit, entries_of
from rdgraph.infer.fit.least_squares import PROFILE_STEPS, Border, Problems, Residuals, Unknowns, border_of, profile
from rdgraph.infer.fit.observations import Observations, check_seed, numbers_of, read_observations
from rdgraph.language.printer import to_text
from rdgraph.language.tree import Kind, Minus, Plus, names_in
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.status_line import StatusLine
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.identifiability.examination import Identifiability
from rdgraph.theory.identifiability.question import identify
from rdgraph.theory.method_choice import choose_method
from rdgraph.wording import scaled_term, signed_sum

# ---------------------------------------------------------------------- far values
# Positive coefficients that went to zero or infinity, drawn back to where they begin to have an effect.
#
# Where the data show nothing of a term, its coefficient goes to zero, and its logarithm as far as the steps lead. An
# interval cannot be found from there, though the data may bound the coefficient well from one side.

#: By how much the sum of squares may rise on the way back, as a share of the variance of the noise.
_NEGLIGIBLE = 1e-4
#: The logarithm of what counts as far from 1.
_FAR = 7.0
#: Points on the way back that are tried at once, and how often the interval between two of them is refined.
_POINTS, _TURNS = 16, 3


def drawn_back(problems: Problems, row: Tensor, squares: Tensor, variance: float) -> tuple[Tensor, Tensor]:
    """The row (1, unknowns) of a fit and its squares (1,), coefficients beyond all scales drawn back towards 1.

    Each moves back on the logarithmic scale, the others fixed, as long as the sum of squares rises by at most a
    negligible part of the variance.
    """
    unknowns = problems.residuals.unknowns
    most = squares + _NEGLIGIBLE * variance
    for c, span in zip(unknowns.coefficients, unknowns.slices().values(), strict=True):
        for position in range(span.start, span.stop) if c.factor else ():
            if float(row[0, position].abs()) > _FAR:
                row = _nearest(problems, row, position, most)
    return row, problems.squares(row, torch.zeros(1, dtype=torch.long))


def _nearest(problems: Problems, row: Tensor, position: int, most: Tensor) -> Tensor:
    """The row with one entry as near to zero as the sum of squares allows."""
    reached, beyond = float(row[0, position]), 0.0
    for _ in range(_TURNS):
        tried = torch.linspace(reached, beyond, _POINTS, dtype=row.dtype)[1:]
        rows = row.repeat(len(tried), 1)
        rows[:, position] = tried
        is_good = problems.squares(rows, torch.zeros(len(rows), dtype=torch.long)) <= most
        count = int(is_good.long().cumprod(0).sum())
        if count:
            reached = float(tried[count - 1])
        if count == len(tried):
            break
        beyond = float(tried[count])
    nearest = row.clone()
    nearest[0, position] = reached
    return nearest


# ---------------------------------------------------------------------- flat directions
# Directions of the coefficients along which a run does not change: no observation can determine them.
#
# A run solves H' = f(H; c). Where (df/dc)(H(t)) v = 0 at all of its states, c + s*v has the same run for all s, if f is
# affine in c. Unlike the derivatives of late states, this does not
# saturate where a coefficient is large.

#: Number of states of a run that are examined.
_MOMENTS = 33
#: A term that moves the state by less than this share of the largest state in the whole time has no effect; neither has
#: a direction below this share of the strongest one.
NOTHING = 1e-9
#: Components of a direction below this are not shown; its largest is 1.
_SHOWN = 1e-6


@dataclass(frozen=True)
class FlatDirections:
    """Entries (count,) of the coefficients without effect, and directions (D, count) of the others without one."""

    hidden: Tensor
    mixed: Tensor

    @classmethod
    def along(cls, residuals: Residuals, rows: Tensor) -> FlatDirections:
        """The coefficients and directions without effect on the runs of any of the rows."""
        count = residuals.unknowns.count
        times = residuals.observed.times
        moments = torch.linspace(float(times[0]), float(times[-1]), _MOMENTS, dtype=times.dtype)
        duration, typical = float(times[-1] - times[0]), residuals.unknowns.typical(rows)
        hidden, factors = torch.ones(count, dtype=torch.bool), []
        for row in rows.split(1):
            slopes, size = residuals.rate_slopes(row, moments)
            effects = slopes / residuals.unknowns.inner_slopes(row) * typical * (duration / size)
            effects = torch.where(torch.isfinite(effects).all(1, keepdim=True), effects, 0.0)
            hidden &= effects.abs().amax(0) <= NOTHING
            factors.append(torch.linalg.qr(effects, mode="r").R)
        stacked = torch.cat(factors)[:, ~hidden]
        mixed = torch.zeros(0, count, dtype=rows.dtype)
        if stacked.shape[1]:
            lengths = torch.linalg.vector_norm(stacked, dim=0)
            _, sizes, directions = torch.linalg.svd(stacked / lengths, full_matrices=True)
            flat = directions[int((sizes > NOTHING * sizes.max()).sum()) :]
            mixed = mixed.new_zeros(len(flat), count)
            mixed[:, ~hidden] = flat / lengths * typical[~hidden]
        return cls(hidden, mixed)

    def names(self, unknowns: Unknowns) -> tuple[str, ...]:
        """The coefficients that have an entry in one of the directions."""
        moved = self.hidden | (self._scaled().abs() > _SHOWN).any(0)
        return tuple(name for name, span in unknowns.slices().items() if bool(moved[span].any()))

    def _scaled(self) -> Tensor:
        return self.mixed / self.mixed.abs().amax(1, keepdim=True)

    def reasons(self, system: System, unknowns: Unknowns) -> dict[str, str]:
        """For every coefficient that is not identifiable, why."""
        reasons = {}
        for name, span in unknowns.slices().items():
            hidden = self.hidden[span]
            if bool(hidden.any()):
                where = "" if bool(hidden.all()) else f" in {int(hidden.sum())} of {len(hidden)} entries"
                terms = " and ".join(terms_with(system, name))
                reasons[name] = f"no state of a run from this start changes with {terms}{where}"
        together = [name for name in self.names(unknowns) if name not in reasons]
        combinations = self.combinations(unknowns)
        for name in together:
            others = ", ".join(other for other in together if other != name) or "its other entries"
            only = f"; only {', '.join(combinations)} can be determined" if combinations else ""
            reasons[name] = f"{others} can compensate for it{only}"
        return reasons

    def combinations(self, unknowns: Unknowns) -> tuple[str, ...]:
        """Sums of scalar coefficients that the runs determine, though not the coefficients themselves.

        >>> from rdgraph.infer.fit.least_squares import Unknown
        >>> pair = Unknowns((Unknown("a", (), 1.0), Unknown("b", (), 1.0)))
        >>> none = torch.zeros(2, dtype=torch.bool)
        >>> FlatDirections(none, torch.tensor([[2.0, -1.0]], dtype=torch.float64)).combinations(pair)
        ('a + 2*b',)
        """
        moved = torch.nonzero((self._scaled().abs() > _SHOWN).any(0)).ravel()
        if not len(moved) or any(unknowns.at(int(position))[0].shape for position in moved):
            return ()
        # The combinations that are constant along the directions, as rows of a reduced echelon form.
        _, _, basis = torch.linalg.svd(self.mixed[:, moved], full_matrices=True)
        invariant = sp.Matrix(basis[len(self.mixed) :].tolist())
        letters = [sp.Symbol(unknowns.at(int(position))[0].name) for position in moved]
        rows, _ = invariant.rref(iszerofunc=lambda x: abs(x) < _SHOWN)
        return tuple(_sum(rows.row(i), letters) for i in range(rows.rows))


def _sum(factors: sp.Matrix, letters: list[sp.Symbol]) -> str:
    """A sum in the language, with three digits."""
    parts = [
        (f"{float(f'{float(c):.3g}'):g}", str(x)) for c, x in zip(factors, letters, strict=True) if abs(c) > _SHOWN
    ]
    return signed_sum([scaled_term(c, x) for c, x in parts])


def terms_with(system: System, name: str) -> list[str]:
    """The terms of the equations in which a coefficient occurs.

    >>> import rdgraph as rd
    >>> terms_with(rd.parse("-alpha*L@H - beta*H"), "alpha")
    ['-alpha*L@H']
    """
    return [
        to_text(term)
        for tree in system.flow.values()
        for term in _terms(tree)
        if any(letter.name == name for letter in names_in(term))
    ]


def _terms(tree: sp.Basic) -> Iterator[sp.Basic]:
    if isinstance(tree, Plus | Minus):
        for part in tree.args:
            yield from _terms(part)
    else:
        yield tree


# ---------------------------------------------------------------------- fitting
#: Rows that are drawn for each start; the best of them become the starts.
_CANDIDATES = 8
#: Steps of all starts, how many of the best continue, and their steps.
_FIRST_STEPS, _LEADING, _STEPS = 6, 3, 60
#: Directions of the unknowns below this share of the strongest one change no observed value.
_RANK_TOLERANCE = 1e-9
#: The least component of an unknown that takes part in such a direction of length one.
_MOVED = 1e-5
#: Relative tolerance of the runs.
_RTOL = 1e-6
#: Relative error of methods that have no tolerance.
_ROUNDING = 1e-12
#: A run that needs more steps, or leaves the range of the observations by this factor, is no fit.
_MAX_TRIES, _FAR_STATE = 1000, 100.0
#: Products of an exact flow; power series, for operators that are not symmetric, need more of them.
_MAX_PRODUCTS, _MAX_POWERS = 1 << 10, 1 << 12
_MAX_UNKNOWNS = 4000
#: Evaluations of the field that all runs of a fit may take together; 30,000 took 19 s of CPU (two fields, five nodes).
EFFORT = 400_000
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
    values: Mapping[str, Any] | None = None,
    start: Mapping[str, Any] | None = None,
    starts: int = 8,
    sigma: float | None = None,
    level: float | None = 0.95,
    seed: int = 0,
    method: str | None = None,
    step: float | None = None,
    effort: float = EFFORT,
    progress: Callable[[str], object] | bool | None = None,
) -> Fit:
    """Coefficients from observed states, by least squares through the flow, with intervals by profile likelihood.

    Many starts are fitted as one batch. Before anything is fitted, `identify` checks which coefficients are
    identifiable; if one is not, NotApplicable names the combinations that are. Coefficients without effect on runs from
    the given start are not fitted: their values are NaN, and `reasons` of the answer says why.

    docs/guides/finding.md compares the functions that find equations.

    Args:
        system: the system whose coefficients are fitted; positive ones are fitted by their logarithm.
        states: observed states (K, n) or (K, n, d), NaN where nothing was observed; for several fields a dictionary by
            name; a missing field was not observed.
        times: of the observations, rising, not necessarily equally spaced; the first is the time of the start.
        graph: a Graph, a networkx graph, a scipy sparse matrix or a dense adjacency, or an Operator.
        normalisation: of the graph.
        initial: the start (n,) or (n, d) where it is known; without it, it is estimated with the coefficients, which
            needs every node to be observed at some time.
        values: coefficients that are known, by name; also masks and matrices.
        start: values to start from; the others are drawn at random.
        starts: number of starts.
        sigma: the standard deviation of the noise where it is known; without it, it is estimated.
        level: of the intervals; None leaves them out.
        seed: of the starts.
        method: of `solve`; by default the exact flow where the equation is linear, else dopri5.
        step: of a method that takes one.
        effort: the most evaluations of the field by all runs; those with derivatives or many entries count as
            several. Once they are used up, the best fit so far is returned; its notes say what is missing.
        progress: True shows progress on standard error, False does not, None does on a terminal only; a function is
            called with the text.

    Returns:
        Values, intervals, which coefficients the data determine, and the fitted states.

    Raises:
        NotApplicable: a coefficient is not identifiable, the state rests at the start for all coefficients, or the
            system is stochastic.
        InvalidArgument: states, times or settings that make no sense, or no start from which a run ends.

    >>> import torch, rdgraph as rd
    >>> ring = rd.generators.grid(3, 4)
    >>> field = rd.lower("F", ring.operator("row", dtype=torch.float64), {"alpha": 0.5, "beta": 2.0})
    >>> start = torch.linspace(0.01, 0.3, 12, dtype=torch.float64)[:, None]
    >>> seen = rd.solve(field, start, torch.linspace(0, 2, 9, dtype=torch.float64)).states
    >>> noisy = seen + 0.01 * torch.randn(seen.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    >>> found = rd.fit("F", noisy, torch.linspace(0, 2, 9), graph=ring, normalisation="row", initial=start, starts=2)
    >>> abs(found.values["beta"] - 2) < 0.05, found.intervals["alpha"][0] < 0.5 < found.intervals["alpha"][1]
    (True, True)
    >>> rd.fit("-a*L@H + b*L@H", noisy, torch.linspace(0, 2, 9), graph=ring)
    Traceback (most recent call last):
    ...
    rdgraph.errors.NotApplicable: the flow determines a - b, and not a, b; fix some, as in values={'a': 1.0}
    """
    _check_system(system)
    operator = operator_of(graph, normalisation)
    observed = read_observations(system, states, times, operator.num_nodes)
    known = {name: _known(name, value, system) for name, value in (values or {}).items()}
    names = [name for name in valued_letters(system) if name not in known]
    if not names:
        raise InvalidArgument("nothing to fit: all coefficients are fixed; leave one out of values")
    _check_settings(starts, level, sigma, seed, effort)
    for name in start or {}:
        if name not in names:
            raise UnknownName("coefficient to start from", name, names)
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
    settings = {
        **_settings(system, operator, method, step),
        "limit": _FAR_STATE * (1 + float(observed.values.abs().max())),
    }
    residuals = Residuals(system, operator, observed, unknowns, known, origin, settings, Effort(float(effort)))
    with StatusLine("fit", shown=None if callable(progress) else progress) as status:
        say = progress if callable(progress) else status.say
        say("the first rates")
        _refuse_rest(residuals, seed)
        say("identifiability")
        revealed = _revealed(system, known, names, operator, None if isinstance(graph, Operator) else graph)
        say("choosing starts")
        problems = Problems(residuals, observed.values[None])
        rows = _starting_rows(problems, start or {}, starts, seed)
        return _fitted(_Search(problems, rows, say), revealed, level, sigma)


def _check_system(system: System) -> None:
    if system.is_noisy:
        raise NotApplicable("cannot fit a stochastic system; fit its drift")
    if system.learned:
        raise NotApplicable(
            f"expected an equation whose functions are written out, got {', '.join(system.learned)}, which is learned; "
            "replace it by a formula, as in phi(H) where phi = H*(1 - H)"
        )


def _check_all_seen(observed: Observations) -> None:
    """Raise unless every node is observed at some time: an unknown start is estimated."""
    unseen = int((~observed.seen.any(0)).any(-1).sum())
    if unseen:
        raise InvalidArgument(
            f"expected every node to be observed where the start is unknown, got {unseen} that never are; "
            "pass the start as initial="
        )


def operator_of(graph: Any, normalisation: str) -> Operator:
    """The operator of a graph, a matrix or an operator, in double precision."""
    if isinstance(graph, Operator):
        return graph.to(dtype=torch.float64)
    built = graph if isinstance(graph, Graph) else Graph.from_dense(dense_adjacency(graph))
    return built.operator(normalisation, dtype=torch.float64)


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
            {"method": "exact", "max_steps": _MAX_PRODUCTS if operator.is_symmetric else _MAX_POWERS}
            if linear
            else {"method": "dopri5", "rtol": _RTOL, "atol": 1e-3 * _RTOL, "max_steps": _MAX_TRIES}
        )
    return {"method": method or "rk4", **({} if step is None else {"step": step})}


def _check_settings(starts: Any, level: Any, sigma: Any, seed: Any, effort: Any) -> None:
    check_seed(seed)
    if not isinstance(effort, Real) or not float(effort) > 0:
        raise InvalidArgument(f"effort is a positive number of evaluations, not {effort!r}")
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
    """What the flow determines given the known coefficients; raises NotApplicable where that is too little."""
    if _has_two_operators(system, operator):
        note = "identifiability is not examined for systems with both A and L = D - A"
        return Identifiability((), (), (), rank=None, status=Status.UNDECIDED, reason=note)
    numbers = {name: sp.nsimplify(float(value), rational=True) for name, value in known.items() if not value.ndim}
    asked = system.replace(**numbers) if numbers else system
    if any(value.ndim for value in known.values()):
        # `identify` treats known masks and matrices as unknown: its answer is no reason to refuse.
        return replace(identify(asked), status=Status.UNDECIDED, reason="some coefficients are given as arrays")
    identifiability = identify(asked)
    _refuse_lost(identifiability, names, "")
    if graph is None or not system.is_single or identifiability.status == Status.UNDECIDED:
        return identifiability
    identifiability = identify(asked, graph, operator.normalisation)
    _refuse_lost(identifiability, names, f" ({identifiability.reason})")
    return identifiability


def _refuse_lost(identifiability: Identifiability, names: list[str], note: str) -> None:
    lost = [name for name in names if name not in (*identifiability.single, *identifiability.local)]
    if identifiability.status == Status.UNDECIDED or not lost:
        return
    revealed = ", ".join(map(str, identifiability.combinations)) or "none of them"
    raise NotApplicable(
        f"the flow determines {revealed}, and not {', '.join(lost)}{note}; fix some, as in values={{{lost[0]!r}: 1.0}}"
    )


def _refuse_rest(residuals: Residuals, seed: int) -> None:
    """Raise NotApplicable at a known start where the rates vanish for all coefficients: every run stays there."""
    if residuals.initial is None or not residuals.system.is_autonomous:
        return
    rows = residuals.unknowns.starts({}, _CANDIDATES, 1.5, torch.Generator().manual_seed(seed))
    duration = float(residuals.observed.times[-1] - residuals.observed.times[0])
    size = float(residuals.initial.abs().max()) or 1.0
    if float(residuals.first_rates(rows).abs().max()) * duration <= NOTHING * size:
        raise NotApplicable(
            "no coefficient is identifiable: every rate vanishes at the start, for all coefficients that were "
            "tried, so the state never moves; observe a run from another start"
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


@dataclass(frozen=True)
class _Best:
    """The best fit (1, unknowns), its sum of squares, whether it converged, and the sums of all leading starts."""

    problems: Problems
    row: Tensor
    squares: Tensor
    settled: bool
    followed: Tensor
    flat: FlatDirections


@dataclass(frozen=True)
class _Search:
    """The starts of a fit, and `say`, which is called with its progress."""

    problems: Problems
    rows: Tensor
    say: Callable[[str], object]

    def _reporting(self, problems: Problems, text: str, most: int) -> Problems:
        def after(turn: int, squares: Array) -> None:
            error = (squares.min() / problems.residuals.observed.count) ** 0.5
            self.say(f"{text}, step {turn + 1} of at most {most}, error {error:.3g}")

        return replace(problems, after=after)

    def best(self) -> _Best:
        """The minimum; coefficients without effect are held fixed, and freed where they have one at the best fit."""
        residuals, rows = self.problems.residuals, self.rows
        hidden = FlatDirections.along(residuals, rows).hidden
        while True:
            held = torch.zeros(residuals.unknowns.total, dtype=torch.bool)
            held[: len(hidden)] = hidden
            best = self._minimum(replace(self.problems, held=held), torch.where(held, 0.0, rows))
            if self.problems.is_spent() or not bool((hidden & ~best.flat.hidden).any()):
                return best
            hidden = hidden & best.flat.hidden

    def _minimum(self, problems: Problems, rows: Tensor) -> _Best:
        observed = problems.residuals.observed
        which = torch.zeros(len(rows), dtype=torch.long)
        first = self._reporting(problems, f"{len(rows)} starts", _FIRST_STEPS).minimise(
            rows, which, max_steps=_FIRST_STEPS
        )
        leading = torch.argsort(first.squares)[:_LEADING]
        end = self._reporting(problems, f"the best {len(leading)}", _STEPS).minimise(
            first.rows[leading], which[: len(leading)], max_steps=_STEPS
        )
        best = int(end.squares.argmin())
        row, squares = end.rows[best : best + 1], end.squares[best : best + 1]
        noise = max(float(squares) / observed.count, _resolution(problems.residuals) ** 2)
        row, squares = drawn_back(problems, row, squares, noise)
        flat = FlatDirections.along(problems.residuals, row)
        return _Best(problems, row, squares, bool(end.settled[best]), end.squares, flat)

    def profiled(self, best: _Best, freedom: int, level: float, sigma: float | None) -> tuple[_Best, Tensor]:
        """The intervals, and a better fit if one was found on the way."""
        resolution = _resolution(best.problems.residuals)
        for turn in range(_MAX_REFITS):
            border: Border = border_of(best.squares, freedom, level, sigma, resolution)
            problems = self._reporting(best.problems, "intervals", PROFILE_STEPS)
            profiles = profile(problems, best.row, best.squares, border, best.flat.hidden)
            if self.problems.is_spent() or bool(torch.isnan(profiles.better).any()) or turn == _MAX_REFITS - 1:
                break
            again = best.problems.minimise(profiles.better, torch.zeros(1, dtype=torch.long))
            best = replace(best, row=again.rows, squares=again.squares, settled=bool(again.settled))
        return best, profiles.ends[0]


def _fitted(search: _Search, revealed: Identifiability, level: float | None, sigma: float | None) -> Fit:
    residuals = search.problems.residuals
    unknowns, observed = residuals.unknowns, residuals.observed
    best = search.best()
    rank, _ = _rank(best.problems, best.row)
    freedom = observed.count - rank
    if freedom < 1:
        raise InvalidArgument(
            f"expected more observations than unknowns, got {observed.count} for {rank}; observe more, or fix some"
        )
    best, ends = (best, None) if level is None else search.profiled(best, freedom, float(level), sigma)
    near = best.squares[0] * (1 + 1 / freedom) + observed.count * _resolution(residuals) ** 2
    states, _ = residuals.states(best.row)
    rank, undetermined = _rank(best.problems, best.row)
    lost = {*undetermined, *best.flat.names(unknowns)}
    values = torch.where(best.flat.hidden, torch.nan, best.row[0, : unknowns.count])
    return Fit(
        system=residuals.system,
        values=entries_of(unknowns, values),
        intervals=None if ends is None else entries_of(unknowns, ends),
        level=level,
        sigma=float((best.squares[0] / freedom).sqrt()) if sigma is None else sigma,
        observations=observed.count,
        states=states[0].detach().numpy(),
        times=observed.times.numpy(),
        observed=torch.where(observed.seen, observed.values, torch.nan).numpy(),
        identifiability=revealed,
        agreeing=int((best.followed <= near).sum()),
        starts=len(best.followed),
        settled=best.settled,
        directions_lost=unknowns.total - rank,
        undetermined=tuple(name for name in unknowns.slices() if name in lost),
        reasons=best.flat.reasons(residuals.system, unknowns),
        effort=residuals.effort.spent,
        stopped=residuals.effort.is_spent,
    )


def _resolution(residuals: Residuals) -> float:
    """The expected error of a run: noise below it cannot be distinguished from it."""
    rtol, atol = residuals.settings.get("rtol", _ROUNDING), residuals.settings.get("atol", 1e-3 * _ROUNDING)
    return float(rtol * residuals.observed.values.abs().max() + atol)


def _rank(problems: Problems, row: Tensor) -> tuple[int, tuple[str, ...]]:
    """The rank of the sensitivities, and the coefficients with a part in the directions without effect."""
    slopes = problems.derivatives(row, torch.zeros(1, dtype=torch.long))[0]
    small = torch.linalg.qr(slopes, mode="r").R  # at most as many rows as unknowns, with the same directions
    _, sizes, directions = torch.linalg.svd(small, full_matrices=True)
    rank = int((sizes > _RANK_TOLERANCE * sizes.max()).sum())
    moved = (directions[rank:].abs() > _MOVED).any(0)
    places = problems.residuals.unknowns.slices()
    return rank, tuple(name for name, span in places.items() if bool(moved[span].any()))
