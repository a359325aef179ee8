"""Where the trials of a search are kept: a journal file, or any database that Optuna knows, named by its url."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from rdgraph.errors import FileError, InvalidArgument, MissingDependency, RdgraphError
from rdgraph.files import unwritable

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
    """A url as it may be written down: without the password, and with the driver that was named.

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
