"""`solve`: a vector field, an initial state and times become a `Solution`, by the method of one's choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rdgraph.integrators.adaptive_steps import Tolerances, integrate_adaptive
from rdgraph.integrators.adjoint import AdjointSettings, integrate_members
from rdgraph.integrators.automatic import Automatic, automatic
from rdgraph.integrators.brownian_path import BrownianPath, read_seeds
from rdgraph.integrators.compiled_steps import ADAPTIVE_EVALUATIONS, Compilation, CompiledRungeKutta
from rdgraph.integrators.exponential_steps import ExponentialEulerMaruyama, Imex
from rdgraph.integrators.field_splitting import FieldStrang
from rdgraph.integrators.fixed_steps import Integration, choose, integrate_fixed, is_within
from rdgraph.integrators.noisy_steps import EulerMaruyama
from rdgraph.integrators.solution import Solution, Stats, Status
from rdgraph.integrators.solver_settings import (
    check_adjoint,
    check_compiled,
    check_noise,
    check_numbers,
    check_precision,
    check_settings,
    check_state,
    find_record,
    packed_start,
    tolerances,
)
from rdgraph.integrators.steppers import Splitting, Stepper, first_is_nan, fixed_stepper
from rdgraph.integrators.timetable import Timetable, make_timetable
from rdgraph.integrators.trackers import Measure, Recorder, Tracker
from rdgraph.methods.method import Method
from rdgraph.methods.runge_kutta import Tableau

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField


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

    By default ("auto") the method follows from the equation: "exact" for linear systems, "strang" for reactions with a
    closed flow, else "rk4", with a step for every member from a bound of the slope of its field (`choose_method` has
    the rules); `solution.method` and `solution.reason` say which it was and why, and states between the steps are then
    interpolated by cubics. Methods with a fixed step take ceil(T/step) steps of which the last is shortened, without a
    step one per interval of `t`. "exact" is for linear systems. "dopri5" adapts the steps of every member to its own
    error.

    A member that turns non-finite, or has an entry beyond `limit`, stays at its last good state, marked in `status`
    and `failed_at`; it changes no bit of the others.

    Args:
        field: made by `lower`.
        H0: the start; its batch is that of the field, or any where the field has none and its members differ in their
            start alone. Of several fields the starts by name, where a velocity may be left out and is zero, or one
            tensor with all of them side by side.
        t: times (K,) or, with times of its own for every member, (K, *batch); they may repeat but not fall, and T = 0
            is the identity.
        method: "auto", the name of a method (`register_method` adds one) or any `Tableau`.
        step: of a fixed-step method, a number or one per member; with "auto" it asks for steps.
        rtol: of "exact", "strang" and "dopri5" (1e-7; in single precision 1e-5).
        atol: of "exact" and "dopri5" (1e-9; in single precision 1e-7).
        save_at: times within `t` to save at instead.
        adjoint: whether to integrate backwards for the gradient instead of recording the steps, member by member, for
            methods that torchdiffeq has; first derivatives alone, all others have second ones as well.
        interpolation: between fixed steps, "linear" or "cubic".
        limit: the largest modulus of an entry; None stops at overflow only.
        max_steps: attempts of "dopri5" before it gives up (10000).
        seed: of the paths of white noise, a whole number for each member, or one from which the members count on (0);
            a member's path follows from its own seed alone.
        path_parts: increments that make up the noise of one step (1): a run with the same seed and steps that many
            times shorter follows the same path.
        trackers: hear of every saved state.
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
    >>> solve(heat, H0, [0.0, 1.0], "rk4", step=0.1).final.ravel()
    tensor([1.4463, 0.7769, 0.7769], dtype=torch.float64)
    >>> solve(heat, H0, [0.0, 1.0]).reason
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
    kept = run.recorder
    return Solution(
        timetable.saves, kept.states, run.stats, run.codes, run.failed_at, kept.values, record.name, chosen.reason,
        field.system.fields,
    )  # fmt: skip


def _chosen(field: VectorField, H0: Tensor, t: Any, step: Any, adjoint: bool) -> Automatic:
    """The method of "auto"; the adjoint, and a step that is given, ask for steps."""
    chosen = automatic(field, H0, t, stepped=adjoint)
    if step is not None and chosen.step is None:
        return automatic(field, H0, t, stepped=True)
    return chosen


@dataclass(frozen=True, eq=False)
class _Task:
    """What `solve` was asked for, once all of it is checked: `given` holds the settings of the method by name."""

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
        own = None if step is None else torch.as_tensor(step, dtype=torch.float64)
        settings = AdjointSettings(self.record, tolerances(self.H0, self.given, self.bound), own, self.interpolation)
        return _one_by_one(self.field, self.H0, self.timetable, self.recorder, settings)

    def run(self) -> Integration:
        """All states at once by the adaptive method or a closed form, else step by step."""
        if self.record.is_adaptive:
            limits = tolerances(self.H0, self.given, self.bound)
            asked = Compilation(self.compiled, ADAPTIVE_EVALUATIONS, self.timetable.grid)
            return _adaptive(self.field, self.H0, self.timetable, self.recorder, limits, asked)
        if self.record.is_exact:
            rtol, atol = self.given["rtol"], self.given["atol"]
            return _exact(self.field, self.H0, self.timetable, self.recorder, self.bound, rtol, atol)
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
        if not field.system.is_single:
            return Splitting(field, FieldStrang(field, start, rtol))
        from rdgraph.integrators.strang_splitting import make_strang

        return Splitting(field, make_strang(field, rtol=rtol))


def _tracked(integrate: Callable[[], Integration], trackers: Sequence[Tracker], saves: int) -> Integration:
    """Integrate between the trackers' start and stop, which an interruption hears too."""
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
    field: VectorField, H0: Tensor, timetable: Timetable, recorder: Recorder, bound: float, rtol: Any, atol: Any
) -> Integration:
    """The closed form at every save; a member that overflows keeps its last finite save."""
    from rdgraph.integrators.exact_flow import exact_states

    times = _columns(timetable.grid[:1], timetable.saves)
    started = is_within(H0, bound)
    start = choose(started, H0, torch.zeros_like(H0))
    states, stats = exact_states(_bound(field, start), start, times, rtol=rtol, atol=atol)
    good = (is_within(states, bound) & started).cumprod(0).bool()
    alive = good[-1]
    codes = torch.where(alive, Status.OK.code, Status.BLOW_UP.code)
    failed_at = alive.new_full(alive.shape, torch.nan, dtype=times.dtype)
    if not bool(alive.all()):
        last = (good.sum(0) - 1).clamp(min=0)
        every = times.detach() if times.ndim > 1 else _spread(times.detach(), field.batch)
        failed_at = torch.where(alive, failed_at, every.gather(0, last[None])[0])
        with torch.no_grad():
            slope = _bound(field, H0)(None, H0)
        codes = torch.where(~alive & first_is_nan([H0.detach(), slope]), Status.NOT_A_NUMBER.code, codes)
        if states.requires_grad:
            reached = torch.minimum(times if times.ndim > 1 else _spread(times, field.batch), _end(alive, failed_at))
            states, more = exact_states(_bound(field, start), start, reached, rtol=rtol, atol=atol)
            stats = stats + more
        place = last[None, ..., None, None].expand(1, *H0.shape)
        frozen = torch.where(started[..., None, None], states.detach().gather(0, place)[0], H0.detach())
        states = torch.where(good[..., None, None], states, frozen)
    for state in states[1:]:
        recorder.save(state)
    return Integration(recorder, codes, failed_at, stats)


def _end(alive: Tensor, failed_at: Tensor) -> Tensor:
    """Up to when a member may be integrated: as long as it likes, or until it failed."""
    return torch.where(alive, torch.inf, failed_at)


def _columns(*parts: Tensor) -> Tensor:
    """Times one after the other, spread over the members where one part has a column for each."""
    batch = max((part.shape[1:] for part in parts), key=len)
    return torch.cat([part if part.ndim > 1 or not batch else _spread(part, tuple(batch)) for part in parts])


def _spread(times: Tensor, batch: tuple[int, ...]) -> Tensor:
    return times.reshape(-1, *(1,) * len(batch)).expand(-1, *batch)
