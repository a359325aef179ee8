"""`solve`: trackers and measures at every save, the progress bar, runs that hold no trajectory."""

from __future__ import annotations

import io
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import Tensor

from rdgraph.run.solvers.solver import solve
from rdgraph.run.solvers.trackers import Callback, ProgressBar
from tests.rdgraph.run.solvers.ring_fields import field_of
from tests.rdgraph.run.solvers.solver_runs import state


class Log:
    """Records its calls."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.heard: list[Any] = []
        self.fail_at = fail_at

    def start(self, total: int) -> None:
        self.heard.append(("start", total))

    def saved(self, index: int, time: Tensor, state: Tensor) -> None:
        assert not state.requires_grad
        self.heard.append((index, round(float(time), 12)))
        if index == self.fail_at:
            raise KeyboardInterrupt

    def stop(self) -> None:
        self.heard.append("stop")


@pytest.mark.parametrize("method", ["heun", "dopri5", "exact"])
def test_trackers_hear_every_save_in_order(method: str) -> None:
    log = Log()
    H0 = state().requires_grad_()
    sol = solve(field_of("diffusion", alpha=1.0), H0, [0.0, 0.5, 1.0], method, trackers=[log])
    assert log.heard == [("start", 3), (0, 0.0), (1, 0.5), (2, 1.0), "stop"]
    assert sol.final.requires_grad


def test_an_interrupted_run_stops_its_trackers() -> None:
    log, other = Log(fail_at=1), Log()
    with pytest.raises(KeyboardInterrupt):
        solve(field_of("diffusion", alpha=1.0), state(), [0.0, 0.5, 1.0], "euler", trackers=[other, log])
    assert log.heard == [("start", 3), (0, 0.0), (1, 0.5), "stop"]
    assert other.heard[-1] == "stop"


def test_the_callback_gets_the_saved_states() -> None:
    seen: list[tuple[int, float, Tensor]] = []
    tracker = Callback(lambda index, time, state: seen.append((index, float(time), state)))
    sol = solve(field_of("diffusion", alpha=1.0), state(), [0.0, 0.5], "euler", trackers=[tracker])
    assert [(index, time) for index, time, _ in seen] == [(0, 0.0), (1, 0.5)]
    assert all(torch.equal(kept, saved) for (_, _, kept), saved in zip(seen, sol.states, strict=True))


def test_the_progress_bar_shows_only_on_a_terminal() -> None:
    field, H0 = field_of("diffusion", alpha=1.0), state()
    quiet, loud, forced = io.StringIO(), io.StringIO(), io.StringIO()
    bars = [
        ProgressBar(console=Console(file=quiet)),
        ProgressBar("heat", console=Console(file=loud, force_terminal=True, width=80)),
        ProgressBar("forced", force=True, console=Console(file=forced, width=80)),
    ]
    solve(field, H0, [0.0, 0.5, 1.0], "euler", trackers=bars)
    assert quiet.getvalue() == ""
    assert "heat" in loud.getvalue()
    assert "100%" in loud.getvalue()
    assert "forced" in forced.getvalue()
    assert [bar._shown for bar in bars] == [None, None, None]


@pytest.mark.parametrize("method", ["rk4", "dopri5", "exact"])
def test_measures_are_taken_at_every_save(method: str) -> None:
    field = field_of("diffusion", (2,), alpha=1.0)
    H0 = state(2).requires_grad_()
    measures = {"mean": lambda H: H.mean((-2, -1)), "largest": lambda H: float(H.detach().abs().max())}
    sol = solve(field, H0, [0.0, 0.5, 1.0], method, measures=measures)
    assert sol.measures["mean"].shape == (3, 2)
    assert torch.equal(sol.measures["mean"], sol.states.mean((-2, -1)))
    assert sol.measures["largest"].tolist() == pytest.approx(sol.states.abs().amax((1, 2, 3)).tolist())
    last = solve(field, H0, [0.0, 0.5, 1.0], method, measures=measures, keep_states=False)
    assert last.states.shape == (1, 2, 4, 2)
    assert torch.equal(last.final, sol.final)
    assert last.times.tolist() == [0.0, 0.5, 1.0]
    assert torch.equal(last.measures["mean"], sol.measures["mean"])
    last.measures["mean"].sum().backward()
    torch.testing.assert_close(H0.grad, torch.full_like(H0, 3 / 8))


def test_without_states_the_trajectory_is_not_held() -> None:
    alive: list[weakref.ref[Tensor]] = []
    most = 0

    def energy(H: Tensor) -> Tensor:
        nonlocal most
        alive.append(weakref.ref(H))
        most = max(most, sum(ref() is not None for ref in alive))
        return H.square().sum()

    t = np.linspace(0, 1, 20)
    with torch.no_grad():
        sol = solve(field_of("diffusion", alpha=1.0), state(), t, "euler", measures={"e": energy}, keep_states=False)
    assert len(alive) == 20
    assert most <= 3
    assert sol.measures["e"].shape == (20,)
