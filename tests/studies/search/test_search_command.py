"""`rdgraph search`: the folder, the report, three places, what is refused."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.settings.presets import BORROWED, find_preset, find_published
from gread.settings.trials import make_trials
from gread.training.trainer import train
from gread.tuning import rounds, searching
from studies.cli import app as cli
from studies.runs.tables import read_rows
from studies.search import study
from studies.search.tasks import SearchRequest, base_config, make_task
from tests.studies.own_graph import club_files

QUICK = [
    "--dataset",
    "karate",
    "--model",
    "mlp",
    "--space",
    "small",
    "--set",
    "epochs=20",
    "--set",
    "hidden=8",
    "--splits",
    "0,1",
    "--device",
    "cpu",
]


def run(*words: str) -> Result:
    return CliRunner().invoke(cli.app, ["search", *words])


def done(*words: str) -> Result:
    result = run(*words)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search") / "run"
    done(*QUICK, "--trials", "12", "--round", "6", "--sampler", "tpe", "--out", str(folder))
    return folder


def test_the_folder_holds_the_trials_and_the_choice(searched: Path) -> None:
    rows = read_rows(searched / "trials.csv")
    assert [row["trial"] for row in rows] == list(range(12))
    assert list(rows[0])[:5] == ["trial", "state", "epochs", "val_accuracy", "test_accuracy"]
    best = max(rows, key=lambda row: (row["val_accuracy"], -int(row["trial"])))
    config = Config.load(searched / "best.toml")
    assert config.training.learning_rate == best["learning_rate"]
    trained = train(karate(), make_trials(config, [0, 1]), device="cpu")
    assert trained.val_accuracy.mean() == pytest.approx(best["val_accuracy"])
    assert trained.test_accuracy.mean() == pytest.approx(best["test_accuracy"])
    splits = [row["test_accuracy"] for row in read_rows(searched / "results.csv") if row["trial"] == best["trial"]]
    assert splits == pytest.approx(trained.test_accuracy.tolist())
    assert (searched / "state").read_text() == "done\n"
    assert tomllib.loads((searched / "config.toml").read_text())["searched"]["dropout"] == "0.0 to 0.6"


def test_the_report_has_the_gap_the_best_ten_and_the_importance(searched: Path) -> None:
    page = (searched / "report.html").read_text()
    for text in ("selection gap", "best 10 trials", "PED-ANOVA", "no result", "rdgraph search --dataset karate"):
        assert text in page, text
    gap = (searched / "figures" / "selection_gap.csv").read_text().splitlines()
    assert gap[0] == "trials,by_validation,by_test,gap"
    assert len(gap) == 13
    assert len(read_rows(searched / "best_trials.csv")) == 10
    choices = read_rows(searched / "choices.csv")
    assert choices[-1]["test"] >= choices[0]["test"]
    assert all(row["low"] <= row["high"] for row in choices)
    assert (searched / "figures" / "importance.png").is_file()


def test_a_finished_search_is_only_read(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (searched / "report.html").read_bytes()
    monkeypatch.setattr(searching, "Ledger", lambda *args: pytest.fail("opened again"))
    result = done(*QUICK, "--trials", "12", "--round", "6", "--sampler", "tpe", "--out", str(searched))
    assert "12 trials; trial" in result.stdout
    assert (searched / "report.html").read_bytes() == before


def test_an_interrupted_search_goes_on_with_the_same_command(
    searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*QUICK, "--trials", "12", "--round", "6", "--sampler", "tpe", "--out", str(tmp_path / "run")]
    real, calls = rounds.train_round, 0

    def stopped(*args: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return real(*args, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(rounds, "train_round", stopped)
        result = run(*words)
    assert result.exit_code == 130
    assert (tmp_path / "run" / "state").read_text() == "interrupted\n"
    assert len(read_rows(tmp_path / "run" / "trials.csv")) == 6
    assert Config.load(tmp_path / "run" / "best.toml").model.hidden == 8
    done(*words)
    assert (tmp_path / "run" / "trials.csv").read_text() == (searched / "trials.csv").read_text()
    assert (tmp_path / "run" / "best.toml").read_text() == (searched / "best.toml").read_text()


def test_another_search_does_not_get_the_folder(searched: Path) -> None:
    result = run(*QUICK, "--trials", "13", "--round", "6", "--sampler", "tpe", "--out", str(searched))
    assert "trials = 12 there, 13 here" in str(result.exception)
    other = str(run("--dataset", "digits", "--reaction", "BS", "--device", "cpu", "--out", str(searched)).exception)
    assert "dataset = 'karate' there, 'digits' here" in other
    assert re.search(r" and \d+ more; resume with the same settings", other)
    assert len(other) < 600 + len(str(searched))


def test_a_trial_is_printed_and_trained_again(searched: Path, tmp_path: Path) -> None:
    shown = tmp_path / "trial.toml"
    shown.write_text(done("--show", "4", "--out", str(searched)).stdout)
    row = read_rows(searched / "trials.csv")[4]
    trained = train(karate(), make_trials(Config.load(shown), [0, 1]), device="cpu")
    assert trained.val_accuracy.mean() == pytest.approx(row["val_accuracy"])
    assert "among 0..11, got 12" in str(run("--show", "12", "--out", str(searched)).exception)
    assert "got none" in str(run("--show", "0", "--out", str(tmp_path)).exception)
    assert "--out" in str(run("--show", "0").exception)


def test_planned_run_and_told_is_the_same(searched: Path, tmp_path: Path) -> None:
    same = [*QUICK, "--trials", "12", "--round", "6", "--sampler", "tpe", "--out", str(tmp_path / "run")]
    for number in range(2):
        plan = tmp_path / f"plan{number}.json"
        assert "with 6 trials" in done(*same, "--plan", str(plan)).stdout
        done("--run", str(plan), "--device", "cpu")
        told = done(*same, "--tell", str(tmp_path / f"plan{number}.results.json")).stdout
        assert ("6 trials left" if number == 0 else "report.html") in told
    assert (tmp_path / "run" / "trials.csv").read_text() == (searched / "trials.csv").read_text()
    assert not list(tmp_path.glob("*.checkpoints"))
    assert "complete" in done(*same, "--plan", str(tmp_path / "more.json")).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no data set is given"),
        (["--dataset", "karate", "--model", "gcn", "--reaction", "BS"], "--reaction and --model exclude"),
        (["--dataset", "karate", "--model", "gcn", "--space", "paper"], "setting of gcn, got 'adjacency'"),
        (["--dataset", "karate", "--space", "none"], "expected a space"),
        (["--dataset", "karate", "--sampler", "grid"], "expected a sampler"),
        (["--dataset", "karate", "--set", "hiden=8"], "hiden"),
        (["--dataset", "karate", "--splits", "77"], "splits among"),
        (["--dataset", "karate", "--plan", "a", "--show", "1"], "--plan, --run, --tell and --show exclude"),
        (["--dataset", "karate", "--splits", ""], "expected splits as all"),
        (["--dataset", "karate", "--round", "0"], "a whole number >= 1 for round_size, got 0"),
        (["--dataset", "karate", "--seed", "-1"], "a whole number >= 0 for seed, got -1"),
        (["--dataset", "karate", "--reaction", "BSS"], "unknown name 'BSS'"),
        (["--dataset", "karate", "--set", "method=eulr"], "did you mean 'euler'"),
    ],
)
def test_what_is_refused(words: list[str], message: str, tmp_path: Path) -> None:
    result = run(*words, "--device", "cpu", "--out", str(tmp_path / "none"))
    assert message in str(result.exception)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--run", "plan.json", "--dataset", "karate"], "--dataset has no effect with --run"),
        (["--run", "plan.json", "--trials", "50"], "--trials has no effect with --run"),
        (["--run", "plan.json", "--set", "hidden=8"], "--set has no effect with --run"),
        (["--run", "plan.json", "--out", "here"], "--out has no effect with --run"),
        (["--show", "1", "--out", "here", "--seed", "0"], "--seed has no effect with --show"),
        (["--show", "1", "--out", "here", "--edges", "e.csv"], "--edges has no effect with --show"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(words: list[str], option: str) -> None:
    assert f"{option}; leave it out" in str(run(*words).exception)


def test_a_search_that_cannot_begin_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, lost = ["--out", str(tmp_path / "run")], f"sqlite:///{tmp_path}/none/trials.db"
    plan, missing = str(tmp_path / "plan.json"), str(tmp_path / "missing.json")
    for words, message in (
        (["--storage", lost], "expected an answer of the storage"),
        (["--storage", lost, "--plan", plan], "expected an answer of the storage"),
        (["--storage", "nonsense"], "expected a url"),
        (["--tell", missing], "missing.json"),
        (["--storage", f"sqlite:///{tmp_path}/trials.db", "--tell", missing], "missing.json"),
    ):
        assert message in str(run(*QUICK, *words, *out).exception)
        assert not (tmp_path / "run").exists()
    done(*QUICK, "--trials", "2", "--plan", plan, "--out", str(tmp_path / "planned"))
    done("--run", plan, "--device", "cpu")
    told = run(*QUICK, "--trials", "2", "--tell", str(tmp_path / "plan.results.json"), *out)
    assert "no search with planned trials" in str(told.exception)
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "cmaes" else found(name))
    assert "rdgraph[cmaes]" in str(run(*QUICK, "--sampler", "cmaes", *out).exception)
    assert not (tmp_path / "run").exists()


def test_the_paper_space_takes_what_it_leaves_open_from_the_authors() -> None:
    released = find_preset("authors", "BS", "texas").config.gread
    base, source = base_config(SearchRequest("texas", reaction="ST"))
    assert not released.relu
    assert [getattr(base.gread, name) for name in BORROWED] == [getattr(released, name) for name in BORROWED]
    assert base.gread.hidden == Config().model.hidden
    assert "gread_params.py" in source
    for request in (SearchRequest("karate"), SearchRequest("texas", space="wide")):
        assert base_config(request) == (Config(), "the defaults of gread")
    assert base_config(SearchRequest("texas", preset="paper"))[0] == find_preset("paper", "BS", "texas").config


def test_a_setting_that_is_given_is_not_searched() -> None:
    task = make_task(SearchRequest("karate", reaction="ST", settings={"time": "2", "method": "rk4"}))
    assert (task.plan.base.gread.reaction, task.plan.base.gread.time) == ("ST", 2.0)
    searched = {s.name: s for s in task.plan.space.searched}
    assert not {"time", "method"} & set(searched)
    drawn = task.plan.space.draw(task.plan.base, lambda s: s.distribution.examples[0])
    assert drawn["step"] == 0.1
    assert task.subject == "ST"


def test_the_published_number_stands_beside() -> None:
    for options, mean in (({"model": "gcn"}, find_published("GCN", "cora")), ({}, find_published("GREAD-BS", "cora"))):
        task = make_task(SearchRequest("karate", space="small", **options))
        assert task.published is None
        assert mean is not None
        assert replace(task, request=replace(task.request, dataset="cora")).published == mean


@pytest.mark.parametrize(("splits", "expected"), [("0", "undecided"), ("0,1,2", "fails")])
def test_one_split_has_no_interval_and_decides_nothing(splits: str, expected: str, tmp_path: Path) -> None:
    request = SearchRequest("karate", model="mlp", space="small", trials=2, splits=splits, settings={"epochs": "20"})
    task = make_task(request)
    found = searching.Search(task.plan, tmp_path, device="cpu").run()
    beside = replace(task, request=replace(request, dataset="cora"))
    high = replace(find_published("MLP", "cora"), mean=101.0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(beside), "published", high)
        ((_, answer, evidence),) = study.verdicts(beside, found)
        told = " ".join(study.sentences(beside, found))
    assert answer == expected
    is_alone = splits == "0"
    assert ("no interval" in evidence) == ("no interval" in told) == is_alone
    assert all((row["low"] == "") == (row["high"] == "") == is_alone for row in study.choice_rows(found.results, 1.0))


def test_trials_in_a_database_are_found_again(tmp_path: Path) -> None:
    words = [*QUICK, "--trials", "3", "--storage", f"sqlite:///{tmp_path}/trials.db", "--out", str(tmp_path / "run")]
    done(*words)
    settings = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert settings["storage"] == f"sqlite:///{tmp_path}/trials.db"
    assert settings["study_in_storage"].startswith("karate-")
    assert not (tmp_path / "run" / "journal.log").exists()
    assert "journal.log" not in (tmp_path / "run" / "report.html").read_text()
    shown = tomllib.loads(done("--show", "2", "--out", str(tmp_path / "run")).stdout)
    assert shown["training"]["learning_rate"] == read_rows(tmp_path / "run" / "trials.csv")[2]["learning_rate"]
    other = run(*words[:-4], "--out", str(tmp_path / "run"))  # the same search, kept in another place
    assert other.exit_code != 0


def test_one_trial_on_one_split_is_told_as_such(tmp_path: Path) -> None:
    words = [*QUICK, "--splits", "0", "--trials", "1", "--out", str(tmp_path / "run")]
    planned = done(*words, "--plan", str(tmp_path / "plan.json")).stdout
    assert "with 1 trial;" in planned
    told = done(*words).output
    for text in ("1 random trial in", "1 split each", "1 of 1 trial", "1 trial; trial 0"):
        assert text in told
    assert "1 trial on 1 split: 1 complete." in (tmp_path / "run" / "report.html").read_text()
    assert "1 trial done" in done(*words, "--plan", str(tmp_path / "plan.json")).stdout


def test_an_engine_that_there_is_not_is_refused(tmp_path: Path) -> None:
    refused = run(*QUICK, "--engine", "slurm", "--out", str(tmp_path / "run"))
    assert "expected a name of an engine" in str(refused.exception)
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------------- a graph of one's own
def test_settings_for_a_graph_of_ones_own_are_searched_here_and_in_three_places(tmp_path: Path) -> None:
    edges, nodes = club_files(tmp_path)
    files = ["--edges", str(edges), "--nodes", str(nodes), "--standardise"]
    words = [*files, *QUICK[2:], "--trials", "3"]
    here, there, plan = tmp_path / "here", tmp_path / "there", tmp_path / "plan.json"
    done(*words, "--out", str(here))
    head = tomllib.loads((here / "config.toml").read_text())
    assert (head["dataset"], head["edges"], head["standardise"]) == ("club", str(edges), True)
    assert f"rdgraph search --edges {edges} --nodes {nodes} --standardise" in (here / "report.html").read_text()
    done(*words, "--out", str(there), "--plan", str(plan))
    refused = run("--run", str(plan), "--device", "cpu")
    assert "club" in str(refused.exception), "nobody said where the graph lies"
    done("--run", str(plan), "--device", "cpu", *files)
    done(*words, "--out", str(there), "--tell", str(plan.with_name("plan.results.json")))
    assert read_rows(there / "trials.csv") == read_rows(here / "trials.csv")


def test_a_plan_for_standardised_features_is_run_with_them(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    done(*QUICK, "--standardise", "--trials", "2", "--out", str(tmp_path / "run"), "--plan", str(plan))
    assert "other content" in str(run("--run", str(plan), "--device", "cpu").exception)
    done("--run", str(plan), "--device", "cpu", "--standardise")


@pytest.mark.parametrize(
    ("words", "needle"),
    [
        ([], "--dataset digits needs no download"),
        (["--edges", "e.csv"], "add --nodes"),
        (["--dataset", "karate", "--edges", "e.csv", "--nodes", "n.csv"], "--dataset and --edges exclude"),
        (["--dataset", "karate", "--label-column", "kind"], "--label-column is for files"),
    ],
)
def test_a_search_knows_its_data_or_says_what_is_missing(words: list[str], needle: str) -> None:
    assert needle in str(run(*words, "--device", "cpu").exception)
