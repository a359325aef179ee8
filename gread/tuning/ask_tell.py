"""`Ledger`: the trials of a search in a storage of Optuna's, asked for and told of; optuna is imported when it is made.

The storage is a journal file or a database, which samplers, pruners and optuna-dashboard read. A trial is drawn with
random numbers that follow from the seed and its number alone: a search that was cut off goes on as it would have.
"""

from __future__ import annotations

import importlib.util
import json
import os
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from gread.settings.config import Config
from gread.tuning.candidates import FAILED, PRUNED, Candidate, TrialResult
from gread.tuning.space import Choice, Searched, Space, Value
from rdgraph.errors import FileError, InvalidArgument, MissingDependency, RdgraphError, UnknownName
from rdgraph.files import unwritable

if TYPE_CHECKING:
    import optuna
    from optuna.study import Study


# ---------------------------------------------------------------------- storages
# Where the trials of a search are kept: a journal file, or any database that Optuna knows, named by its url.

#: What `postgresql://` means to SQLAlchemy differs between its versions; to us it is psycopg, which the extra brings.
DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
#: How every line of a journal begins.
LINE = b'{"op_code":'
#: How databases are connected to: one in a file is waited for while another process writes to it, for so many seconds;
#: texts are texts, whatever the encoding of the server.
MANNERS: dict[str, dict[str, Any]] = {"sqlite": {"timeout": 60.0}, "postgresql": {"client_encoding": "utf8"}}


def parsed_url(url: str) -> Any:
    """A url as SQLAlchemy has it, with our driver where it names none.

    >>> parsed_url("postgresql://ada:secret@localhost/trials").drivername
    'postgresql+psycopg'
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        made = make_url(url)
    except ArgumentError:
        raise InvalidArgument(
            f"expected a url such as sqlite:///trials.db or postgresql://USER@HOST/DATABASE, got {url!r}"
        ) from None
    return made.set(drivername=DRIVERS.get(made.drivername, made.drivername))


def told_url(url: str) -> str:
    """A database url that may be shown: without the password, and with the driver that was named.

    >>> told_url("postgresql://ada:secret@localhost/trials")
    'postgresql://ada@localhost/trials'
    """
    from sqlalchemy.engine import URL

    made = parsed_url(url)
    driver = url.partition("://")[0]
    return str(URL.create(driver, made.username, None, made.host, made.port, made.database, made.query))


def open_storage(place: Path | str | None) -> Any:
    """The storage in a journal file, at a url, or in memory."""
    import optuna

    if place is None:
        return optuna.storages.InMemoryStorage()
    return _journal(place) if isinstance(place, Path) else _database(place)


def _database(url: str) -> Any:
    import optuna
    from sqlalchemy.exc import NoSuchModuleError

    made = parsed_url(url)
    try:
        manner = {"pool_pre_ping": True, "connect_args": MANNERS.get(made.get_backend_name(), {})}
        return optuna.storages.RDBStorage(made.render_as_string(hide_password=False), engine_kwargs=manner)
    except (ImportError, NoSuchModuleError) as problem:
        raise MissingDependency(
            f"expected the driver of {told_url(url)}, got an installation without ({problem}); "
            "pip install 'rdgraph[postgresql]', or the driver of another database"
        ) from None


def let_go(storage: Any) -> None:
    """Close the connections of a storage, if it has some."""
    if hasattr(storage, "engine"):
        storage.remove_session()
        storage.engine.dispose()


@contextmanager
def reached(place: Path | str | None) -> Iterator[None]:
    """Within the block a database that does not answer is an error with its name."""
    if not isinstance(place, str):
        yield
        return
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError) as problem:
        reason = str(problem).strip().splitlines()[0]
        raise FileError(
            f"expected an answer of the storage {told_url(place)}, got {reason}; the same command goes on when it is "
            "there again"
        ) from None


@contextmanager
def read_as_journal(place: Path | str | None) -> Iterator[None]:
    """Within the block a file that is no journal, or cannot be read or written, is an error with its name."""
    try:
        yield
    except RdgraphError:
        raise
    except OSError as problem:
        raise unwritable(Path(place or ""), problem) from None
    except (ValueError, LookupError, AssertionError) as problem:
        where = told_url(place) if isinstance(place, str) else place
        raise FileError(f"expected a journal of trials in {where}, got another file ({problem})") from None


@contextmanager
def held(place: Path | str | None, study: str) -> Iterator[None]:
    """Hold a study of a database, which no other process may search at the same time; one that dies gives it up.

    PostgreSQL holds it by an advisory lock of a connection, SQLite by a lock on a file beside it; others hold nothing.
    """
    with ExitStack() as stack:
        if isinstance(place, str):
            made = parsed_url(place)
            taken = {"postgresql": _advised, "sqlite": _beside}.get(made.get_backend_name())
            if taken is not None and not taken(made, study, stack):
                raise FileError(
                    f"expected a search that nobody else is at, got {study} in {told_url(place)}, which another "
                    "process is searching; wait for it"
                )
        yield


def _advised(url: Any, study: str, stack: ExitStack) -> bool:
    from sqlalchemy import create_engine, text
    from sqlalchemy.pool import NullPool

    manner = MANNERS["postgresql"]
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=manner)
    connection = stack.enter_context(engine.connect())
    key = {"key": zlib.crc32(f"rdgraph {study}".encode())}
    return bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), key).scalar())


def _beside(url: Any, study: str, stack: ExitStack) -> bool:
    try:
        import fcntl
    except ImportError:
        return True
    if not url.database or url.database == ":memory:":
        return True
    path = Path(url.database)
    file = stack.enter_context(path.with_name(f".{path.name}-{study}.lock").open("a"))
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


# ---------------------------------------------------------------------- the journal
def _journal(path: Path) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = _lock(path)
    if lock is None:
        return JournalStorage(JournalFileBackend(str(path)))

    class _Journal(JournalFileBackend):
        """Lines reach the file at once, which a kill does not undo, and the disk by `sync` or when it likes.

        Optuna waits for the disk eight times a trial, which takes longer than many trainings.
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
    """Cut off a last line without its end, as a full disk or a power cut leaves it: the next line would join it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    if file.read() in (b"", b"\n"):
        return
    file.seek(0)
    text = file.read()
    start = text.rfind(b"\n") + 1
    if LINE.startswith(text[start:][: len(LINE)]):
        file.truncate(start)


def sync(place: Path | str | None) -> None:
    """Wait until the disk has all of a journal; databases do that by themselves."""
    if isinstance(place, Path):
        with place.open("ab") as file:
            os.fsync(file.fileno())


def _lock(path: Path) -> Any:
    """A lock that a process which dies gives up; where the system has no flock, that of optuna."""
    try:
        import fcntl
    except ImportError:
        return None

    class _Flock:
        """Held from `acquire` to `release`, by one process."""

        def acquire(self) -> bool:
            self._file = path.with_name(f".{path.name}.lock").open("a")
            fcntl.flock(self._file, fcntl.LOCK_EX)
            return True

        def release(self) -> None:
            self._file.close()

    return _Flock()


# ---------------------------------------------------------------------- ask tell
#: The name of the study in its storage, and what is kept with every trial.
STUDY, SETTINGS, RESULT = "search", "candidate", "result"
SAMPLERS = ("random", "tpe", "cmaes")
#: Trials above the quantile that the importance of settings is about: the best tenth, and at least so many.
ABOVE = 5


def import_optuna() -> Any:
    """Optuna, where it is installed."""
    try:
        import optuna
    except ModuleNotFoundError:
        raise MissingDependency(
            "expected optuna for a search, got an installation without; pip install 'rdgraph[search]', or train "
            "planned trials here with rdgraph search --run, which needs none"
        ) from None
    return optuna


def make_sampler(name: str, seed: int, number: int) -> Any:
    """The sampler that draws one trial."""
    if name not in SAMPLERS:
        raise UnknownName("sampler", name, SAMPLERS)
    optuna = import_optuna()
    own = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    if name == "random":
        return optuna.samplers.RandomSampler(seed=own)
    if name == "tpe":
        with quiet():
            return optuna.samplers.TPESampler(seed=own, constant_liar=True)
    if importlib.util.find_spec("cmaes") is None:
        raise MissingDependency(
            "expected cmaes for the sampler cmaes, got an installation without; pip install 'rdgraph[cmaes]'"
        )
    return optuna.samplers.CmaEsSampler(seed=own, warn_independent_sampling=False)


def check_reach(sampler: str, place: Path | str | None) -> None:
    """Refuse a sampler that cannot be made, and a database that does not answer, before anything is written."""
    make_sampler(sampler, 0, 0)
    if isinstance(place, str):
        with read_as_journal(place), reached(place), quiet():
            let_go(open_storage(place))


@contextmanager
def quiet() -> Iterator[None]:
    """Silence optuna's messages about new studies and experimental parts in the block."""
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
    """The trials of one search for settings: draws them, and keeps their results.

    Args:
        space: What is searched, for the network of `base`.
        base: The configuration that is searched around.
        sampler: random, tpe or cmaes.
        seed: Of the sampler.
        place: The journal file, or the url of a database; None keeps the trials in memory.
        study: The name of the search in its storage.

    Raises:
        MissingDependency: Without optuna, without cmaes for the sampler of that name, or without the driver of a
            database.
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
        self, space: Space, base: Config, sampler: str, seed: int, place: Path | str | None = None, study: str = STUDY
    ) -> None:
        optuna = import_optuna()
        make_sampler(sampler, seed, 0)  # a sampler that cannot be made is refused before anything is written
        self.space, self.base, self.sampler, self.seed, self.place = space, base, sampler, seed, place
        self._candidates: dict[int, Candidate] = {}
        with read_as_journal(place), reached(place), quiet():
            storage = open_storage(place)
            weakref.finalize(self, let_go, storage)
            self.study: Study = optuna.create_study(
                storage=storage, study_name=study, direction="maximize", load_if_exists=True
            )
            self._storage = self.study._storage
            self._id = self._storage.get_study_id_from_name(study)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the search against other processes in the block; raise FileError if the database is unreachable."""
        with reached(self.place), held(self.place, self.study.study_name):
            yield

    def noted(self, name: str, make: Callable[[], Any]) -> Any:
        """A fact about the search, found out once and kept with it."""
        if name not in self.study.user_attrs:
            self.study.set_user_attr(name, make())
        return self.study.user_attrs[name]

    # ------------------------------------------------------------------ asking
    def __len__(self) -> int:
        """Trials that were asked for, whatever became of them."""
        return len(self.study.get_trials(deepcopy=False))

    def ask(self, count: int) -> list[Candidate]:
        """Draw `count` new trials, all of them before any result is known."""
        first = len(self)
        return [self._drawn(self._new(number)) for number in range(first, first + count)]

    def _new(self, number: int) -> optuna.trial.Trial:
        self.study.sampler = make_sampler(self.sampler, self.seed, number)
        return self.study.ask()

    def _drawn(self, trial: optuna.trial.Trial, begun: optuna.trial.FrozenTrial | None = None) -> Candidate:
        """Draw a trial; one that was `begun` keeps what it has, and the sampler goes through the same numbers again."""

        def drawn(searched: Searched) -> Value:
            if begun is not None and searched.name in begun.params and searched.name not in trial.relative_params:
                distribution = begun.distributions[searched.name]
                self.study.sampler.sample_independent(self.study, begun, searched.name, distribution)
            return _suggested(trial, searched)

        values = self.space.draw(self.base, drawn)
        try:
            made = Candidate(trial.number, self.space.config(self.base, values), values)
        except RdgraphError as problem:  # settings that do not go together: a trial that fails, not the search
            made = Candidate(trial.number, self.base, values)
            self._finish(TrialResult(trial.number, FAILED, 0, note=str(problem)), made)
        else:
            trial.set_user_attr(SETTINGS, made.record())
        return made

    def pending(self) -> list[Candidate]:
        """Trials that were drawn and have no result yet; a draw that was interrupted is completed."""
        import optuna

        running = (optuna.trial.TrialState.RUNNING,)
        found = []
        for frozen in self.study.get_trials(deepcopy=False, states=running):
            if SETTINGS in frozen.user_attrs:
                found.append(self._candidate(frozen))
            else:
                self.study.sampler = make_sampler(self.sampler, self.seed, frozen.number)
                self._drawn(optuna.trial.Trial(self.study, self._trial_id(frozen.number)), frozen)
                return self.pending()
        return found

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
        sync(self.place)

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
        """All trials that were drawn, by their numbers."""
        return [self._candidate(t) for t in self._frozen() if SETTINGS in t.user_attrs]

    def _candidate(self, frozen: optuna.trial.FrozenTrial) -> Candidate:
        """A trial that was drawn, which does not change any more, read once."""
        if frozen.number not in self._candidates:
            self._candidates[frozen.number] = Candidate.read(frozen.user_attrs[SETTINGS])
        return self._candidates[frozen.number]

    def results(self) -> list[TrialResult]:
        """The results of the trials that have one, by their numbers."""
        return [TrialResult.read(t.user_attrs[RESULT]) for t in self._frozen() if t.state.is_finished()]

    def _frozen(self) -> list[optuna.trial.FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    # ------------------------------------------------------------------ what mattered
    def importance(self) -> dict[str, float]:
        """How much each setting that all trials have matters for being among the best tenth, by PED-ANOVA; sums to 1.

        The best five count at least. Nothing is told where fewer than ten trials were trained to their ends, where all
        of them are equal, or where no setting tells the best from the others.
        """
        import optuna

        values = [t.value for t in self._frozen() if t.state == optuna.trial.TrialState.COMPLETE]
        if len(values) < 2 * ABOVE or len(set(values)) < 2:
            return {}
        with quiet():
            share = max(0.1, ABOVE / len(values))
            evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=share)
            found = optuna.importance.get_param_importances(self.study, evaluator=evaluator, normalize=False)
        total = sum(found.values())
        return {name: value / total for name, value in found.items()} if total > 0 else {}


def _suggested(trial: optuna.trial.Trial, searched: Searched) -> Value:
    """The value of a setting in a trial, drawn unless it was before."""
    distribution = searched.distribution
    if isinstance(distribution, Choice):
        chosen = trial.suggest_categorical(searched.name, list(distribution.values))
        return next(v for v in distribution.values if type(v) is type(chosen) and v == chosen)
    low, high, log = distribution.low, distribution.last, distribution.log
    if distribution.is_whole:
        return trial.suggest_int(searched.name, int(low), int(high), log=log, step=int(distribution.step or 1))
    return trial.suggest_float(searched.name, float(low), float(high), log=log, step=distribution.step)


# ---------------------------------------------------------------------- looked up
def recorded_candidate(place: Path | str, number: int, study: str = STUDY) -> Candidate:
    """The trial of that number in a journal, or in a study of a database.

    Raises:
        FileError: Where there is no such journal or study.
        InvalidArgument: Where it has no such trial.
    """
    optuna = import_optuna()
    if isinstance(place, Path) and not place.is_file():
        raise FileError(f"expected a journal of trials in {place}, got none; name the folder of a search")
    with read_as_journal(place), reached(place), quiet():
        storage = open_storage(place)
        try:
            trials = optuna.load_study(study_name=study, storage=storage).get_trials(deepcopy=False)
        except KeyError:
            raise FileError(f"expected the study {study} in the storage, got none; name that of the search") from None
        finally:
            let_go(storage)
    if not 0 <= number < len(trials) or SETTINGS not in trials[number].user_attrs:
        raise InvalidArgument(f"expected a trial among 0..{len(trials) - 1}, got {number}")
    return Candidate.read(trials[number].user_attrs[SETTINGS])
