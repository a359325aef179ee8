"""`solve`: a vector field, an initial state and times become a `Solution`, by the method of one's choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.integrators.adaptive_steps import MAX_STEPS, Tolerances, integrate_adaptive
from rdgraph.integrators.adjoint import AdjointSettings, integrate_members
from rdgraph.integrators.automatic import Automatic, automatic
from rdgraph.integrators.fixed_steps import Integration, choose, integrate_fixed, is_within
from rdgraph.integrators.solution import Solution, Stats, Status
from rdgraph.integrators.steppers import Splitting, Stepper, first_is_nan, fixed_stepper
from rdgraph.integrators.timetable import Timetable, make_timetable
from rdgraph.integrators.trackers import Measure, Recorder, Tracker
from rdgraph.methods.method import Method
from rdgraph.methods.registry import WITH_ADJOINT, find_method
from rdgraph.methods.runge_kutta import Tableau

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField


def solve(
    field: VectorField,
    H0: Tensor,
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
    trackers: Sequence[Tracker] = (),
    measures: Mapping[str, Measure] | None = None,
    keep_states: bool = True,
) -> Solution:
    """Integrate dH/dt = f(H) from H(t[0]) = H0 (*batch, n, d) and save H at `t`, or at `save_at` within `t`.

    The batch is that of the field, or any where the field has none and its members differ in their start alone.

    `t` is (K,) or, with times of its own for every member, (K, *batch); it may repeat but not fall, and T = 0 is the
    identity. By default ("auto") the method follows from the equation: "exact" for linear systems, "strang" for
    reactions with a closed flow, else "rk4", with a step for every member from a bound of the slope of its field
    (`choose_method` has the rules); `solution.method` and `solution.reason` say which it was and why, and states
    between the steps are then interpolated by cubics.

    Methods with a fixed `step`, a number or one per member: "euler", "midpoint", "heun", "rk4" (the 3/8 rule),
    "rk4-classical" or any `Tableau`, and "strang"; they take ceil(T/step) steps of which the last is shortened, without
    a step one per interval of `t`, and between steps `interpolation` is "linear" or "cubic". "exact" is for linear
    systems, to `rtol` and `atol`. "dopri5" adapts the steps of every member to its own error (rtol 1e-7, atol 1e-9; in
    single precision 1e-5 and 1e-7), and gives up after `max_steps` attempts (10000). `adjoint=True` integrates
    backwards for the gradient instead of recording the steps, member by member, for euler, midpoint, heun, rk4 and
    dopri5; it has first derivatives alone, all others have second ones as well.

    A member that turns non-finite, or has an entry beyond `limit`, stays at its last good state, marked in `status`
    and `failed_at`; it changes no bit of the others. `trackers` hear of every saved state. `measures` maps names to
    functions of a state, collected in `solution.measures`; with `keep_states=False` the fixed-step methods then hold no
    more than one saved state.

    >>> import torch, rdgraph as rd
    >>> ring = rd.Graph.from_edges([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]]).operator("row", dtype=torch.float64)
    >>> heat = rd.lower("-alpha*L@H", ring, {"alpha": 1.0})
    >>> H0 = torch.tensor([[3.0], [0.0], [0.0]], dtype=torch.float64)
    >>> solve(heat, H0, [0.0, 1.0], "rk4", step=0.1).final.ravel()
    tensor([1.4463, 0.7769, 0.7769], dtype=torch.float64)
    >>> solve(heat, H0, [0.0, 1.0]).reason
    'linear with symbol p(lam) = -alpha*lam: exact flow'
    """
    _check_state(field, H0)
    chosen = Automatic("", None, "")
    if method == "auto":
        wide = field.spread(tuple(H0.shape[:-2]))
        chosen = automatic(wide, H0, t, stepped=adjoint)
        if step is not None and chosen.step is None:  # a step that is given asks for steps
            chosen = automatic(wide, H0, t, stepped=True)
        method, interpolation = chosen.method, interpolation or ("linear" if chosen.step is None else "cubic")
    interpolation = interpolation or "linear"
    record = _record(method)
    given = {"step": step, "rtol": rtol, "atol": atol, "max_steps": max_steps}
    _check_settings(record, given, interpolation, chosen)
    _check_numbers(given, limit)
    step = chosen.step if step is None else step
    if adjoint:
        _check_adjoint(record, step, save_at)
    if record.is_adaptive and torch.finfo(H0.dtype).bits < 32:
        raise InvalidArgument(
            f"expected a state of float32 or float64 for {record.name}, whose tolerance {H0.dtype} cannot hold, got "
            "that; convert field and state, or take a fixed step"
        )
    field = field.spread(tuple(H0.shape[:-2]))
    timetable = make_timetable(t, save_at, step, field.batch, H0.device)
    largest = torch.finfo(H0.dtype).max
    bound = largest if limit is None else min(float(limit), largest)
    recorder = Recorder(timetable.saves, measures or {}, trackers, keep_states)
    if adjoint:
        own = None if step is None else torch.as_tensor(step, dtype=torch.float64)
        settings = AdjointSettings(record, _tolerances(H0, given, bound), own, interpolation)
        integrate = partial(_one_by_one, field, H0, timetable, recorder, settings)
    elif record.is_adaptive:
        integrate = partial(_adaptive, field, H0, timetable, recorder, _tolerances(H0, given, bound))
    elif record.is_exact:
        integrate = partial(_exact, field, H0, timetable, recorder, bound, rtol, atol)
    else:
        make_stepper = partial(_make_stepper, field, record, rtol)
        cubic = interpolation == "cubic"
        integrate = partial(integrate_fixed, make_stepper, H0, timetable, recorder, bound=bound, cubic=cubic)
    run = _tracked(integrate, trackers, len(timetable.saves))
    kept = run.recorder
    return Solution(
        timetable.saves, kept.states, run.stats, run.codes, run.failed_at, kept.values, record.name, chosen.reason
    )


def _tracked(integrate: Callable[[], Integration], trackers: Sequence[Tracker], saves: int) -> Integration:
    """Integrate between the trackers' start and stop, which an interruption hears too."""
    try:
        for tracker in trackers:
            tracker.start(saves)
        return integrate()
    finally:
        for tracker in trackers:
            tracker.stop()


def _make_stepper(field: VectorField, record: Method, rtol: float | None, start: Tensor) -> Stepper:
    field = _bound(field, start)
    if record.is_fixed:
        return fixed_stepper(field.prepared(), record)
    from rdgraph.integrators.strang_splitting import make_strang

    return Splitting(field, make_strang(field, rtol=rtol))


def _bound(field: VectorField, start: Tensor) -> VectorField:
    return field.bind(start) if field.uses_initial else field


# ---------------------------------------------------------------------- methods that give all states at once
def _adaptive(
    field: VectorField, H0: Tensor, timetable: Timetable, recorder: Recorder, given: Tolerances
) -> Integration:
    """dopri5 for all members at once, from the start through every save to the end."""
    times = _columns(timetable.grid[:1], timetable.saves, timetable.grid[-1:])
    course = integrate_adaptive(field, H0, times, given)
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


# ---------------------------------------------------------------------- checks
def _record(method: Any) -> Method:
    """The record of a method; one's own tableau is stepped by what it says, whatever its name."""
    if isinstance(method, Tableau):
        return Method(method.name, method.note, method.order, method)
    return find_method(method)


def _check_state(field: Any, H0: Tensor) -> None:
    if not hasattr(field, "check_state"):
        raise InvalidArgument(
            f"expected a vector field, got {type(field).__name__}; make one with lower(system, operator)"
        )
    field.check_state(H0)
    if 0 in H0.shape:
        raise InvalidArgument(f"expected at least one member, node and channel, got a state of shape {tuple(H0.shape)}")


def _check_settings(record: Method, given: Mapping[str, Any], interpolation: str, chosen: Automatic) -> None:
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


def _check_numbers(given: Mapping[str, Any], limit: Any) -> None:
    for name in ("rtol", "atol"):
        value = given[name]
        if value is not None and not 0 <= value < float("inf"):
            raise InvalidArgument(f"expected {name} >= 0 and finite, got {value!r}")
    if given["rtol"] == 0 and given["atol"] == 0:
        raise InvalidArgument("expected one of rtol, atol to be > 0, got 0 and 0")
    if given["max_steps"] is not None and not given["max_steps"] >= 1:
        raise InvalidArgument(f"expected max_steps >= 1, got {given['max_steps']!r}")
    if limit is not None and not limit > 0:
        raise InvalidArgument(f"expected limit > 0, got {limit!r}; limit=None stops at overflow only")


def _check_adjoint(record: Method, step: Any, save_at: Any) -> None:
    if record.adjoint is None:
        raise InvalidArgument(
            f"expected a method with an adjoint, {', '.join(WITH_ADJOINT)}, got {record.name}; without adjoint=True "
            "the gradient comes from the steps themselves"
        )
    if record.is_fixed and step is None and save_at is not None:
        raise InvalidArgument("expected a step for the adjoint with save_at, got none; pass step=...")


def _tolerances(H0: Tensor, given: Mapping[str, Any], bound: float) -> Tolerances:
    """Tolerances of dopri5; they default to what the precision can hold."""
    default = (1e-7, 1e-9) if H0.dtype == torch.float64 else (1e-5, 1e-7)
    rtol, atol = (d if given[name] is None else given[name] for name, d in zip(("rtol", "atol"), default, strict=True))
    most = MAX_STEPS if given["max_steps"] is None else int(given["max_steps"])
    return Tolerances(float(rtol), float(atol), bound, most)
