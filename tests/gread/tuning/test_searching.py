"""Searches: the same whatever cuts them off, by validation alone, with parts that can be done elsewhere."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gread import discover, train_decoupled
from gread.datasets.embedded import karate
from gread.datasets.splits import Masks
from gread.settings.config import Config
from gread.settings.trials import make_trials
from gread.training import batch_queue
from gread.training.ensemble import Ensemble
from gread.training.trainer import train
from gread.tuning import ask_tell, rounds, searching
from gread.tuning.candidates import TrialResult
from gread.tuning.rounds import in_pieces, train_round
from gread.tuning.searching import Search, SearchPlan, search
from gread.tuning.space import find_space, read_space
from rdgraph.errors import InvalidArgument, LanguageError, MissingDependency, UnknownName
from tests.gread.tuning.quick_searches import MLP, plan, quick


# ---------------------------------------------------------------------- what a search is
def test_results_are_those_of_a_training() -> None:
    found = quick()
    assert [r.number for r in found.results] == list(range(5))
    for result in found.results:
        done = train(karate(), make_trials(found.config(result.number), [0, 1, 2]), device="cpu")
        assert result.val == pytest.approx(done.val_accuracy.tolist())
        assert result.test == pytest.approx(done.test_accuracy.tolist())
    assert found.chosen.val_accuracy == max(r.val_accuracy for r in found.results)
    assert found.best == found.config(found.chosen.number)


def test_a_trial_is_rerun_from_its_text() -> None:
    found = quick(2)
    for row in found.rows():
        again = Config.from_toml(found.config(int(row["trial"])).toml())
        assert again.training.learning_rate == row["learning_rate"]
        assert (again.model.hidden, again.training.epochs) == (8, 20)


def test_test_labels_change_nothing_but_the_test_accuracy() -> None:
    """A search on data whose test labels are turned around draws and chooses the same."""
    data = karate()
    labels = data.y.copy()
    hidden = data.masks.test[:2].all(0) if data.masks.test[:2].all(0).any() else data.masks.test[0]
    labels[hidden] = 1 - labels[hidden]
    other = replace(data, y=labels)
    splits = [0, 1] if data.masks.test[:2].all(0).any() else [0]
    options = MLP | {"splits": splits, "sampler": "tpe", "fixed": {"epochs": 20, "hidden": 8}, "trials": 12}
    one, two = search(data, round_size=4, **options), search(other, round_size=4, **options)
    assert [c.values for c in one.candidates] == [c.values for c in two.candidates]
    assert one.chosen.number == two.chosen.number
    assert [r.val for r in one.results] == [r.val for r in two.results]
    assert [r.test for r in one.results] != [r.test for r in two.results]


@pytest.mark.slow
def test_equations_are_searched_too() -> None:
    text = """
    [settings]
    reaction = ["BS", "-alpha*L@H + beta*tanh(H)"]
    learning_rate = { low = 0.01, high = 0.05 }
    step = { low = 0.25, high = 0.5, when = { reaction = "-alpha*L@H + beta*tanh(H)" } }
    """
    base = Config().updated({"adjacency": "original", "epochs": 20, "hidden": 4})
    space = read_space(text, "equations")
    found = search(karate(), trials=6, space=space, base=base, splits=[0], device="cpu", seed=1)
    rows = found.rows()
    assert {row["reaction"] for row in rows} == {"BS", "-alpha*L@H + beta*tanh(H)"}
    assert all((row["step"] == "") == (row["reaction"] == "BS") for row in rows)
    assert all(r.state == "complete" for r in found.results)


def test_settings_that_do_not_go_together_fail_alone() -> None:
    text = "[settings]\nattention_dim = [12, 16]\nheads = [3, 4]\n"
    base = Config().updated({"attention_dim": 12, "epochs": 20, "hidden": 4, "method": "euler", "step": 1.0})
    found = search(karate(), trials=6, space=read_space(text, "heads"), base=base, splits=[0], device="cpu", seed=1)
    drawn = [(c.values["attention_dim"], c.values["heads"]) for c in found.candidates]
    assert (16, 3) in drawn
    for values, result in zip(drawn, found.results, strict=True):
        assert result.state == ("failed" if values == (16, 3) else "complete")
        assert ("share evenly" in result.note) == (values == (16, 3))
    assert [row["state"] for row in found.rows()] == [r.state for r in found.results]


@pytest.mark.parametrize("halving", [False, True])
def test_a_method_without_the_step_that_it_needs_fails_alone(halving: bool) -> None:
    text = '[settings]\nmethod = ["euler", "rk4"]\nstep = { low = 0.5, high = 1.0, when = { method = ["euler"] } }\n'
    space, said = read_space(text, "steps"), list[str]()
    base = Config().updated({"epochs": 20, "hidden": 4, "attention_dim": 4})
    options: dict[str, Any] = {"space": space, "base": base, "splits": [0], "halving": halving}
    found = search(karate(), trials=5, device="cpu", seed=1, tell=said.append, **options)
    assert {c.values["method"] for c in found.candidates} == {"euler", "rk4"}
    for candidate, result in zip(found.candidates, found.results, strict=True):
        assert (result.state == "failed") == (candidate.values["method"] == "rk4")
        assert ("expected a step > 0 for rk4" in result.note) == (result.state == "failed")
    assert "cannot be trained" in said[0]
    planned = SearchPlan.make(karate(), trials=5, **options).round_of(found.candidates)
    assert sum(len(part.candidates) for part in in_pieces(planned)) == 5


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"trials": 0}, InvalidArgument, "a whole number >= 1 for trials, got 0"),
        ({"round_size": 0}, InvalidArgument, "a whole number >= 1 for round_size, got 0"),
        ({"trials": 2.5}, InvalidArgument, "a whole number >= 1 for trials, got 2.5"),
        ({"seed": -1}, InvalidArgument, "a whole number >= 0 for seed, got -1"),
        ({"base": Config().updated({"reaction": "BSS"})}, LanguageError, "unknown name 'BSS'"),
        ({"splits": []}, InvalidArgument, "got none"),
        ({"splits": [0.5]}, InvalidArgument, "a whole number >= 0 for a split, got 0.5"),
        ({"splits": [99]}, InvalidArgument, "expected a split among"),
        ({"sampler": "grid"}, UnknownName, "sampler"),
        ({"base": 3}, InvalidArgument, "expected a Config or the name of a network, got int"),
        ({"base": "gnc"}, UnknownName, "gcn"),
        ({"fixed": "hidden"}, InvalidArgument, "expected settings by their names, .*, got 'hidden'"),
        ({"space": 3}, InvalidArgument, "expected a space: .*, got 3"),
        ({"space": {"hidden": [4, 8]}}, UnknownName, "section of the space given"),
        ({"engine": 3}, InvalidArgument, "expected an engine, or a name among local, ray, got 3"),
        ({"splits": 3}, InvalidArgument, "expected a list of splits of karate, got 3"),
        ({"splits": "01"}, InvalidArgument, "expected a list of splits of karate, got '01'"),
        ({"trials": True}, InvalidArgument, "a whole number >= 1 for trials, got True"),
        ({"halving": "no"}, InvalidArgument, "expected True or False for halving, got 'no'"),
        ({"space": "huge"}, UnknownName, "space"),
        (
            {
                "space": {"settings": {"patience": [0, 5], "dropout": {"choices": [0.1], "when": {"patience": 5}}}},
                "fixed": {"patience": 0},
            },
            InvalidArgument,
            "nothing to search",
        ),
        ({"space": "paper"}, UnknownName, "setting of mlp"),
        ({"fixed": dict.fromkeys(("hidden",), 8) | {"learning_rate": 0.1, "weight_decay": 0.0, "dropout": 0.0,
                                                    "input_dropout": 0.0}}, InvalidArgument, "nothing to search"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        quick(**options)


@pytest.mark.parametrize("data", [None, "karate", 3, [1, 2]])
def test_what_is_no_data_set_is_refused(data: Any) -> None:
    trials = make_trials(MLP["base"], [0])
    for work in (
        lambda: search(data, trials=1),
        lambda: discover(data, budget=1),
        lambda: train(data, trials),
        lambda: train_decoupled(data, trials),
        lambda: Ensemble(data, trials),
    ):
        with pytest.raises(InvalidArgument, match=r"expected a data set, gread\.NodeData, got "):
            work()


def test_a_network_by_name_and_a_space_as_a_mapping_are_taken() -> None:
    found = quick(2, base="gcn", space={"settings": {"learning_rate": [0.01, 0.02]}})
    assert found.best.model.model == "gcn"
    assert {c.values["learning_rate"] for c in found.candidates} <= {0.01, 0.02}


def test_numbers_of_numpy_are_taken_and_every_split_once() -> None:
    made = plan(np.int64(2), seed=np.int64(3), splits=[np.int64(1), 0, 1])
    assert (made.splits, made.trials, made.seed) == ((1, 0), 2, 3)
    assert made.digest == plan(2, seed=3, splits=[1, 0]).digest


def test_splits_without_validation_nodes_are_refused() -> None:
    data = karate()
    none = np.zeros_like(data.masks.val)
    bare = replace(data, masks=Masks(data.masks.train, none, data.masks.test))
    with pytest.raises(InvalidArgument, match="validation nodes in split 0"):
        search(bare, trials=2, **MLP)


def test_epochs_that_are_searched_have_a_column_beside_those_that_were_trained() -> None:
    space = read_space("[settings]\nepochs = [40, 60]\nlearning_rate = { low = 1e-3, high = 6e-2 }\n", "epochs")
    rows = search(karate(), trials=6, space=space, halving=True, **MLP).rows()
    assert list(rows[0])[:6] == [*searching.COLUMNS, "epochs_setting"]
    pruned = [row for row in rows if row["state"] == "pruned"]
    assert pruned
    assert all(row["epochs"] == 20 and row["epochs_setting"] in (40, 60) for row in pruned)


@pytest.mark.slow
@pytest.mark.parametrize("halving", [False, True])
def test_epochs_are_those_that_patience_left_whenever_somebody_looks(
    monkeypatch: pytest.MonkeyPatch, halving: bool
) -> None:
    """Each training alone, looked at after every epoch, says how long it is; the longest of a trial's counts."""
    fixed = {"epochs": 60, "patience": 3, "hidden": 8}
    found = quick(4, fixed=fixed, halving=halving, round_size=1)
    for result in found.results:
        alone = [Ensemble(karate(), [trial]) for trial in make_trials(found.config(result.number), [0, 1, 2])]
        for ensemble in alone:
            while not ensemble.is_done:
                ensemble.advance(1)
        assert result.epochs == max(ensemble.epoch for ensemble in alone) < 60
    monkeypatch.setattr(batch_queue, "epochs_within", lambda seconds, each: 1)
    again = quick(4, fixed=fixed, halving=halving, round_size=1)
    assert [r.epochs for r in again.results] == [r.epochs for r in found.results]


# ---------------------------------------------------------------------- optuna
@pytest.mark.slow
def test_samplers_see_the_results(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    options: dict[str, Any] = {"trials": 15, "round_size": 12, "fixed": {"epochs": 20, "hidden": 8}}
    random, tpe = (quick(sampler=name, folder=tmp_path / name, **options) for name in ("random", "tpe"))
    assert [c.values for c in random.candidates[:10]] == [c.values for c in tpe.candidates[:10]]
    assert [c.values for c in random.candidates[12:]] != [c.values for c in tpe.candidates[12:]]
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage = JournalStorage(JournalFileBackend(str(tmp_path / "tpe" / searching.JOURNAL)))
    study = optuna.load_study(study_name="search", storage=storage)
    assert study.best_value == tpe.chosen.val_accuracy
    assert study.best_trial.number == tpe.chosen.number
    assert set(tpe.importance) == {"learning_rate", "weight_decay", "input_dropout", "dropout"}
    assert sum(tpe.importance.values()) == pytest.approx(1)


def test_importance_finds_the_setting_that_matters() -> None:
    text = "[settings]\nlearning_rate = { low = 1e-3, high = 1e-1 }\nweight_decay = { low = 0.0, high = 0.1 }\n"
    ledger = ask_tell.Ledger(read_space(text, "two").of(Config()), Config(), "random", 0)
    results = [
        TrialResult(c.number, "complete", 200, (float(c.values["learning_rate"]),), (0.0,)) for c in ledger.ask(60)
    ]
    ledger.tell(results)
    assert ledger.importance()["learning_rate"] > 0.8
    assert ask_tell.Ledger(find_space("small").of(Config()), Config(), "random", 0).importance() == {}


def test_importance_is_not_told_where_no_setting_could_matter() -> None:
    ledger = ask_tell.Ledger(read_space("[settings]\nhidden = [4]\n", "one").of(Config()), Config(), "random", 0)
    values = [0.5 + 0.1 * (c.number % 2) for c in ledger.ask(20)]
    ledger.tell([TrialResult(k, "complete", 200, (value,), (0.0,)) for k, value in enumerate(values)])
    assert ledger.importance() == {}


def test_cmaes_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "cmaes" else found(name))
    with pytest.raises(MissingDependency, match=r"rdgraph\[cmaes\]"):
        quick(3, sampler="cmaes")


def test_cmaes_draws_the_same_again_and_learns() -> None:
    """The first round is drawn at random, later ones from what it told."""
    pytest.importorskip("cmaes")
    first, again = (quick(12, sampler="cmaes", round_size=4) for _ in range(2))
    assert [c.values for c in first.candidates] == [c.values for c in again.candidates]
    assert len(first.results) == 12
    chance = quick(12, sampler="random", round_size=4)
    rates = [[c.values["learning_rate"] for c in found.candidates] for found in (first, chance)]
    assert all(a != b for a, b in zip(rates[0][4:], rates[1][4:], strict=True))


def test_a_round_is_cut_where_batches_are_not() -> None:
    planned = Search(plan(6, fixed={"epochs": 20}, round_size=6), None).plan_round()
    assert planned is not None
    parts = rounds.in_pieces(planned)
    widths = [{c.config.model.hidden for c in part.candidates} for part in parts]
    assert len(parts) > 1
    assert all(len(own) == 1 for own in widths)
    assert sorted(c.number for part in parts for c in part.candidates) == list(range(6))
    together = train_round(karate(), planned, device="cpu")
    apart = [r for part in parts for r in train_round(karate(), part, device="cpu")]
    assert sorted(apart, key=lambda r: r.number) == together
    assert rounds.in_pieces(replace(planned, halving=True)) == [replace(planned, halving=True)]
