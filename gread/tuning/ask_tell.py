"""`Ledger`: the trials of a search in an Optuna storage; importing this module does not import optuna.

The storage is a journal file or a database, readable by samplers, pruners and optuna-dashboard. The random numbers of a
trial depend only on the seed and its number, so an interrupted search continues as if it had not been interrupted.
"""

from __future__ import annotations

import importlib.util
import json
import os
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from gread.settings.config import Config
from gread.tuning.candidates import FAILED, PRUNED, Candidate, TrialResult
from gread.tuning.space import Choice, Searched, Space, Value
from rdgraph.errors import FileError, InvalidArgument, MissingDependency, RdgraphError, UnknownName
from rdgraph.files import file_lock, unwritable

if TYPE_CHECKING:
    import optuna
    from optuna.study import Study


# ---------------------------------------------------------------------- storages
# The storage of the trials of a search: a journal file, or the url of any database that Optuna supports.

#: The driver of `postgresql://` differs between versions of SQLAlchemy; here it is psycopg, which the extra installs.
DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
#: The start of every line of a journal.
LINE = b'{"op_code":'
#: Connection options: seconds to wait while another process writes to a database file; text is UTF-8 for any server.
CONNECTIONS: dict[str, dict[str, Any]] = {"sqlite": {"timeout": 60.0}, "postgresql": {"client_encoding": "utf8"}}


def parsed_url(url: str) -> Any:
    """The url as a SQLAlchemy object, with the default driver if it names none.

    >>> parsed_url("postgresql://ada:secret@localhost/trials").drivername
    'postgresql+psycopg'
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InvalidArgument(
            f"expected a url such as sqlite:///trials.db or postgresql://USER@HOST/DATABASE, got {url!r}"
        ) from None
    return parsed.set(drivername=DRIVERS.get(parsed.drivername, parsed.drivername))


def public_url(url: str) -> str:
    """A database url without its password, with the driver as given.

    >>> public_url("postgresql://ada:secret@localhost/trials")
    'postgresql://ada@localhost/trials'
    """
    from sqlalchemy.engine import URL

    parsed = parsed_url(url)
    driver = url.partition("://")[0]
    return str(URL.create(driver, parsed.username, None, parsed.host, parsed.port, parsed.database, parsed.query))


def open_storage(location: Path | str | None) -> Any:
    """Open the storage in a journal file, at a url, or in memory."""
    import optuna

    if location is None:
        return optuna.storages.InMemoryStorage()
    return _journal(location) if isinstance(location, Path) else _database(location)


def _database(url: str) -> Any:
    import optuna
    from sqlalchemy.exc import NoSuchModuleError

    parsed = parsed_url(url)
    try:
        options = {"pool_pre_ping": True, "connect_args": CONNECTIONS.get(parsed.get_backend_name(), {})}
        return optuna.storages.RDBStorage(parsed.render_as_string(hide_password=False), engine_kwargs=options)
    except (ImportError, NoSuchModuleError) as problem:
        raise MissingDependency(
            f"expected the driver of {public_url(url)}, got an installation without ({problem}); "
            "pip install 'rdgraph[postgresql]', or the driver of another database"
        ) from None


def close_storage(storage: Any) -> None:
    """Close the connections of a storage, if it has any."""
    if hasattr(storage, "engine"):
        storage.remove_session()
        storage.engine.dispose()


@contextmanager
def reporting_outages(location: Path | str | None) -> Iterator[None]:
    """Within the block, a database that does not answer raises a FileError with its url."""
    if not isinstance(location, str):
        yield
        return
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError) as problem:
        reason = str(problem).strip().splitlines()[0]
        raise FileError(
            f"expected an answer of the storage {public_url(location)}, got {reason}; the same command resumes when it "
            "is available"
        ) from None


@contextmanager
def reporting_damage(location: Path | str | None) -> Iterator[None]:
    """Within the block, a file that is not a journal, or cannot be read or written, raises an error with its name."""
    try:
        yield
    except RdgraphError:
        raise
    except OSError as problem:
        raise unwritable(Path(location or ""), problem) from None
    except (ValueError, LookupError, AssertionError) as problem:
        where = public_url(location) if isinstance(location, str) else location
        raise FileError(f"expected a journal of trials in {where}, got another file ({problem})") from None


@contextmanager
def exclusive(location: Path | str | None, study: str) -> Iterator[None]:
    """Lock a study of a database against other processes; a process that dies releases the lock.

    PostgreSQL uses an advisory lock of a connection, SQLite a lock file; other databases are not locked.
    """
    with ExitStack() as stack:
        if isinstance(location, str):
            parsed = parsed_url(location)
            lock = {"postgresql": _advisory_lock, "sqlite": _file_lock}.get(parsed.get_backend_name())
            if lock is not None and not lock(parsed, study, stack):
                raise FileError(
                    f"another process is searching {study} in {public_url(location)}; wait for it to finish"
                )
        yield


def _advisory_lock(url: Any, study: str, stack: ExitStack) -> bool:
    from sqlalchemy import create_engine, text
    from sqlalchemy.pool import NullPool

    options = CONNECTIONS["postgresql"]
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=options)
    connection = stack.enter_context(engine.connect())
    key = {"key": zlib.crc32(f"rdgraph {study}".encode())}
    return bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), key).scalar())


def _file_lock(url: Any, study: str, stack: ExitStack) -> bool:
    if not url.database or url.database == ":memory:":
        return True
    path = Path(url.database)
    return stack.enter_context(file_lock(path.with_name(f".{path.name}-{study}.lock"), wait=False))


# ---------------------------------------------------------------------- the journal
def _journal(path: Path) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    path.parent.mkdir(parents=True, exist_ok=True)
    lock: Any = _Lock(path.with_name(f".{path.name}.lock"))

    class _Journal(JournalFileBackend):
        """A journal whose lines reach the file at once and survive a kill, but reach the disk only by `sync`.

        Optuna waits for the disk eight times per trial, which takes longer than many trainings.
        """

        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            text = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
            lock.acquire()
            try:
                with path.open("a+b") as file:
                    _drop_torn_line(file)
                    file.write(text.encode())
            finally:
                lock.release()

    return JournalStorage(_Journal(str(path), lock_obj=lock))


def _drop_torn_line(file: BinaryIO) -> None:
    """Remove an incomplete last line, left by a full disk or a power cut, to which the next line would be appended."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    if file.read() in (b"", b"\n"):
        return
    file.seek(0)
    text = file.read()
    start = text.rfind(b"\n") + 1
    if LINE.startswith(text[start:][: len(LINE)]):
        file.truncate(start)


def sync(location: Path | str | None) -> None:
    """Wait until a journal is on disk; databases do this themselves."""
    if isinstance(location, Path):
        with location.open("ab") as file:
            os.fsync(file.fileno())


class _Lock:
    """A file lock as optuna's journal wants it, held from `acquire` to `release`."""

    def __init__(self, path: Path) -> None:
        self._path, self._held = path, ExitStack()

    def acquire(self) -> bool:
        return self._held.enter_context(file_lock(self._path))

    def release(self) -> None:
        self._held.close()


# ---------------------------------------------------------------------- ask tell
#: The name of the study in its storage, and the attributes of every trial.
STUDY, SETTINGS, RESULT = "search", "candidate", "result"
SAMPLERS = ("random", "tpe", "cmaes")
#: The least number of best trials from which the importance of settings is computed; usually the best tenth.
ABOVE = 5


def import_optuna() -> Any:
    """The module optuna, or an error that says how to install it."""
    try:
        import optuna
    except ModuleNotFoundError:
        raise MissingDependency(
            "a search needs optuna: pip install 'rdgraph[search]'; planned trials can be trained without it by "
            "rdgraph search --run"
        ) from None
    return optuna


def make_sampler(name: str, seed: int, number: int) -> Any:
    """The sampler that draws one trial."""
    if name not in SAMPLERS:
        raise UnknownName("sampler", name, SAMPLERS)
    optuna = import_optuna()
    trial_seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    if name == "random":
        return optuna.samplers.RandomSampler(seed=trial_seed)
    if name == "tpe":
        with quiet():
            return optuna.samplers.TPESampler(seed=trial_seed, constant_liar=True)
    if importlib.util.find_spec("cmaes") is None:
        raise MissingDependency("the sampler cmaes needs the package cmaes: pip install 'rdgraph[cmaes]'")
    return optuna.samplers.CmaEsSampler(seed=trial_seed, warn_independent_sampling=False)


def check_reach(sampler: str, location: Path | str | None) -> None:
    """Raise for an unavailable sampler or a database that does not answer, before anything is written."""
    make_sampler(sampler, 0, 0)
    if isinstance(location, str):
        with reporting_damage(location), reporting_outages(location), quiet():
            close_storage(open_storage(location))


@contextmanager
def quiet() -> Iterator[None]:
    """Silence optuna's messages about new studies and experimental features within the block."""
    optuna = import_optuna()
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


class Ledger:
    """The trials of one search for settings: draws them and stores their results.

    Args:
        space: The search space, for the network of `base`.
        base: The base configuration.
        sampler: random, tpe or cmaes.
        seed: The seed of the sampler.
        location: The journal file, or the url of a database; None keeps the trials in memory.
        study: The name of the search in its storage.

    Raises:
        MissingDependency: Without optuna, without cmaes for that sampler, or without the driver of a database.
        FileError: For a storage that cannot be read or written.

    >>> from gread.tuning.space import find_space
    >>> ledger = Ledger(find_space("small").of(Config()), Config(), "random", seed=0)
    >>> first, second = ledger.ask(2)
    >>> first.number, first.config.model.hidden == first.values["hidden"]
    (0, True)
    >>> ledger.tell([TrialResult(0, "complete", 200, (0.5, 0.75), (0.5, 0.5))])
    >>> [candidate.number for candidate in ledger.pending()], ledger.results()[0].val_accuracy
    ([1], 0.625)
    """

    def __init__(
        self, space: Space, base: Config, sampler: str, seed: int, location: Path | str | None = None,
        study: str = STUDY,
    ) -> None:  # fmt: skip
        optuna = import_optuna()
        make_sampler(sampler, seed, 0)  # an unavailable sampler is refused before anything is written
        self.space, self.base, self.sampler, self.seed, self.location = space, base, sampler, seed, location
        self._candidates: dict[int, Candidate] = {}
        with reporting_damage(location), reporting_outages(location), quiet():
            storage = open_storage(location)
            weakref.finalize(self, close_storage, storage)
            self.study: Study = optuna.create_study(
                storage=storage, study_name=study, direction="maximize", load_if_exists=True
            )
            self._storage = self.study._storage
            self._id = self._storage.get_study_id_from_name(study)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the search against other processes in the block; raise FileError if the database is unreachable."""
        with reporting_outages(self.location), exclusive(self.location, self.study.study_name):
            yield

    def constant(self, name: str, make: Callable[[], Any]) -> Any:
        """A value that is computed once and stored with the search."""
        if name not in self.study.user_attrs:
            self.study.set_user_attr(name, make())
        return self.study.user_attrs[name]

    # ------------------------------------------------------------------ asking
    def __len__(self) -> int:
        """The number of drawn trials, in any state."""
        return len(self.study.get_trials(deepcopy=False))

    def ask(self, count: int) -> list[Candidate]:
        """Draw `count` new trials, before any of their results is known."""
        first = len(self)
        return [self._drawn(self._new(number)) for number in range(first, first + count)]

    def _new(self, number: int) -> optuna.trial.Trial:
        self.study.sampler = make_sampler(self.sampler, self.seed, number)
        return self.study.ask()

    def _drawn(self, trial: optuna.trial.Trial, partial: optuna.trial.FrozenTrial | None = None) -> Candidate:
        """Draw a trial; a `partial` one keeps its values, and the sampler redraws them to reach the same state."""

        def drawn(searched: Searched) -> Value:
            if partial is not None and searched.name in partial.params and searched.name not in trial.relative_params:
                distribution = partial.distributions[searched.name]
                self.study.sampler.sample_independent(self.study, partial, searched.name, distribution)
            return _suggested(trial, searched)

        values = self.space.draw(self.base, drawn)
        try:
            candidate = Candidate(trial.number, self.space.config(self.base, values), values)
        except RdgraphError as problem:  # inconsistent settings: the trial fails, not the search
            candidate = Candidate(trial.number, self.base, values)
            self._finish(TrialResult(trial.number, FAILED, 0, note=str(problem)), candidate)
        else:
            trial.set_user_attr(SETTINGS, candidate.record())
        return candidate

    def pending(self) -> list[Candidate]:
        """Trials that were drawn and have no result yet; a draw that was interrupted is completed."""
        import optuna

        running = (optuna.trial.TrialState.RUNNING,)
        candidates = []
        for frozen in self.study.get_trials(deepcopy=False, states=running):
            if SETTINGS in frozen.user_attrs:
                candidates.append(self._candidate(frozen))
            else:
                self.study.sampler = make_sampler(self.sampler, self.seed, frozen.number)
                self._drawn(optuna.trial.Trial(self.study, self._trial_id(frozen.number)), frozen)
                return self.pending()
        return candidates

    def _trial_id(self, number: int) -> int:
        return int(self._storage.get_trial_id_from_study_id_trial_number(self._id, number))

    # ------------------------------------------------------------------ telling
    def tell(self, results: Sequence[TrialResult]) -> None:
        """Record the results of trials; a trial that has a result already keeps it."""
        known = self._frozen()
        for result in results:
            if not 0 <= result.number < len(known):
                raise InvalidArgument(f"expected a trial among 0..{len(known) - 1}, got number {result.number}")
            if not known[result.number].state.is_finished():
                self._finish(result)
        sync(self.location)

    def _finish(self, result: TrialResult, candidate: Candidate | None = None) -> None:
        import optuna

        states = optuna.trial.TrialState
        number = self._trial_id(result.number)
        if candidate is not None:
            self._storage.set_trial_user_attr(number, SETTINGS, candidate.record())
        self._storage.set_trial_user_attr(number, RESULT, result.record())
        for epoch, value in result.rungs:
            self._storage.set_trial_intermediate_value(number, epoch, value)
        with quiet():
            if result.state == FAILED:
                self.study.tell(result.number, state=states.FAIL)
            elif result.state == PRUNED:
                self.study.tell(result.number, state=states.PRUNED)
            else:
                self.study.tell(result.number, result.val_accuracy)

    def candidates(self) -> list[Candidate]:
        """All drawn trials, ordered by number."""
        return [self._candidate(t) for t in self._frozen() if SETTINGS in t.user_attrs]

    def _candidate(self, frozen: optuna.trial.FrozenTrial) -> Candidate:
        """A drawn trial; it does not change any more and is read once."""
        if frozen.number not in self._candidates:
            self._candidates[frozen.number] = Candidate.read(frozen.user_attrs[SETTINGS])
        return self._candidates[frozen.number]

    def results(self) -> list[TrialResult]:
        """The results of the finished trials, ordered by number."""
        return [TrialResult.read(t.user_attrs[RESULT]) for t in self._frozen() if t.state.is_finished()]

    def _frozen(self) -> list[optuna.trial.FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    # ------------------------------------------------------------------ what mattered
    def importance(self) -> dict[str, float]:
        """The importance of each setting for being among the best tenth of the trials, by PED-ANOVA; sums to 1.

        At least the best five trials count. Empty if fewer than ten trials were trained to the last epoch, if all are
        equal, or if no setting separates the best from the others.
        """
        import optuna

        values = [t.value for t in self._frozen() if t.state == optuna.trial.TrialState.COMPLETE]
        if len(values) < 2 * ABOVE or len(set(values)) < 2:
            return {}
        with quiet():
            share = max(0.1, ABOVE / len(values))
            evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=share)
            importances = optuna.importance.get_param_importances(self.study, evaluator=evaluator, normalize=False)
        total = sum(importances.values())
        return {name: value / total for name, value in importances.items()} if total > 0 else {}


def _suggested(trial: optuna.trial.Trial, searched: Searched) -> Value:
    """The value of a setting in a trial, drawn if it is new."""
    distribution = searched.distribution
    if isinstance(distribution, Choice):
        chosen = trial.suggest_categorical(searched.name, list(distribution.values))
        return next(v for v in distribution.values if type(v) is type(chosen) and v == chosen)
    low, high, log = distribution.low, distribution.last, distribution.log
    if distribution.is_whole:
        return trial.suggest_int(searched.name, int(low), int(high), log=log, step=int(distribution.step or 1))
    return trial.suggest_float(searched.name, float(low), float(high), log=log, step=distribution.step)


# ---------------------------------------------------------------------- looked up
def recorded_candidate(location: Path | str, number: int, study: str = STUDY) -> Candidate:
    """The trial with that number in a journal, or in a study of a database.

    Raises:
        FileError: For a missing journal or study.
        InvalidArgument: For a missing trial.
    """
    optuna = import_optuna()
    if isinstance(location, Path) and not location.is_file():
        raise FileError(f"expected a journal of trials in {location}, got none; name the folder of a search")
    with reporting_damage(location), reporting_outages(location), quiet():
        storage = open_storage(location)
        try:
            trials = optuna.load_study(study_name=study, storage=storage).get_trials(deepcopy=False)
        except KeyError:
            raise FileError(f"expected the study {study} in the storage, got none; name that of the search") from None
        finally:
            close_storage(storage)
    if not 0 <= number < len(trials) or SETTINGS not in trials[number].user_attrs:
        raise InvalidArgument(f"expected a trial among 0..{len(trials) - 1}, got {number}")
    return Candidate.read(trials[number].user_attrs[SETTINGS])
