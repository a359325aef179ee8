"""Batches of many methods, steps, times and kinds of coefficients: every member is trained as if it were alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gread.datasets.embedded import karate
from gread.models.flow import POLYNOMIAL, SOLVE, STEPS, pieces_of
from gread.models.gread_model import GREAD
from gread.models.mixed_coefficients import MixedCoefficient, fitted, shared_settings
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.trials import Trial, grouped, make_trials
from gread.training import batch_queue
from gread.training.checkpoint import load_checkpoint, save_checkpoint
from gread.training.ensemble import Ensemble
from gread.training.planner import Costs, make_batches
from gread.training.trainer import train
from gread.tuning.candidates import Candidate
from gread.tuning.successive_halving import HalvedRound, Rungs, halving_options
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.language.tree import Kind
from rdgraph.run.solvers.schedules import Schedule, Schedules
from rdgraph.systems.catalogue import catalogue

#: A member in a batch and alone: the same to the rounding of single precision, through all epochs.
TOLERANCE = 2e-6
BASE: dict[str, Any] = {"hidden": 8, "attention_dim": 8, "epochs": 6}
#: Methods, steps, times and kinds that a linear equation mixes.
LINEAR: list[dict[str, Any]] = [
    {"method": "rk4", "step": 0.5, "time": 1.3, "alpha": "scalar", "beta": "scalar"},
    {"method": "euler", "step": 0.2, "time": 2.3, "alpha": "channel", "beta": "channel", "dropout": 0.1},
    {"method": "dopri5", "time": 0.7, "alpha": "scalar", "beta": "channel", "learning_rate": 0.05},
    {"method": "exact", "time": 3.9, "alpha": "channel", "beta": "scalar", "beta_link": "free", "weight_decay": 0.1},
    {"method": "heun", "step": 1.5, "time": 0.1, "beta": "channel", "beta_link": "sigmoid"},
]
#: Of one method, for an equation that is stepped.
STEPPED: list[dict[str, Any]] = [
    {"step": 0.5, "time": 1.3, "alpha": "scalar", "beta": "scalar"},
    {"step": 0.2, "time": 2.3, "alpha": "channel", "beta": "channel", "dropout": 0.1},
    {"step": 1.0, "time": 0.7, "alpha": "scalar", "beta": "channel", "learning_rate": 0.05},
    {"step": 0.9, "time": 1.9, "alpha": "channel", "beta": "scalar", "alpha_link": "free"},
]


def mixed(values: list[dict[str, Any]], **shared: Any) -> list[Trial]:
    """Trials with settings, splits and seeds of their own."""
    configs = [Config().updated(BASE | shared | own) for own in values]
    return [Trial(config, split=k % 3, seed=k) for k, config in enumerate(configs)]


def trained(trials: list[Trial], dtype: torch.dtype = torch.float32) -> Ensemble:
    ensemble = Ensemble(karate(), trials, dtype=dtype)
    ensemble.advance(ensemble.epochs)
    return ensemble


def check_alone(trials: list[Trial], tolerance: float = TOLERANCE, dtype: torch.dtype = torch.float32) -> Ensemble:
    """Every member has the curve, the outcome and the parameters that it has alone."""
    together = trained(trials, dtype)
    history = together.outcome().history
    assert bool(history.isfinite().all())
    for k, trial in enumerate(trials):
        alone = trained([trial], dtype)
        torch.testing.assert_close(history[:, k], alone.outcome().history[:, 0], rtol=tolerance, atol=tolerance)
        assert int(together.outcome().best_epoch[k]) == int(alone.outcome().best_epoch[0])
        for name, part in alone.parts.items():
            own = together.model.member_part(name, together.parts[name].detach(), k)
            assert own.shape == part.shape, name
            torch.testing.assert_close(own, part.detach(), rtol=20 * tolerance, atol=20 * tolerance)
    return together


# ---------------------------------------------------------------------- members and their batch
@pytest.mark.parametrize("adjacency", ["original", "soft"])
@pytest.mark.parametrize("reaction", ["BS", "ST", "-alpha*L@H + beta*H0 + H0*H0"])
def test_linear_members_of_any_method_step_time_and_kind_share_a_batch(adjacency: str, reaction: str) -> None:
    together = check_alone(mixed(LINEAR, adjacency=adjacency, reaction=reaction))
    assert isinstance(together.model, GREAD)
    assert together.model.chosen_flow.form == POLYNOMIAL
    assert isinstance(together.model.chosen_flow.schedule, Schedules)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reaction", "adjacency", "method"),
    [
        ("F", "original", "rk4"),
        ("AC", "soft", "rk4"),
        ("AC", "live", "euler"),
        ("-alpha*L@H + beta*sin(t)*tanh(H)", "soft", "euler"),
    ],
)
def test_stepped_members_of_any_step_time_and_kind_share_a_batch(reaction: str, adjacency: str, method: str) -> None:
    together = check_alone(mixed(STEPPED, reaction=reaction, adjacency=adjacency, method=method))
    assert isinstance(together.model, GREAD)
    assert together.model.chosen_flow.form == STEPS


def test_several_fields_with_steps_of_their_own_share_a_batch() -> None:
    pair = "u' = -Du*L@u + beta*tanh(v); v' = -Dv*L@v + u - v**3"
    times = [{"step": 0.5, "time": 1.0}, {"step": 0.2, "time": 0.5}, {"step": 0.3, "time": 2.0}]
    check_alone(mixed(times, reaction=pair, method="rk4"))


@pytest.mark.slow
def test_in_double_precision_nothing_is_left_of_the_difference() -> None:
    check_alone(mixed(LINEAR, reaction="BS", adjacency="soft"), 1e-9, torch.float64)
    check_alone(mixed(STEPPED, reaction="AC", method="rk4"), 1e-12, torch.float64)


def test_one_way_of_integration_is_one_schedule() -> None:
    """Members that differ in times alone run the program that they always ran."""
    trials = mixed([{"time": 1.3}, {"time": 1.4}], method="rk4", step=0.5)
    model = Ensemble(karate(), trials).model
    assert isinstance(model, GREAD)
    assert model.chosen_flow.schedule == Schedule.make("rk4", 1.3, 0.5)


@pytest.mark.slow
def test_a_held_member_is_not_touched_by_what_it_does_not_take() -> None:
    """Past its end a member would blow up; neither its state nor its gradient hears of that."""
    grow = [{"time": 0.1, "step": 0.1}, {"time": 40.0, "step": 0.1}]
    trials = mixed(grow, reaction="-alpha*L@H + beta*H**3", method="euler", beta="scalar", epochs=3)
    together = trained(trials)
    out = together.outcome()
    assert out.status(0) == "ok"
    torch.testing.assert_close(out.history[:, 0], trained(trials[:1]).outcome().history[:, 0], rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------------- who may be together
@pytest.mark.parametrize("name", list(catalogue))
def test_settings_know_whether_the_flow_is_a_polynomial(name: str) -> None:
    """What is said without a graph is what the flow is on one."""
    for values in ({}, {"adjacency": "original", "normalisation": "none"}, {"adjacency": "live"}):
        for method, step in (("rk4", 0.5), ("exact", None), ("dopri5", None), ("strang", 0.5)):
            try:
                settings = GreadSettings(reaction=name, hidden=4, attention_dim=4, method=method, step=step, **values)
                said = settings.is_polynomial
                model = Ensemble(karate(), [Trial(Config(settings))]).model
            except (NotApplicable, InvalidArgument):
                continue
            assert isinstance(model, GREAD)
            if settings.system.is_single:
                assert said == (model.chosen_flow.form == POLYNOMIAL), (values, method)
            else:
                assert not said


def test_an_adaptive_method_of_a_linear_equation_is_the_exact_flow() -> None:
    """Both are H(T) as near as the tolerance of the adaptive method, 1e-5 in single precision."""
    adaptive, exact = mixed([{"method": "dopri5"}, {"method": "exact"}], time=2.0, reaction="BS")
    models = [Ensemble(karate(), [replace(trial, split=0, seed=0)]).model for trial in (adaptive, exact)]
    assert all(isinstance(m, GREAD) and m.chosen_flow.form == POLYNOMIAL and m.is_capturable for m in models)
    nonlinear = Ensemble(karate(), mixed([{"method": "dopri5"}], reaction="F")).model
    assert isinstance(nonlinear, GREAD)
    assert nonlinear.chosen_flow.form == SOLVE
    features = Ensemble(karate(), [exact]).problem.features
    torch.testing.assert_close(models[0](features), models[1](features))


def test_matrices_keep_kinds_apart_and_nodes_too() -> None:
    kinds = [{"beta": "scalar"}, {"beta": "channel"}]
    with_matrix = mixed(kinds, reaction="-alpha*L@H + beta*H@W", method="euler", step=0.5)
    assert len(grouped(with_matrix)) == 2
    assert len(grouped(mixed([*kinds, {"beta": "node"}], method="euler", step=0.5))) == 2


# ---------------------------------------------------------------------- coefficients
def test_the_room_for_channels_stays_empty() -> None:
    """The number of a member lies at the first place; the others are zero, in moments too, whatever the decay."""
    together = trained(mixed(LINEAR, reaction="BS", optimiser="adamw", weight_decay=0.1))
    for name in ("coefficient_beta", "first.coefficient_beta", "second.coefficient_beta", "best.coefficient_beta"):
        value = together.state[name].detach()
        assert value.shape == (5, 8)
        assert bool((value[[0, 3], 1:] == 0).all()), name
        assert bool((value[[0, 3], 0] != 0).all()), name
        assert bool((value[[1, 2, 4], 1:] != 0).any(1).all()), name


def test_networks_of_a_mixed_batch_have_their_own_parameters() -> None:
    trials = mixed(LINEAR, reaction="BS")
    done = train(karate(), trials, device="cpu")
    for k, trial in enumerate(trials):
        network = done.network(k)
        kinds = trial.config.gread.system.letters
        assert network.config == trial.config.model
        for name, value in network.coefficients().items():
            assert value.ndim == (kinds[name] is Kind.CHANNEL), name
        hits = network.logits(karate().x, karate().graph).argmax(-1).numpy() == karate().y
        val = karate().masks.val[trial.split]
        assert hits[val].mean() == pytest.approx(done.val_accuracy[k], abs=1e-6)


def test_mixed_coefficients_that_are_not_mixed_are_none() -> None:
    same = [GreadSettings(beta="channel"), GreadSettings(beta="channel", time=3.0)]
    assert shared_settings(same) is same[0]
    assert MixedCoefficient.of("beta", Kind.CHANNEL, same) is None
    links = [GreadSettings(beta="node"), GreadSettings(beta="node", beta_link="sigmoid")]
    found = MixedCoefficient.of("beta", Kind.NODE, links)
    assert found is not None
    torch.testing.assert_close(found.values(torch.zeros(2, 3)), torch.tensor([[0.0], [0.5]]).expand(2, 3))
    scalars = [GreadSettings(beta="scalar"), GreadSettings(beta="scalar", beta_link="free")]
    alone = MixedCoefficient.of("beta", Kind.SCALAR, scalars)
    assert alone is not None
    torch.testing.assert_close(alone.values(alone.start(torch.tensor([2.0, 3.0]))), torch.tensor([0.5, 3.0]))
    assert fitted(torch.ones(2, 3), torch.zeros(2, 3)).shape == (2, 3)


def test_schedules_of_no_members_and_of_several_methods_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="at least one schedule"):
        Schedules(())
    both = Schedules((Schedule.make("euler", 1.0, 0.5), Schedule.make("rk4", 1.0, 0.5)))
    with pytest.raises(InvalidArgument, match="one method, got euler, rk4"):
        _ = both.method


# ---------------------------------------------------------------------- checkpoints, parts, halving
@pytest.mark.slow
def test_a_mixed_batch_resumes_to_the_same_bits(tmp_path: Path) -> None:
    trials = mixed(LINEAR, reaction="BS", adjacency="soft", epochs=30)
    whole, cut = Ensemble(karate(), trials), Ensemble(karate(), trials)
    whole.advance(30)
    cut.advance(13)
    save_checkpoint(tmp_path / "c.json", cut, "mark")
    again = Ensemble(karate(), trials)
    assert load_checkpoint(tmp_path / "c.json", again, "mark")
    again.advance(30)
    for name, value in whole.state.items():
        assert torch.equal(value.nan_to_num(), again.state[name].nan_to_num()), name


@pytest.mark.parametrize("members", [[0, 3], [2, 1], [3]])
@pytest.mark.slow
def test_a_part_of_a_mixed_batch_goes_on_as_in_the_whole(members: list[int]) -> None:
    """Among them parts in which nobody has channels any more, so that the parameters take less room."""
    trials = mixed(LINEAR, reaction="BS", adjacency="soft", epochs=40)
    whole = Ensemble(karate(), trials)
    whole.advance(20)
    part = whole.subset(members)
    whole.advance(20)
    part.advance(20)
    for place, k in enumerate(members):
        torch.testing.assert_close(
            part.outcome().history[:, place], whole.outcome().history[:, k], rtol=TOLERANCE, atol=TOLERANCE
        )
    wide = any(trials[k].config.gread.beta == "channel" for k in members)
    assert part.parts["coefficient_beta"].ndim == 1 + wide


def candidates(count: int) -> list[Candidate]:
    configs = [
        Config().updated(BASE | {"reaction": "BS", "epochs": 60} | LINEAR[k % len(LINEAR)]) for k in range(count)
    ]
    return [Candidate(k, config.updated({"learning_rate": 0.003 * 1.5**k})) for k, config in enumerate(configs)]


@pytest.mark.slow
def test_halving_a_mixed_round_trains_to_the_same_end() -> None:
    """The pool of a shape is cut by effort, joined and narrowed; what stays ends as it would have alone."""
    tried = candidates(9)
    round_ = HalvedRound(
        karate(), tried, [0, 1], 0, Rungs(), halving_options("cpu"), None, lambda text: None, lambda share: None
    )
    results = round_.run()
    stayed = [r for r in results if r.epochs == 60]
    assert {r.epochs for r in results} <= set(Rungs().ends(60))
    assert 0 < len(stayed) < len(results) // 2
    whole = train(karate(), [t for c in tried for t in c.trainings([0, 1], 0)], device="cpu", keep_best=False)
    for result in stayed:
        part = slice(2 * result.number, 2 * result.number + 2)
        assert np.allclose(result.val, whole.val_accuracy[part])
        assert np.allclose(result.test, whole.test_accuracy[part])


# ---------------------------------------------------------------------- batches
@pytest.mark.slow
def test_polynomials_are_taken_piece_by_piece() -> None:
    """Members in the order of their effort have polynomials as long as they need, and are the members alone."""
    values: list[dict[str, Any]] = [{"method": "exact", "time": time} for time in (6.0, 0.2, 2.0, 30.0, 0.3)]
    trials = mixed(values, reaction="BS", adjacency="soft", epochs=25, beta="scalar")
    order = make_batches(trials, [9], [Costs.of(karate(), "cuda")] * len(trials))
    assert order == [[1, 4, 2, 0, 3]]
    together = check_alone([trials[k] for k in order[0]])
    model = together.model
    assert isinstance(model, GREAD)
    pieces = pieces_of(model.member_degrees)
    assert len(pieces) >= 3
    assert [a for a, _, _ in pieces[1:]] == [b for _, b, _ in pieces[:-1]]
    for start, stop, degree in pieces:
        assert max(model.member_degrees[start:stop]) <= degree <= model.degree
    reverse = Ensemble(karate(), [trials[k] for k in reversed(order[0])]).model
    assert isinstance(reverse, GREAD)
    assert pieces_of(reverse.member_degrees) == ()


@pytest.mark.slow
def test_pieces_that_become_too_short_grow_and_go_on_elsewhere() -> None:
    """A coefficient that grows in one member raises all; a part goes on with what it had, or more."""
    values: list[dict[str, Any]] = [{"method": "exact", "time": time} for time in (0.2, 0.5, 6.0)]
    trials = mixed(values, reaction="BS", adjacency="original", beta="scalar", beta_link="free", epochs=60)
    whole = Ensemble(karate(), trials)
    model = whole.model
    assert isinstance(model, GREAD)
    before = model.member_degrees
    with torch.no_grad():
        whole.parameters["coefficient_beta"][0] = 60.0
    whole.advance(20)
    after = model.member_degrees
    assert all(new > old for new, old in zip(after, before, strict=True))
    part = whole.subset([0, 1])
    assert isinstance(part.model, GREAD)
    assert all(new >= old for new, old in zip(part.model.member_degrees, after[:2], strict=True))
    whole.advance(20)
    part.advance(20)
    torch.testing.assert_close(part.outcome().history, whole.outcome().history[:, :2], rtol=1e-4, atol=1e-4)


def test_large_graphs_are_cut_finer_than_small_ones() -> None:
    steps = [{"time": time, "method": "rk4", "step": 0.1} for time in (0.1, 1.0, 6.0)]
    trials = mixed(steps * 20, hidden=64, reaction="F")
    small = Costs(1e10, 100, 400, 50, 500)
    assert len(make_batches(trials, [1000], [small] * 60)) == 1
    assert len(make_batches(trials, [1000], [replace(small, nodes=10**6, edges=10**7)] * 60)) == 3
    assert Costs.of(karate(), "cuda").batch > Costs.of(karate(), "cpu").batch


@pytest.mark.slow
def test_batches_side_by_side_give_the_results_of_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue as it is on a GPU, with several batches under way, each looked at in turn."""
    trials = [*mixed(LINEAR, reaction="BS"), *mixed(STEPPED, reaction="F", method="rk4"), *mixed([{}], hidden=4)]
    one = train(karate(), trials, device="cpu", members=2)
    under_way: list[int] = []
    real = batch_queue.run_batches

    def several(batches: Any, device: str, report: Any, finish: Any, tell: Any) -> None:
        assert len(batches) > 3
        streams = [None] * 3
        shared = [batch._replace(share=0.3) for batch in batches]
        monkeypatch.setattr(batch_queue, "_streams", lambda device, count: list(streams))
        monkeypatch.setattr(batch_queue, "LOOK", 0.0)  # a look after every epoch

        def hear(number: int, ensemble: Ensemble) -> None:
            under_way.append(number)
            report(number, ensemble)

        real(shared, device, hear, finish, tell)

    monkeypatch.setattr("gread.training.trainer.run_batches", several)
    both = train(karate(), trials, device="cpu", members=2)
    assert under_way != sorted(under_way)
    np.testing.assert_array_equal(one.history, both.history)
    np.testing.assert_array_equal(one.test_accuracy, both.test_accuracy)


def test_trials_are_put_together_once_for_each_configuration() -> None:
    config = Config().updated(BASE)
    trials = make_trials(config, range(3), range(2))
    assert grouped(trials) == [list(range(6))]
