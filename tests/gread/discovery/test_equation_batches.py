"""Different equations in one batch: each is trained as if it were alone, whatever becomes of the others."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch

import rdgraph as rd
from gread.datasets.embedded import karate
from gread.discovery import equation_batches
from gread.discovery.equation_batches import EquationProgress, make_rungs, train_equations
from gread.models.equation_model import PIECE, EquationBatch, cheapest_pieces
from gread.models.flow import POLYNOMIAL, STEPS
from gread.models.resolution import resolve_method
from gread.settings.config import Config
from gread.settings.equation_settings import EquationSettings, shares_batches
from gread.settings.gread_settings import GreadSettings
from gread.settings.trials import Trial, grouped
from gread.training.ensemble import Ensemble
from rdgraph.errors import InvalidArgument, NotApplicable
from tests.equations import COEFFICIENTS, FIELDS, OPERATORS
from tests.gread.training.test_capture import Recorded

#: A member in a batch and alone: the same to the rounding of single precision, through all epochs.
TOLERANCE = 2e-6
SLOTS, EPOCHS = 5, 4
SMALL: dict[str, Any] = {"hidden": 8, "attention_dim": 8}
CATALOGUE = (
    "diffusion", "BS", "ST", "FB", "FB*", "FB-released", "FB*-released", "GRAND-l", "GRAFF-diagonal", "APPNP", "SGC",
)  # fmt: skip
#: With coefficients that are no sums of letters, declared signs, and a forcing that is no filter of H0.
LINEAR = (
    "-alpha*L@H + beta*L@H0 + gamma*A@A@H", "-alpha*beta*L@H + gamma*H/(1 + delta**2)", "-alpha*L@H + gamma*H",
    "-alpha*L@H + gamma*A@H0 where gamma negative", "-alpha*L@L@H + beta*tanh(H0)", "-alpha*L@H + beta*(1 + A@H0**2)",
)  # fmt: skip
CURVED = (
    "-alpha*L@H + beta*tanh(H)", "-alpha*L@H + beta*H*(1 - H) + gamma*H0", "-alpha*L@H + beta*tanh(A@H) + gamma*H**3",
    "-alpha*L@H + beta*sigmoid(A@H)*(H0 - H)", "-alpha*L@H + beta*sin(H) - gamma*H", "2*tanh(A@H) - H + 0.1",
    "-alpha*L@H + tanh(gamma*H) - tanh(alpha*H)", "-alpha*L@H - gamma*(A@H)**2*H", "-alpha*L@H + tanh(gamma*H0)*H",
)  # fmt: skip


def random_linear(count: int, seed: int) -> list[str]:
    """Lines of two or three terms with words in A and L."""
    draw = Random(seed)
    terms = [
        [
            f"{draw.choice(COEFFICIENTS)}*{draw.choice(OPERATORS)}{draw.choice(FIELDS)}"
            for _ in range(draw.randint(1, 2))
        ]
        for _ in range(count)
    ]
    return [" + ".join(["-alpha*L@H", *own]) for own in terms]


def settings_of(text: str, kind: type[GreadSettings] = EquationSettings, **values: Any) -> GreadSettings:
    slots = {"slots": SLOTS} if kind is EquationSettings else {}
    return resolve_method(kind.of(rd.parse(text), **SMALL | slots | values))[0]


def trials_of(texts: list[str], kind: type[GreadSettings] = EquationSettings, **values: Any) -> list[Trial]:
    """The equations on splits and with seeds of their own."""
    training = Config().updated({"epochs": EPOCHS}).training
    configs = [Config(settings_of(text, kind, **values), training) for text in texts]
    return [Trial(config, split=k % 3, seed=k) for k, config in enumerate(configs)]


def together(trials: list[Trial], dtype: torch.dtype = torch.float32) -> Ensemble:
    return Ensemble(karate(), trials, dtype=dtype, networks={EquationSettings: EquationBatch})


def check_alone(
    texts: list[str], tolerance: float = TOLERANCE, dtype: torch.dtype = torch.float32, **values: Any
) -> set[tuple[str, ...]]:
    """Every equation has the curve and the parameters that it has alone; the manners that occurred."""
    trials, alone = trials_of(texts, **values), trials_of(texts, GreadSettings, **values)
    manners = set()
    for group in grouped(trials):
        model = trials[group[0]].config.model
        assert isinstance(model, EquationSettings)
        manners.add(model.integration)
        batch = together([trials[k] for k in group], dtype)
        batch.advance(EPOCHS)
        history = batch.outcome().history
        assert bool(history.isfinite().all())
        for member, k in enumerate(group):
            single = Ensemble(karate(), [alone[k]], dtype=dtype)
            single.advance(EPOCHS)
            own = single.outcome().history[:, 0]
            torch.testing.assert_close(history[:, member], own, rtol=tolerance, atol=tolerance, msg=texts[k])
            for name in ("encoder_weight", "decoder_weight"):
                found, expected = batch.parts[name][member], single.parts[name][0]
                torch.testing.assert_close(found, expected, rtol=20 * tolerance, atol=20 * tolerance, msg=texts[k])
            means = batch.model.coefficient_means()[member]  # type: ignore[operator]
            assert set(means) == set(single.model.coefficients())  # type: ignore[operator]
            for name, value in single.model.coefficients().items():  # type: ignore[operator]
                assert means[name] == pytest.approx(
                    float(value.detach().mean()), rel=50 * tolerance, abs=50 * tolerance
                )
    return manners


# ---------------------------------------------------------------------- as if alone
def test_linear_equations_share_batches_and_are_trained_as_alone() -> None:
    lines = [*CATALOGUE[1:3], *LINEAR, *random_linear(3, seed=3)]
    manners = check_alone(lines, adjacency="original", self_loops=0.0)
    assert manners == {("filter",), ("filter", "source"), ("increment",)}


def test_stepped_equations_share_batches_and_are_trained_as_alone() -> None:
    assert check_alone(list(CURVED[:5]), adjacency="soft") == {("steps", "rk4", "up to 8")}


@pytest.mark.parametrize(("method", "step"), [("rk4", 0.3), ("dopri5", None)])
def test_linear_equations_are_trained_as_alone_by_any_method(method: str, step: float | None) -> None:
    check_alone([*CATALOGUE[1:3], *LINEAR[1:3]], adjacency="original", method=method, step=step, time=1.7)


@pytest.mark.deep
@pytest.mark.slow
def test_in_double_precision_nothing_is_left_of_the_difference() -> None:
    check_alone([*CATALOGUE, *LINEAR, *random_linear(8, seed=5)], 1e-9, torch.float64, adjacency="soft")
    check_alone([*CATALOGUE[:5], *random_linear(5, seed=7)], 1e-9, torch.float64, adjacency="original", time=2.5)
    check_alone(list(CURVED), 1e-11, torch.float64, adjacency="original")


def test_the_order_of_the_equations_changes_nothing() -> None:
    lines = [LINEAR[0], *LINEAR[2:4], CURVED[0], CURVED[3], "-alpha*L@H + beta*A@A@A@H"]
    config = Config(GreadSettings(**SMALL, adjacency="original"))
    options: dict[str, Any] = {"splits": [0, 1], "epochs": 8, "device": "cpu"}
    first = {one.equation: one for one in train_equations(lines, karate(), config, **options)}
    second = {one.equation: one for one in train_equations(lines[::-1], karate(), config, **options)}
    assert first.keys() == second.keys()
    for name, one in first.items():
        assert (one.val, one.test, one.state) == (second[name].val, second[name].test, second[name].state)
        assert second[name].coefficients == pytest.approx(one.coefficients, rel=1e-4, abs=1e-5)


# ---------------------------------------------------------------------- what one does is not felt by the others
@pytest.mark.parametrize(
    ("wild", "calm"),
    [
        ("alpha*H + 1e30*gamma*H - H", ["-alpha*L@H + gamma*A@H", "BS"]),
        ("gamma*1000*H**3", ["-alpha*L@H + gamma*tanh(H)", "-alpha*L@H + tanh(gamma*H) - H**3"]),
    ],
)
def test_an_equation_that_diverges_does_not_touch_the_others(wild: str, calm: list[str]) -> None:
    method = "rk4" if "H**3" in wild else "exact"
    config = Config(GreadSettings(**SMALL, adjacency="original", method=method, step=0.5))
    options: dict[str, Any] = {"splits": [0, 2], "epochs": 20, "device": "cpu"}
    broken, *others = train_equations([wild, *calm], karate(), config, **options)
    assert broken.state == "diverged"
    for one, alone in zip(others, train_equations(calm, karate(), config, **options), strict=True):
        assert one.state == "complete"
        assert (one.val, one.test) == (alone.val, alone.test)
        assert one.coefficients == pytest.approx(alone.coefficients, rel=1e-4)


def test_only_members_whose_polynomials_are_short_get_longer_ones() -> None:
    trials = trials_of(["-alpha*L@H + gamma*H", "-alpha*L@H + delta*A@H"], adjacency="original")
    batch = together(trials)
    before = batch.model.member_degrees
    batch.model.lengthen(batch.problem.features, batch.rates, torch.tensor([0.0, 1.0]))
    after = batch.model.member_degrees
    assert after[0] == before[0]
    assert after[1] > before[1]
    assert batch.model.degree == max(after)


@pytest.mark.parametrize("seed", range(4))
def test_pieces_cover_all_members_with_degrees_that_are_enough(seed: int) -> None:
    draw = Random(seed)
    degrees = tuple(draw.choice((8, 12, 16, 40, 500 if seed else 20)) for _ in range(draw.choice((5, 60, 900))))
    pieces = cheapest_pieces(degrees) or ((0, len(degrees), max(degrees)),)
    assert [first for first, _, _ in pieces] == [0, *(last for _, last, _ in pieces[:-1])]
    assert pieces[-1][1] == len(degrees)
    for first, last, degree in pieces:
        assert max(degrees[first:last]) <= degree <= max(degrees)
    whole = (1 + max(degrees)) * (len(degrees) + PIECE)
    assert sum((1 + degree) * (last - first + PIECE) for first, last, degree in pieces) <= whole


def test_what_cannot_be_trained_is_refused_with_the_reason() -> None:
    lines = ["H +", "-alpha*L@H + sigma*H*xi", "BS", "-alpha*L@H + foo(H)"]
    config = Config(GreadSettings(**SMALL))
    found = train_equations(lines, karate(), config, splits=[0], epochs=4, device="cpu")
    assert [one.state for one in found] == ["failed", "failed", "complete", "failed"]
    assert "white noise" in found[1].note
    assert math.isnan(found[0].val_accuracy)
    with pytest.raises(InvalidArgument, match="at least one split"):
        train_equations(lines, karate(), config, splits=[], device="cpu")


def test_a_round_that_fails_is_trained_again_without_what_is_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, told = ["BS", "ST", "F"], list[str]()
    config = Config(GreadSettings(**SMALL, adjacency="original"))
    init = EquationBatch.__init__

    def odd(self: EquationBatch, settings: Any, *args: Any, each: Any = None, **options: Any) -> None:
        if any("H0" in one.system.letters for one in each):
            raise NotApplicable("expected no start, got one; leave it out")
        init(self, settings, *args, each=each, **options)

    monkeypatch.setattr(EquationBatch, "__init__", odd)
    found = train_equations(lines, karate(), config, splits=[0], epochs=4, device="cpu", tell=told.append)
    assert [one.state for one in found] == ["complete", "failed", "complete"]
    assert found[1].note.startswith("expected no start")
    assert told


def test_equations_of_other_kinds_are_trained_in_batches_of_their_own() -> None:
    lines = ["-alpha*L@H + H@W", "-alpha*L@H + M*H0", "H'' = -alpha*L@H", "-alpha*L@H + beta*H*exp(-t)", "BS"]
    config = Config(GreadSettings(**SMALL, adjacency="original"))
    assert [shares_batches(settings_of(line, GreadSettings)) for line in lines] == [False] * 4 + [True]
    found = train_equations(lines, karate(), config, splits=[0, 1], epochs=4, device="cpu")
    assert [one.state for one in found] == ["complete"] * 5
    assert all(len(one.val) == len(one.test) == 2 for one in found)
    assert "W" in found[0].coefficients
    for adjacency, normalisation in (("live", "symmetric"), ("original", "none")):
        settings = settings_of(
            "F", GreadSettings, adjacency=adjacency, normalisation=normalisation, method="rk4", step=1.0
        )
        assert not shares_batches(settings)


def test_a_linear_equation_is_prepared_as_it_is_resolved() -> None:
    config = Config(GreadSettings(**SMALL, adjacency="original"))
    for line in (*CATALOGUE, *LINEAR, CURVED[0]):
        prepared, resolved = (
            equation_batches._prepared(0, line, config),
            settings_of(line, GreadSettings, adjacency="original"),
        )
        assert prepared == resolved
        assert isinstance(prepared, GreadSettings)
        assert prepared.system == resolved.system


# ---------------------------------------------------------------------- rungs
@pytest.mark.slow
@pytest.mark.parametrize(
    ("epochs", "rungs", "lengths"), [(40, [20], [20] * 3 + [40] * 3), (60, [20, 40], [20] * 3 + [40] + [60] * 2)]
)
def test_the_worse_part_is_dropped_and_the_rest_goes_on_as_if_nothing_had_been(
    epochs: int, rungs: list[int], lengths: list[int]
) -> None:
    lines = [*LINEAR[:3], CATALOGUE[2], CURVED[0], CURVED[3]]
    config = Config(GreadSettings(**SMALL, adjacency="original", method="euler", step=0.5))
    options: dict[str, Any] = {"splits": [0], "epochs": epochs, "device": "cpu"}
    heard: list[EquationProgress] = []
    halved = train_equations(lines, karate(), config, rungs=rungs, keep=0.5, on_progress=heard.append, **options)
    whole = train_equations(lines, karate(), config, **options)
    assert sorted(one.epochs for one in halved) == lengths
    for one, all_the_way in zip(halved, whole, strict=True):
        assert one.state == ("complete" if one.epochs == epochs else "pruned")
        if one.epochs == epochs:
            assert (one.val, one.test) == (all_the_way.val, all_the_way.test)
    at_first = {one.equation: one.rungs[0][1] for one in halved}
    kept = [at_first[one.equation] for one in halved if one.epochs > 20]
    assert min(kept) >= max(at_first[one.equation] for one in halved if one.epochs == 20)
    assert [one.share for one in heard] == sorted(one.share for one in heard)
    assert heard[-1].share == pytest.approx(1.0)
    assert make_rungs((), 0.5, 60).ends(60) == (60,)


def test_several_rounds_are_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not all parameters fit at once; without rungs nothing else is different."""
    lines, heard = ["BS", "ST", "-alpha*L@H + gamma*A@H", "-L@H", "H +"], list[EquationProgress]()
    config = Config(GreadSettings(**SMALL, adjacency="original"))
    options: dict[str, Any] = {"splits": [0, 1], "epochs": 6, "device": "cpu"}
    whole = train_equations(lines, karate(), config, **options)
    monkeypatch.setattr(equation_batches, "_round_count", lambda *given: 3)
    parts = train_equations(lines, karate(), config, on_progress=heard.append, **options)
    assert [(one.equation, one.val, one.test) for one in parts] == [(one.equation, one.val, one.test) for one in whole]
    assert heard[-1].share == pytest.approx(1.0)
    monkeypatch.undo()
    assert equation_batches._round_count(10**9, karate(), config.gread, "cpu") > 1


def test_after_the_time_nothing_further_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    config = Config(GreadSettings(**SMALL, adjacency="original"))
    found = train_equations(["BS", "F"], karate(), config, splits=[0], epochs=4000, seconds=40, device="cpu")
    assert [one.state for one in found] == ["pruned", "pruned"]
    assert max(one.epochs for one in found) < 4000
    late = train_equations(["BS", "F"], karate(), config, splits=[0], epochs=40, seconds=0, device="cpu")
    assert {(one.state, one.note, one.epochs) for one in late} == {("failed", equation_batches.LATE, 0)}
    assert train_equations([], karate(), config, splits=[0], device="cpu") == []


# ---------------------------------------------------------------------- recorded
@pytest.mark.parametrize("adjacency", ["original", "soft"])
@pytest.mark.parametrize("lines", [LINEAR, CURVED[::2]])
def test_an_epoch_of_different_equations_can_be_recorded(lines: tuple[str, ...], adjacency: str) -> None:
    trials = trials_of(list(lines), adjacency=adjacency)
    for group in grouped(trials):
        batch = together([trials[k] for k in group])
        assert isinstance(batch.model, EquationBatch)
        assert batch.model.is_capturable
        assert batch.model.chosen_flow.form in (POLYNOMIAL, STEPS)
        batch._epoch()
        with Recorded():
            batch._epoch()
        assert bool(batch.outcome().history[:2, :, 0].isfinite().all())


def test_a_network_of_another_kind_is_left_as_it_is() -> None:
    from gread.zoo.equation_networks import GrandSettings

    config = Config(GrandSettings(**SMALL, method="euler", step=1.0))
    assert not shares_batches(replace(config.gread, reaction="BS"))
    (found,) = train_equations(["-alpha*L@H"], karate(), config, splits=[0], epochs=4, device="cpu")
    assert found.state == "complete"


def test_memory_grows_with_the_terms_of_a_member_and_not_with_those_of_others() -> None:
    one, both = CURVED[0], [CURVED[0], "-alpha*L@H + beta*sin(H)"]
    single = together(trials_of([one], adjacency="original", method="rk4", step=0.25)).model
    pair = together(trials_of(both, adjacency="original", method="rk4", step=0.25)).model
    features = together(trials_of([one], adjacency="original")).problem.features
    assert pair.memory(features) == single.memory(features)
    whole = single.memory(features)
    single.segment = 1
    assert whole is not None
    assert (single.memory(features) or 0) < whole / 2
