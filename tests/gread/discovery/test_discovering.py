"""A search over equations: what is trained, how it is resumed, what is drawn beyond the enumeration."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gread import karate
from gread.discovery import discovering, line_sampling
from gread.discovery.discovering import ROUNDS, discover
from gread.discovery.discovery_plan import MERGED, NOT_TRIED, Discovered
from gread.discovery.equation_batches import EquationResult, _prepared, line_config
from gread.discovery.term_grammar import Line, find_terms
from gread.models.resolution import link_of
from gread.settings.config import Config
from gread.settings.equation_settings import shares_batches
from gread.settings.gread_settings import GreadSettings
from rdgraph.errors import FileError, InvalidArgument, MissingDependency, UnknownName
from tests.paths import ROOT

QUICK = {"epochs": 20, "hidden": 4, "adjacency": "original"}


def pretended(data: Any, lines: list[tuple[int, Line]], base: Config, **options: Any) -> list[EquationResult]:
    """A stand-in for training: an accuracy that follows from the text, so that two runs agree."""
    found = []
    for number, line in lines:
        value = (sum(map(ord, line.text)) % 97) / 97
        split = (value,) * len(options["splits"])
        found.append(
            EquationResult(number, "complete", 20, split, split, coefficients=dict.fromkeys(line.coefficients, 0.5))
        )
    return found


def searched(folder: Path | None = None, **options: Any) -> Discovered:
    given: dict[str, Any] = {"terms": "small", "size": 2, "budget": 30, "sampler": "random", "round_size": 7}
    return discover(karate(), splits=[0, 1], device="cpu", folder=folder, **{**given, **options})


def told(found: Discovered) -> list[tuple[Any, ...]]:
    return [(t.line.text, t.safety.state, t.number, t.draw, t.into) for t in found.tried]


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovering, "train_lines", pretended)


def test_a_real_search_on_a_small_set(tmp_path: Path) -> None:
    found = discover(
        karate(), terms="small", size=1, budget=9, fixed=QUICK, splits=[0, 1], round_size=9, device="cpu",
        folder=tmp_path,
    )  # fmt: skip
    assert len(found.results) == found.enumerated == 9
    assert all(r.state in ("complete", "pruned", "diverged") for r in found.results), [r.note for r in found.results]
    assert found.chosen.val_accuracy == max(r.val_accuracy for r in found.results if r.is_eligible)
    assert set(found.coefficients[found.chosen.number]) == {"alpha"}
    rows = {row["equation"]: row for row in found.rows()}
    assert rows["alpha*H**3"]["trained"] == "alpha*tanh(H**3)"
    assert found.best_config.gread.system == found.best.system


def test_declared_signs_are_those_of_the_trained_network() -> None:
    """Free coefficients are free, positive ones in (0, 1), whatever their names and kinds."""
    for name in ("default", "small"):
        grammar = find_terms(name)
        for line in (grammar.line([grammar.terms[0], grammar.terms[-1]]), grammar.line([grammar.terms[-1]])):
            model = line_config(Config(), line).gread
            for letter, term in zip(line.coefficients, line.terms, strict=True):
                link = link_of(model, letter, model.system.letters[letter])
                assert link == ("free" if term.is_free else "sigmoid"), (line.text, letter)


@pytest.mark.usefixtures("pretend")
def test_all_behaviours_of_a_size_come_before_larger_ones() -> None:
    found = searched(budget=48)
    sizes = [t.line.size for t in found.tried]
    assert len(found.results) == 48
    assert (found.enumerated, found.distinct) == (44, 40)
    assert sizes == sorted(sizes[:40]) + sizes[40:]
    assert [t.draw for t in found.tried[:40]] == [-1] * 40
    assert all(size >= 3 for size in sizes[40:])
    known = [found.behaviours.representative(t.safety.line).text for t in found.trained.values()]
    assert len(set(known)) == len(known)


@pytest.mark.usefixtures("pretend")
def test_a_budget_below_the_enumeration_takes_a_random_sample_of_the_largest() -> None:
    found, other = searched(budget=20), searched(budget=20, seed=1)
    first = [t.line.text for t in found.tried]
    assert [t.line.size for t in found.tried] == [1] * 9 + [2] * 11
    assert first[:9] == [t.line.text for t in other.tried][:9]
    assert first[9:] != [t.line.text for t in other.tried][9:]
    states = [row["state"] for row in found.rows()]
    assert states.count(NOT_TRIED) == 40 - 20
    assert states.count(MERGED) == len(found.behaviours.merges) == 4


@pytest.mark.usefixtures("pretend")
@pytest.mark.parametrize("sampler", ["random", "tpe", "evolution"])
def test_a_search_that_was_cut_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampler: str) -> None:
    whole = searched(tmp_path / "whole", budget=60, sampler=sampler)
    calls = 0

    def stopped(*args: Any, **options: Any) -> list[EquationResult]:
        nonlocal calls
        calls += 1
        if calls > 7:
            raise KeyboardInterrupt
        return pretended(*args, **options)

    monkeypatch.setattr(discovering, "train_lines", stopped)
    with pytest.raises(KeyboardInterrupt):
        searched(tmp_path / "cut", budget=60, sampler=sampler)
    assert len(list((tmp_path / "cut" / ROUNDS).glob("*.json"))) == 7
    monkeypatch.setattr(discovering, "train_lines", pretended)
    again = searched(tmp_path / "cut", budget=60, sampler=sampler)
    assert len(again.results) == len(whole.results) == 60
    assert told(again)[:49] == told(whole)[:49]
    if sampler == "random":
        assert told(again) == told(whole)
        assert again.results == whole.results


@pytest.mark.usefixtures("pretend")
def test_a_search_that_is_read_knows_what_was_merged_while_drawing(tmp_path: Path) -> None:
    whole = searched(tmp_path, budget=90)
    again = searched(tmp_path, budget=90)
    assert again.behaviours.counts() == whole.behaviours.counts()
    assert sorted(again.behaviours.merges) == sorted(whole.behaviours.merges)
    assert len(whole.behaviours.merges) > 4  # more than the enumeration has


@pytest.mark.usefixtures("pretend")
def test_a_finished_search_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = searched(tmp_path)
    monkeypatch.setattr(discovering, "train_lines", None)
    again = searched(tmp_path)
    assert told(first) == told(again)
    assert first.results == again.results
    assert first.rows()[0] == again.rows()[0]


@pytest.mark.usefixtures("pretend")
def test_another_search_in_the_folder_is_refused(tmp_path: Path) -> None:
    searched(tmp_path)
    with pytest.raises(FileError, match="another search"):
        searched(tmp_path, budget=31)
    (tmp_path / ROUNDS / "0000.json").write_text("{}")
    with pytest.raises(FileError, match="a round of equations"):
        searched(tmp_path)


@pytest.mark.usefixtures("pretend")
def test_without_optuna_enumeration_and_random_draws_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise MissingDependency("expected optuna")

    monkeypatch.setattr(line_sampling, "import_optuna", missing)
    assert len(searched(budget=20, sampler="tpe").results) == 20
    assert len(searched(budget=45, sampler="random").results) == 45
    with pytest.raises(MissingDependency, match="choose the sampler random"):
        searched(budget=45, sampler="tpe")


@pytest.mark.usefixtures("pretend")
def test_a_search_of_all_sizes_that_wants_more_says_so() -> None:
    grammar = replace(find_terms("small"), names=("alpha", "beta"))
    with pytest.raises(InvalidArgument, match="more than 2"):
        searched(terms=grammar, budget=50)


def test_closed_reactions_are_stepped_with_the_others() -> None:
    """A splitting would be a batch of its own; steps are shared."""
    found = [_prepared(0, text, Config()) for text in ("alpha*A@H - gamma*H**3", "alpha*A@H", "alpha*tanh(A@H)")]
    assert all(isinstance(one, GreadSettings) and shares_batches(one) for one in found)
    assert [one.method for one in found if isinstance(one, GreadSettings)] == ["rk4", "exact", "rk4"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"sampler": "tpee"}, UnknownName, "tpe"),
        ({"size": 0}, InvalidArgument, "a size between 1 and 4"),
        ({"size": 5}, InvalidArgument, "a size between 1 and 4"),
        ({"budget": 0}, InvalidArgument, "at least 1"),
        ({"base": Config.of("gcn")}, InvalidArgument, "around an equation"),
    ],
)
def test_wrong_choices_are_told(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        searched(**options)


@pytest.mark.deep
@pytest.mark.slow
def test_kill_9_costs_one_round(tmp_path: Path) -> None:
    """A search in another process is killed without warning, and goes on to the results of one that was not."""
    program = (
        "from gread import karate, discover\n"
        f"discover(karate(), terms='small', size=2, budget=24, fixed={QUICK!r}, splits=[0, 1], round_size=6, "
        f"sampler='random', device='cpu', folder={str(tmp_path / 'killed')!r})\n"
    )
    running = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    begun, rounds = time.monotonic(), tmp_path / "killed" / ROUNDS
    while len(list(rounds.glob("*.json"))) < 2 and time.monotonic() - begun < 110:
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert 2 <= len(list(rounds.glob("*.json"))) < 4
    options: dict[str, Any] = {"fixed": QUICK, "budget": 24, "round_size": 6}
    again, whole = (searched(tmp_path / name, **options) for name in ("killed", "whole"))
    assert told(again) == told(whole)
    assert [r.record() for r in again.results] == [r.record() for r in whole.results]
