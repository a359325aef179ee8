"""`solve`: a vector field, an initial state and times become a `Solution`, by a chosen method."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.run.solvers.adaptive_steps import MAX_STEPS, Tolerances, integrate_adaptive
from rdgraph.run.solvers.adjoint import AdjointSettings, integrate_members
from rdgraph.run.solvers.automatic import Automatic, automatic
from rdgraph.run.solvers.compiled_steps import ADAPTIVE_EVALUATIONS, Compilation, CompiledRungeKutta
from rdgraph.run.solvers.fixed_steps import Integration, Timetable, choose, integrate_fixed, is_within, make_timetable
from rdgraph.run.solvers.noise import BrownianPath, EulerMaruyama, read_seeds
from rdgraph.run.solvers.propagator import exact_states
from rdgraph.run.solvers.solution import RunStatus, Solution, Stats
from rdgraph.run.solvers.splitting import ExponentialEulerMaruyama, Imex, make_field_strang, make_strang
from rdgraph.run.solvers.steppers import Splitting, Stepper, first_is_nan, fixed_stepper
from rdgraph.run.solvers.trackers import Measure, Recorder, Tracker
from rdgraph.vocabulary.methods import FOR_NOISE, WITH_ADJOINT, Method, Tableau, find_method

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField


# ---------------------------------------------------------------------- solver settings
# The settings of `solve`: the method they name, whether it uses them, and whether they are valid.


def find_record(method: Any) -> Method:
    """The record of a method; a given tableau is used even if its name is registered."""
    if isinstance(method, Tableau):
        return Method(method.name, method.note, method.order, method)
    return find_method(method)


def packed_start(field: Any, H0: Tensor | Mapping[str, Tensor]) -> Tensor:
    """The start as one tensor, from states by name or side by side."""
    if not hasattr(field, "check_state"):
        raise InvalidArgument(
            f"expected a vector field, got {type(field).__name__}; make one with lower(system, operator)"
        )
    packed: Tensor = field.blocks.pack(H0) if isinstance(H0, Mapping) else H0
    return packed


def check_state(field: Any, H0: Tensor) -> None:
    """Raise unless a state fits a field."""
    field.check_state(H0)
    if 0 in H0.shape:
        raise InvalidArgument(f"expected at least one member, node and channel, got a state of shape {tuple(H0.shape)}")


def check_noise(record: Method, field: Any, times: Any) -> None:
    """Raise unless the method is for stochastic systems if and only if the system is stochastic."""
    if field.system.is_noisy and not record.is_stochastic:
        raise NotApplicable(
            f"expected {' or '.join(FOR_NOISE)} for white noise, got {record.name} for {field.system.text}; name it, "
            "or leave out the terms with xi"
        )
    if record.is_stochastic and not field.system.is_noisy:
        raise NotApplicable(
            f"expected a system with noise for {record.name}, got {field.system.text}; add a term such as sigma*xi, or "
            "name another method"
        )
    if record.is_stochastic and isinstance(times, Tensor) and times.requires_grad:
        raise NotApplicable("expected times without a gradient for a path of white noise, which has none; detach them")


def check_settings(record: Method, given: Mapping[str, Any], interpolation: str, chosen: Automatic) -> None:
    """Raise unless the method uses every given setting."""
    if interpolation not in ("linear", "cubic"):
        raise InvalidArgument(f"expected interpolation 'linear' or 'cubic', got {interpolation!r}")
    used = {name for name, value in given.items() if value is not None}
    used |= {"interpolation"} if interpolation != "linear" else set()
    if strangers := sorted(used - set(record.options)):
        why = f", which auto chose ({chosen.reason})" if chosen.method else ""
        raise InvalidArgument(
            f"expected for {record.name}{why} only {', '.join(record.options)}, got {', '.join(strangers)}; leave it "
            "out, or name a method that uses it"
        )


def check_precision(record: Method, H0: Tensor) -> None:
    """Raise unless the precision of the state resolves the tolerance of an adaptive method."""
    if record.is_adaptive and torch.finfo(H0.dtype).bits < 32:
        raise InvalidArgument(
            f"expected a state of float32 or float64 for {record.name}, whose tolerance {H0.dtype} cannot hold, got "
            "that; convert field and state, or take a fixed step"
        )


def check_numbers(given: Mapping[str, Any], limit: Any) -> None:
    """Raise unless tolerances and limits are valid."""
    for name in ("rtol", "atol"):
        value = given[name]
        if value is not None and not 0 <= value < float("inf"):
            raise InvalidArgument(f"expected {name} >= 0 and finite, got {value!r}")
    if given["rtol"] == 0 and given["atol"] == 0:
        raise InvalidArgument("expected one of rtol, atol to be > 0, got 0 and 0")
    if given["max_steps"] is not None and not given["max_steps"] >= 1:
        raise InvalidArgument(f"expected max_steps >= 1, got {given['max_steps']!r}")
    parts = given["path_parts"]
    if parts is not None and not (isinstance(parts, Integral) and int(parts) >= 1):
        raise InvalidArgument(f"expected path_parts to be a whole number >= 1, got {parts!r}")
    if limit is not None and not limit > 0:
        raise InvalidArgument(f"expected limit > 0, got {limit!r}; limit=None stops at overflow only")


def check_adjoint(record: Method, step: Any, save_at: Any) -> None:
    """Raise unless the method has an adjoint."""
    if record.adjoint is None:
        raise InvalidArgument(
            f"expected a method with an adjoint, {', '.join(WITH_ADJOINT)}, got {record.name}; without adjoint=True "
            "the gradient comes from the steps themselves"
        )
    if record.is_fixed and step is None and save_at is not None:
        raise InvalidArgument("expected a step for the adjoint with save_at, got none; pass step=...")


def tolerances(H0: Tensor, given: Mapping[str, Any], bound: float) -> Tolerances:
    """Tolerances of dopri5; the defaults follow the precision."""
    default = (1e-7, 1e-9) if H0.dtype == torch.float64 else (1e-5, 1e-7)
    rtol, atol = (d if given[name] is None else given[name] for name, d in zip(("rtol", "atol"), default, strict=True))
    most = MAX_STEPS if given["max_steps"] is None else int(given["max_steps"])
    return Tolerances(float(rtol), float(atol), bound, most)


def check_compiled(record: Method, adjoint: bool) -> None:
    """Raise unless a method has steps that can run as compiled C."""
    if adjoint or record.tableau is None:
        got = "the adjoint" if adjoint else record.name
        raise InvalidArgument(
            f"expected a method with a tableau for compiled=True, got {got}; take one of rk4, euler, dopri5, or leave "
            "compiled= out"
        )


# ---------------------------------------------------------------------- solver
def solve(
    field: VectorField,
    H0: Tensor | Mapping[str, Tensor],
    t: Any,
    method: str | Tableau = "auto",
    *,
    step: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    save_at: Any = None,
    adjoint: bool = False,
    interpolation: str | None = None,
    limit: float | None = None,
    max_steps: int | None = None,
    seed: Any = None,
    path_parts: int | None = None,
    trackers: Sequence[Tracker] = (),
    measures: Mapping[str, Measure] | None = None,
    keep_states: bool = True,
    compiled: bool | None = None,
) -> Solution:
    """Integrate dH/dt = f(t, H) from H(t[0]) = H0 (*batch, n, d) and save H at `t`, or at `save_at` within `t`.

    By default ("auto") the method follows from the equation: "exact" for linear systems, "strang" for reactions
    with a closed flow, "rk4" with a step for every member where the slope of its field is bounded, else "dopri5"
    (`choose_method` has the rules); `solution.method` and `solution.reason` say which it was and why, and states
    between fixed steps are then interpolated by cubics. Methods with a fixed step take ceil(T/step) steps of which
    the last is shortened, without a step one per interval of `t`. "exact" is for linear systems. "dopri5" adapts
    the steps of every member to its own error.

    A member that turns non-finite, or has an entry beyond `limit`, stays at its last good state, marked in `status`
    and `failed_at`; it changes no bit of the others.

    Args:
        field: made by `lower`.
        H0: the start; its batch is that of the field, or any where the field has none and its members differ in their
            start only. For several fields a dictionary of starts by name (a missing velocity is zero), or one tensor
            with all of them side by side.
        t: times (K,) or, where members have different times, (K, *batch); they may repeat but not fall, and T = 0
            is the identity.
        method: "auto", the name of a method (`register_method` adds one) or any `Tableau`.
        step: of a fixed-step method, a number or one per member; with "auto" it selects a fixed-step method.
        rtol: of "exact", "strang" and "dopri5" (1e-7; in single precision 1e-5).
        atol: of "exact" and "dopri5" (1e-9; in single precision 1e-7).
        save_at: times within `t` to save at instead.
        adjoint: whether to integrate backwards for the gradient instead of recording the steps, member by member, for
            methods that torchdiffeq has; first derivatives alone, all others have second ones as well.
        interpolation: between fixed steps, "linear" or "cubic".
        limit: the largest modulus of an entry; None stops at overflow only.
        max_steps: attempts of "dopri5" before it gives up (10000); products of "exact" before it is refused (65536, or
            4096 with gradients, which keep a state for every product).
        seed: of the paths of white noise, a whole number for each member, or one from which the members count on (0);
            a member's path follows from its own seed alone.
        path_parts: increments that make up the noise of one step (1): a run with the same seed and steps that many
            times shorter follows the same path.
        trackers: called with every saved state.
        measures: functions of a state by name, collected in `solution.measures`.
        keep_states: False with measures lets the fixed-step methods hold no more than one saved state.
        compiled: whether methods with a tableau run as compiled C, which needs a C compiler, a CPU and no gradient; by
            default long runs do, where they can, and agree with the torch path to rounding.

    Returns:
        The states, what they cost, and one status per member.

    Raises:
        NotApplicable: the method does not apply to the system.
        InvalidArgument: a setting that the method does not take, or that makes no sense.
        UnknownName: there is no such method.

    >>> import torch, rdgraph as rd
    >>> ring = rd.Graph.from_edges([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]]).operator("row", dtype=torch.float64)
    >>> heat = rd.lower("-alpha*L@H", ring, {"alpha": 1.0})
    >>> H0 = torch.tensor([[3.0], [0.0], [0.0]], dtype=torch.float64)
    >>> rd.solve(heat, H0, [0.0, 1.0], "rk4", step=0.1).final.ravel()
    tensor([1.4463, 0.7769, 0.7769], dtype=torch.float64)
    >>> rd.solve(heat, H0, [0.0, 1.0]).reason
    'linear with symbol p(lam) = -alpha*lam: exact flow'
    """
    H0 = packed_start(field, H0)
    check_state(field, H0)
    field = field.spread(tuple(H0.shape[:-2]))
    chosen = _chosen(field, H0, t, step, adjoint) if method == "auto" else Automatic("", None, "")
    record = find_record(chosen.method or method)
    interpolation = interpolation or (
        "cubic" if chosen.step is not None and "interpolation" in record.options else "linear"
    )
    given = {
        "step": step, "rtol": rtol, "atol": atol, "max_steps": max_steps, "seed": seed, "path_parts": path_parts,
    }  # fmt: skip
    check_noise(record, field, t)
    check_settings(record, given, interpolation, chosen)
    check_numbers(given, limit)
    step = chosen.step if step is None else step
    if adjoint:
        check_adjoint(record, step, save_at)
    check_precision(record, H0)
    if compiled:
        check_compiled(record, adjoint)
    timetable = make_timetable(t, save_at, step, field.batch, H0.device)
    recorder = Recorder(timetable.saves, measures or {}, trackers, keep_states)
    largest = torch.finfo(H0.dtype).max
    bound = largest if limit is None else min(float(limit), largest)
    noise = _noise(field, H0, seed, path_parts, step) if record.is_stochastic else None
    settings = {**given, "step": step}
    task = _Task(field, H0, timetable, recorder, record, settings, interpolation, bound, compiled, noise)
    run = _tracked(task.adjoint if adjoint else task.run, trackers, len(timetable.saves))
    saved = run.recorder
    if chosen.outgrown is not None and step is chosen.step and saved.states.numel():
        _check_growth(saved.states, run.codes, chosen.outgrown(saved.states))
    return Solution(
        timetable.saves, saved.states, run.stats, run.codes, run.failed_at, saved.values, record.name, chosen.reason,
        field.system.fields,
    )  # fmt: skip


def _check_growth(states: Tensor, codes: Tensor, outgrown: Tensor) -> None:
    """Warn where a member that seems well has grown out of what its step rests on."""
    if bool(((codes.cpu() == RunStatus.OK.code) & outgrown).any()):
        size = float(states.detach().abs().max())
        text = (
            f"states reached {size:.3g}, for which the chosen step is too long; use method='dopri5' or a smaller step"
        )
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def _chosen(field: VectorField, H0: Tensor, t: Any, step: Any, adjoint: bool) -> Automatic:
    """The method that "auto" selects; the adjoint, half precision and a given step require a fixed-step method."""
    chosen = automatic(field, H0, t, stepped=adjoint or torch.finfo(H0.dtype).bits < 32)
    if step is not None and chosen.step is None:
        return automatic(field, H0, t, stepped=True)
    return chosen


@dataclass(frozen=True, eq=False)
class _Task:
    """A checked call of `solve`: `given` holds the settings of the method by name."""

    field: VectorField
    H0: Tensor
    timetable: Timetable
    recorder: Recorder
    record: Method
    given: Mapping[str, Any]
    interpolation: str
    bound: float
    compiled: bool | None
    noise: BrownianPath | None

    def adjoint(self) -> Integration:
        step = self.given["step"]
        step_length = None if step is None else torch.as_tensor(step, dtype=torch.float64)
        settings = AdjointSettings(
            self.record, tolerances(self.H0, self.given, self.bound), step_length, self.interpolation
        )
        return _one_by_one(self.field, self.H0, self.timetable, self.recorder, settings)

    def run(self) -> Integration:
        """All states at once by the adaptive method or a closed form, else step by step."""
        if self.record.is_adaptive:
            limits = tolerances(self.H0, self.given, self.bound)
            asked = Compilation(self.compiled, ADAPTIVE_EVALUATIONS, self.timetable.grid)
            return _adaptive(self.field, self.H0, self.timetable, self.recorder, limits, asked)
        if self.record.is_exact:
            asked_for = {"rtol": self.given["rtol"], "atol": self.given["atol"], "most": self.given["max_steps"]}
            return _exact(self.field, self.H0, self.timetable, self.recorder, self.bound, asked_for)
        cubic = self.interpolation == "cubic"
        return integrate_fixed(self._stepper, self.H0, self.timetable, self.recorder, bound=self.bound, cubic=cubic)

    def _stepper(self, start: Tensor) -> Stepper:
        """The steps of trajectories that begin at `start`."""
        record, rtol = self.record, self.given["rtol"]
        field = _bound(self.field, start)
        if record.tableau is not None:
            evaluations = self.timetable.steps * len(record.tableau.weights)
            compiled = Compilation(self.compiled, evaluations, self.timetable.grid).of(field, start)
            if compiled is not None:
                return CompiledRungeKutta(field, compiled, record.tableau)
        if record.is_fixed:
            return fixed_stepper(field.prepared(), record)
        if record.name == "imex":
            return Imex(field.prepared(), start, rtol)
        if self.noise is not None and record.name == "euler-maruyama":
            return EulerMaruyama(field.prepared(), self.noise)
        if self.noise is not None:
            return ExponentialEulerMaruyama(field.prepared(), self.noise, start, rtol)
        is_single = field.system.is_single
        return Splitting(field, make_strang(field, rtol=rtol) if is_single else make_field_strang(field, start, rtol))


def _tracked(integrate: Callable[[], Integration], trackers: Sequence[Tracker], saves: int) -> Integration:
    """Integrate between the trackers' start and stop; stop is called after an interruption, too."""
    try:
        for tracker in trackers:
            tracker.start(saves)
        return integrate()
    finally:
        for tracker in trackers:
            tracker.stop()


def _noise(field: VectorField, H0: Tensor, seed: Any, parts: int | None, step: Any) -> BrownianPath:
    """The paths of all members; their seeds count up from 0 where none is given."""
    seeds = read_seeds(0 if seed is None else seed, field.batch, H0.device)
    whole = None if step is None else torch.as_tensor(step, dtype=torch.float64, device=H0.device)
    return BrownianPath(seeds, field.system.fields, tuple(field.system.noise), whole, int(parts or 1))


def _bound(field: VectorField, start: Tensor) -> VectorField:
    return field.bind(start) if field.uses_initial else field


# ---------------------------------------------------------------------- methods that give all states at once
def _adaptive(
    field: VectorField, H0: Tensor, timetable: Timetable, recorder: Recorder, given: Tolerances, asked: Compilation
) -> Integration:
    """dopri5 for all members at once, from the start through every save to the end."""
    times = _columns(timetable.grid[:1], timetable.saves, timetable.grid[-1:])
    course = integrate_adaptive(field, H0, times, given, asked)
    for states in course.states[1:-1].reshape(-1, *H0.shape):
        recorder.save(states)
    return Integration(recorder, course.codes.reshape(field.batch), course.failed_at.reshape(field.batch), course.stats)


def _one_by_one(
    field: VectorField, H0: Tensor, timetable: Timetable, recorder: Recorder, settings: AdjointSettings
) -> Integration:
    """torchdiffeq with its adjoint, member by member, from the start through every save to the end."""
    times = _columns(timetable.grid[:1], timetable.saves, timetable.grid[-1:])
    members = integrate_members(field, H0, times, settings)
    for states in torch.stack([member.states[1:-1] for member in members], dim=1).reshape(-1, *H0.shape):
        recorder.save(states)
    codes = torch.tensor([member.status.code for member in members], device=H0.device)
    failed_at = torch.tensor([member.failed_at for member in members], dtype=times.dtype, device=H0.device)
    stats = sum((member.stats for member in members), Stats())
    return Integration(recorder, codes.reshape(field.batch), failed_at.reshape(field.batch), stats)


def _exact(
    field: VectorField, H0: Tensor, timetable: Timetable, recorder: Recorder, bound: float, limits: Mapping[str, Any]
) -> Integration:
    """The closed form at every save; a member that overflows keeps its last finite save."""
    times = _columns(timetable.grid[:1], timetable.saves)
    started = is_within(H0, bound)
    start = choose(started, H0, torch.zeros_like(H0))
    states, stats = exact_states(_bound(field, start), start, times, **limits)
    good = (is_within(states, bound) & started).cumprod(0).bool()
    alive = good[-1]
    codes = torch.where(alive, RunStatus.OK.code, RunStatus.BLOW_UP.code)
    failed_at = alive.new_full(alive.shape, torch.nan, dtype=times.dtype)
    if not bool(alive.all()):
        last = (good.sum(0) - 1).clamp(min=0)
        every = times.detach() if times.ndim > 1 else _spread(times.detach(), field.batch)
        failed_at = torch.where(alive, failed_at, every.gather(0, last[None])[0])
        with torch.no_grad():
            slope = _bound(field, H0)(None, H0)
        codes = torch.where(~alive & first_is_nan([H0.detach(), slope]), RunStatus.NOT_A_NUMBER.code, codes)
        if states.requires_grad:
            reached = torch.minimum(times if times.ndim > 1 else _spread(times, field.batch), _end(alive, failed_at))
            states, more = exact_states(_bound(field, start), start, reached, **limits)
            stats = stats + more
        index = last[None, ..., None, None].expand(1, *H0.shape)
        frozen = torch.where(started[..., None, None], states.detach().gather(0, index)[0], H0.detach())
        states = torch.where(good[..., None, None], states, frozen)
    for state in states[1:]:
        recorder.save(state)
    return Integration(recorder, codes, failed_at, stats)


def _end(alive: Tensor, failed_at: Tensor) -> Tensor:
    """The time limit of a member: none, or the time at which it failed."""
    return torch.where(alive, torch.inf, failed_at)


def _columns(*parts: Tensor) -> Tensor:
    """Times one after the other, expanded to the members if one part has a column for each."""
    batch = max((part.shape[1:] for part in parts), key=len)
    return torch.cat([part if part.ndim > 1 or not batch else _spread(part, tuple(batch)) for part in parts])


def _spread(times: Tensor, batch: tuple[int, ...]) -> Tensor:
    return times.reshape(-1, *(1,) * len(batch)).expand(-1, *batch)
