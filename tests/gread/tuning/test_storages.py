"""Trials in a database: the same search as in a journal, whatever cuts it off; SQLite, and a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.tuning import ask_tell, rounds
from gread.tuning.ask_tell import Ledger, close_storage, exclusive, open_storage, public_url, recorded_candidate
from gread.tuning.searching import JOURNAL, Found, Search, SearchPlan, search
from gread.tuning.space import find_space
from rdgraph.errors import FileError, InvalidArgument, MissingDependency
from tests.gread.tuning.postgres_server import free_port, postgres_server, server_folder

OPTIONS: dict[str, Any] = {
    "base": Config.of("mlp", hidden=8), "fixed": {"epochs": 20, "hidden": 8}, "splits": [0, 1], "trials": 5,
    "round_size": 2, "sampler": "tpe", "space": "small",
}  # fmt: skip


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    pytest.importorskip("psycopg")
    programs = server_folder()
    if programs is None:
        pytest.skip("no PostgreSQL server; Debian's package postgresql brings one")
    with postgres_server(programs) as url:
        yield url


@pytest.fixture(scope="module")
def expected() -> Found:
    return search(karate(), device="cpu", **OPTIONS)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/trials.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


def plan(**options: Any) -> SearchPlan:
    return SearchPlan.make(karate(), **(OPTIONS | options))


class Cut(Exception):
    """A process that dies."""


@pytest.mark.slow
def test_a_database_holds_the_same_search_whatever_cuts_it_off(
    url: str, tmp_path: Path, expected: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 3

    def dying(self: Any, result: Any, candidate: Any = None) -> None:
        nonlocal calls
        calls -= 1
        if not calls:
            raise Cut
        finish(self, result, candidate)

    finish, options = ask_tell.Ledger._finish, {**OPTIONS, "storage": url, "device": "cpu"}
    with monkeypatch.context() as patched:
        patched.setattr(ask_tell.Ledger, "_finish", dying)
        with pytest.raises(Cut):
            search(karate(), folder=tmp_path / "run", **options)
    found = search(karate(), folder=tmp_path / "run", **options)
    assert found.results == expected.results
    assert [c.record() for c in found.candidates] == [c.record() for c in expected.candidates]
    assert not list((tmp_path / "run").glob("journal*"))
    with monkeypatch.context() as patched:  # it is in the database: another folder finds it finished
        patched.setattr(rounds, "train_round", lambda *args, **kwargs: pytest.fail("trained again"))
        again = search(karate(), folder=tmp_path / "other", **options)
    assert again.results == expected.results
    assert recorded_candidate(url, 3, plan().study_name).config == expected.config(3)


def test_searches_of_one_database_are_kept_apart(url: str, tmp_path: Path) -> None:
    one, two = plan(seed=5), plan(seed=6)
    assert one.study_name != two.study_name
    first = Search(one, tmp_path / "one", storage=url).plan_round()
    second = Search(two, tmp_path / "two", storage=url).plan_round()
    assert first is not None
    assert second is not None
    assert [c.number for c in first.candidates] == [c.number for c in second.candidates] == [0, 1]
    assert first.candidates[0].values != second.candidates[0].values
    assert Search(one, tmp_path / "one", storage=url).plan_round() == first


def test_two_processes_do_not_search_the_same(url: str, tmp_path: Path) -> None:
    made = plan(seed=7)
    with exclusive(url, made.study_name), pytest.raises(FileError, match="another process is searching"):
        Search(made, tmp_path, storage=url).plan_round()
    assert Search(made, tmp_path, storage=url).plan_round() is not None


def test_optuna_reads_what_is_stored(url: str, tmp_path: Path, expected: Found) -> None:
    import optuna

    search(karate(), folder=tmp_path, storage=url, device="cpu", **OPTIONS)
    storage = open_storage(url)
    study = optuna.load_study(study_name=plan().study_name, storage=storage)
    assert study.best_value == expected.chosen.val_accuracy
    assert len(study.trials) == 5
    close_storage(storage)


def test_passwords_are_not_written_down() -> None:
    assert public_url("postgresql://ada:secret@host:5/trials") == "postgresql://ada@host:5/trials"
    assert public_url("sqlite:///a/b.db") == "sqlite:///a/b.db"


def test_what_is_no_storage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="expected a url such as"):
        Search(plan(), tmp_path, storage="nonsense")
    with pytest.raises(MissingDependency, match="driver of nosuch://"):
        Search(plan(), tmp_path, storage="nosuch://host/x")
    with pytest.raises(InvalidArgument, match="folder"):
        Search(plan(), None, storage="sqlite:///x.db")
    with pytest.raises(FileError, match="expected the study"):
        recorded_candidate(f"sqlite:///{tmp_path}/empty.db", 0, "nothing")


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    url = f"postgresql://ada:secret@127.0.0.1:{free_port()}/trials"
    with pytest.raises(FileError, match="expected an answer of the storage") as problem:
        Search(plan(), tmp_path, storage=url)
    assert "secret" not in str(problem.value)


@pytest.mark.parametrize("sampler", ["random", "tpe"])
@pytest.mark.parametrize("drawn", range(4))
def test_a_trial_that_was_cut_off_while_it_was_drawn_is_drawn_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampler: str, drawn: int
) -> None:
    """What the trial has already is kept, and the rest is what it would have been."""
    space = find_space("small").of(Config())
    whole = Ledger(space, Config(), sampler, 0).ask(3)
    assert len(whole[2].values) > drawn
    ledger = Ledger(space, Config(), sampler, 0, tmp_path / "journal.log")
    ledger.ask(2)
    suggested, left = ask_tell._suggested, [drawn]

    def until_the_power_fails(*given: Any) -> Any:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return suggested(*given)

    monkeypatch.setattr(ask_tell, "_suggested", until_the_power_fails)
    with pytest.raises(KeyboardInterrupt):
        ledger.ask(1)
    monkeypatch.undo()
    again = Ledger(space, Config(), sampler, 0, tmp_path / "journal.log")
    assert [candidate.record() for candidate in again.pending()] == [candidate.record() for candidate in whole]


@pytest.mark.parametrize("cut", [1, 20, 10_000])
def test_a_journal_whose_last_line_is_torn_goes_on(cut: int, tmp_path: Path, expected: Found) -> None:
    Search(plan(), tmp_path, device="cpu").plan_round()
    journal = tmp_path / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][: -min(cut, len(lines[-1]) - 1)])
    assert Search(plan(), tmp_path, device="cpu").run().results == expected.results
    assert Search(plan(), tmp_path, device="cpu").run().results == expected.results
    assert recorded_candidate(journal, 3).config == expected.config(3)


def test_a_file_of_somebody_else_is_not_cut(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text("notes of a day")
    with pytest.raises(FileError, match="expected a journal of trials"):
        Search(plan(), tmp_path, device="cpu")
    assert (tmp_path / JOURNAL).read_text().startswith("notes of a day")
    (tmp_path / JOURNAL).write_text("not a journal\n{}\n")
    with pytest.raises(FileError, match="expected a journal of trials"):
        recorded_candidate(tmp_path / JOURNAL, 0)
