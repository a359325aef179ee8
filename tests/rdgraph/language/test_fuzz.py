"""Forty thousand hostile strings: each is read or refused, and nothing in them is executed, imported or opened."""

from __future__ import annotations

import ast
import builtins
import gc
import socket
import subprocess
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rdgraph.errors import LanguageError, RdgraphError
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from tests.rdgraph.language.hostile_texts import CLAUSES, FORBIDDEN_SIGNS, PLAIN, SEVERAL, VALID, hostile_strings

STRINGS = 40_000
#: Seconds of processor time within which every string must be read or refused.
QUICK = 1.0


# ---------------------------------------------------------------------- the recorder
class Recorder:
    """Notes every audit event of one thread while it is switched on; an audit hook cannot be taken out again."""

    def __init__(self) -> None:
        self.thread: int | None = None
        self.notes: list[str] = []

    def note(self, what: str) -> None:
        if self.thread == threading.get_ident():
            self.notes.append(what)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        # `compile` is judged by its flags in `watched_compile`: the event does not carry them.
        if self.thread is not None and event != "compile":
            self.note(event)


RECORDER = Recorder()


@pytest.fixture(scope="module", autouse=True)
def _hooked() -> None:
    sys.addaudithook(RECORDER.hook)


class Canary(types.ModuleType):
    """An object reachable from builtins that records every use."""

    def __getattribute__(self, name: str) -> Any:
        RECORDER.note(f"canary.{name}")
        return super().__getattribute__(name)

    def _used(self, *_: Any) -> Any:
        RECORDER.note("canary used")
        return self

    __call__ = __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = __pow__ = _used
    __truediv__ = __neg__ = __pos__ = __getitem__ = __enter__ = __iter__ = __next__ = __lt__ = __invert__ = _used


@contextmanager
def recording() -> Iterator[list[str]]:
    """Everything that was executed, compiled, imported, opened or touched inside the block."""
    watched = {name: getattr(builtins, name) for name in ("eval", "exec", "compile", "open", "input", "breakpoint")}

    def watch(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            RECORDER.note(name)
            return original(*arguments, **options)

        return call

    def watched_compile(source: Any, filename: Any, mode: str, flags: int = 0, *rest: Any, **options: Any) -> Any:
        if not flags & ast.PyCF_ONLY_AST:
            RECORDER.note("compile to code")
        return watched["compile"](source, filename, mode, flags, *rest, **options)

    canary = Canary("canary")
    gc.disable()
    for name, original in watched.items():
        setattr(builtins, name, watched_compile if name == "compile" else watch(name, original))
    builtins.canary = sys.modules["canary"] = canary  # type: ignore[attr-defined]
    RECORDER.notes = []
    RECORDER.thread = threading.get_ident()
    try:
        yield RECORDER.notes
    finally:
        RECORDER.thread = None
        del builtins.canary, sys.modules["canary"]  # type: ignore[attr-defined]
        for name, original in watched.items():
            setattr(builtins, name, original)
        gc.enable()


@pytest.mark.parametrize(
    ("crime", "note"),
    [
        (lambda: eval("1 + 1"), "eval"),
        (lambda: exec("x = 1"), "exec"),
        (lambda: compile("H", "<unknown>", "eval"), "compile to code"),
        (lambda: ast.literal_eval("[1]") and eval(compile("1", "f", "eval")), "exec"),
        (lambda: types.FunctionType((lambda: 1).__code__.replace(co_name="f"), {})(), "code.__new__"),
        (lambda: Path(__file__).read_bytes(), "open"),
        (lambda: open(__file__).close(), "open"),  # noqa: PTH123
        (lambda: list(Path(__file__).parent.iterdir()), "os.listdir"),
        (lambda: __import__("tabnanny"), "import"),
        (lambda: subprocess.run(["/bin/true"], check=False), "subprocess.Popen"),
        (lambda: socket.socket().close(), "socket.__new__"),
        (lambda: canary(), "canary used"),  # type: ignore[name-defined]  # noqa: F821
        (lambda: canary + 1, "canary used"),  # type: ignore[name-defined]  # noqa: F821
        (lambda: canary.path, "canary.path"),  # type: ignore[name-defined]  # noqa: F821
        (lambda: f"{canary}", "canary.__spec__"),  # type: ignore[name-defined]  # noqa: F821
        (lambda: __import__("canary").x, "canary.x"),
    ],
)
def test_the_recorder_would_notice(crime: Callable[[], Any], note: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tabnanny", raising=False)
    with recording() as notes:
        try:
            crime()
        except (AttributeError, ImportError, TypeError):
            notes.append("raised")
    assert note in notes


def test_the_recorder_is_silent_about_syntax_trees() -> None:
    with recording() as notes:
        ast.parse("canary() + open('x')", mode="eval")
    assert notes == []
    assert not hasattr(builtins, "canary")


# ---------------------------------------------------------------------- the strings
#: The ways a string can reach the parser: as the equation, an assumption, a name or a kind.
DOORS: dict[str, Callable[[str], System]] = {
    "equation": parse,
    "assumption": lambda text: parse("beta*H", assume=[text]),
    "name": lambda text: parse("beta*H", [text]),
    "kind": lambda text: parse("beta*H", {"beta": text}),
    "value": lambda text: parse("beta*H").replace(beta=text),
}


def outcome(door: Callable[[str], System], text: str) -> System | RdgraphError:
    """What comes of a string: a system, or an error this package raises on purpose; anything else escapes."""
    try:
        return door(text)
    except RdgraphError as error:
        return error


@pytest.fixture(scope="module")
def strings() -> list[str]:
    return hostile_strings(STRINGS)


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Load what is loaded lazily before anything is recorded."""
    for door in DOORS.values():
        for text in (*VALID, *SEVERAL, *PLAIN, *FORBIDDEN_SIGNS, *CLAUSES):
            result = outcome(door, text)
            assert str(result)


@pytest.mark.slow
def test_hostile_strings_are_read_or_refused_and_never_run(strings: list[str]) -> None:
    assert len(set(strings)) == STRINGS
    slowest, results = 0.0, []
    with recording() as notes:
        for text in strings:
            start = time.process_time()
            results.append(outcome(parse, text))
            slowest = max(slowest, time.process_time() - start)
    assert notes == []
    assert slowest < QUICK
    assert all(isinstance(result, System | RdgraphError) for result in results)
    sorts = Counter(type(result).__name__ for result in results)
    assert sorts["System"] > STRINGS // 50
    assert sorts["LanguageError"] > STRINGS // 2
    refused = {result.expected for result in results if isinstance(result, LanguageError)}
    assert len(refused) >= 25


@pytest.mark.parametrize("door", [name for name in DOORS if name != "equation"])
def test_other_doors_are_as_strict(door: str, strings: list[str]) -> None:
    with recording() as notes:
        results = [outcome(DOORS[door], text) for text in strings[: len(PLAIN) + 1500]]
    assert notes == []
    assert sum(isinstance(result, RdgraphError) for result in results) > 1000


def test_refusals_of_hostile_strings_say_where_and_why(strings: list[str]) -> None:
    for text in strings[::8]:
        error = outcome(parse, text)
        if isinstance(error, LanguageError):
            assert 1 <= error.column <= len(error.text) + 1
            assert all((error.expected, error.got, error.remedy))
            lines = str(error).split("\n")
            assert lines[0] == f"cannot read the equation, column {error.column}"
            assert lines[2].strip() == "^"
            assert len(lines[1]) <= 80


@pytest.mark.slow
def test_several_fields_are_read_and_refused(strings: list[str]) -> None:
    """Among the strings are systems of each sort, and refusals of each sort; noise in a function is too rare there."""
    results = [outcome(parse, text) for text in (*strings[1::3], "u' = sin(xi) - u; v' = u - v")]
    systems = [result for result in results if isinstance(result, System)]
    sorts: dict[str, Callable[[System], bool]] = {
        "several": lambda s: len(s.equations) > 1,
        "second order": lambda s: any(e.order == 2 for e in s.equations),
        "time": lambda s: not s.is_autonomous,
        "noise": lambda s: s.is_noisy,
        "operators": lambda s: bool(s.operators.names),
    }
    for sort, holds in sorts.items():
        found = [system for system in systems if holds(system)]
        assert len(found) > 5, sort
        for system in found[:50]:
            assert parse(str(system)) == system
            assert not system.is_single
    expected = " ".join({result.expected for result in results if isinstance(result, LanguageError)})
    for words in ("a field with ' before", "a free name for a field", "one equation for u", "after the name of a field",
                  "white noise as a factor", "a field that has an equation", "an operator after u'"):  # fmt: skip
        assert words in expected


@pytest.mark.slow
def test_whatever_is_read_prints_and_reads_back(strings: list[str]) -> None:
    systems = [system for text in strings[::3] if isinstance(system := outcome(parse, text), System)]
    assert len(systems) > 200
    for system in systems:
        assert parse(str(system)) == system
        assert "canary" not in system.letters
        assert system.latex()
