"""Forty thousand hostile strings: each is read or refused, and nothing in them is executed, imported or opened."""

from __future__ import annotations

import ast
import builtins
import gc
import random
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
from rdgraph.syntax.functions import FUNCTIONS
from rdgraph.syntax.reader import RESERVED, STRUCTURAL, USUAL_COEFFICIENTS
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

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
    """An object in everybody's reach: whatever is done to it is noted."""

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
WORDS = """
canary canary() canary.x canary(canary) tanh(canary) H+canary canary@H H*canary() -canary canary**2 H.T H.__class__
H.__class__.__mro__ ().__class__ H.__init__.__globals__ (1).__class__ 1..real H.real.imag beta.__dict__
().__class__.__bases__ A.__getattribute__(H) H.__reduce__() H.__class__(H) tanh.__globals__ tanh.__call__(H) (H)(H)
2(H) __import__ __builtins__ __name__ __file__ __debug__ __build_class__ __loader__ __spec__ _ __ _H __H__ globals()
locals() vars() dir() eval(H) exec(H) open(H) compile(H) input() breakpoint() getattr(H) print(H) exit() quit() help()
type(H) object() super() memoryview(H) id(H) iter(H) len(H) int(H) str(H) repr(H) chr(65) bytes(9) range(9) sorted(H)
map(H) zip(H) all(H) os.system(H) sys.exit() os sys subprocess importlib builtins numpy np torch sympy sp sympify(H)
lambdify(H) S N Symbol(H) eval exec open None True False ... NotImplemented Ellipsis not(H) tanh() tanh(H)(H) tanh(*H)
tanh(**H) relu(relu) exp(exp) sqrt(sqrt(H)) lambda if else for in is and or not await yield async def class return
import from as with while try except finally raise del global nonlocal assert pass break continue match case type
print 0x10 0b11 0o17 1_000 1e5 1e999 1e-999 1E+30 1. .5 . .. 00 007 1j 0xffffffffffffffff 1e400
9999999999999999999999999999999999999999999 H//2 H**2 H**-2 H**0.5 H**H H**-H H***2 H**(2) H**(1+1) H**99999999999
H**0x2 2**2**2 H**True H**1e3 H**- A**-1 W**2 I**32 -H**-2 H@A A*H H@W W@H A@A A@ @H A+1 H+A I-A L@H A@W@H beta@H
H@beta M@H M*H0 H/0 0/H 0**-1 A/2 2/A W/2 H@W/2 -- ++ +-+- **- ( ) )( () (()) ((H)) (H H) H() ()H 2H H2 H0 H00 0H h H1
alpha1 _alpha alphaa Alpha ALPHA lam T tau pi E oo t R s d where dH dt dH/dt
"""
PLAIN = WORDS.split()

FORBIDDEN_SIGNS = [
    "(lambda: canary())()", "[canary() for _ in (1,)]", "{canary(): 1}", "{canary()}", "f'{canary()}'",
    "f'{canary!r:{canary}}'", "(x := canary())", "canary[0]", "'%s' % canary", "'{0.__class__}'.format(canary)",
    "@canary\ndef f(): pass", "canary;canary", "__import__('os').system('true')", "__import__('canary').x()",
    "import canary", "from canary import *", "eval('canary()')", "exec('canary()')", "open('/etc/passwd').read()",
    "compile('canary()', '', 'eval')", "getattr(canary, 'x')", "`canary`", "H if canary else H", "canary and H",
    "H, canary", "*canary,", "print(canary, sep='')", "b'canary'", "'''canary'''", '"H"', "r'\\x41'",
    "'\\N{LATIN CAPITAL LETTER H}'", "\\x48", "\\", "\\\n", "H\\\n+H0", "#canary", "H # coding: utf-8", "%canary",
    "!true", "$(canary)", "${canary}", "{{canary}}", "<canary>", "H<canary", "H == canary", "H != H", "H=canary",
    "H -> canary", "canary:int", "~canary", "H & canary", "H | canary", "H ^ canary", "H << 2", "H >> 2", "H % canary",
    "(yield canary)", "(await canary)", "(*H,)", "async def f(): pass", "class canary: pass", "while 1: pass",
    "with canary: pass", "try: canary()\nexcept: pass", "del canary", "assert canary", "raise canary", "global canary",
    "lambda canary: 0", "lambda *a, **k: canary(*a)", "H\x00", "\x00", "\x1b[2J", "\ufeffH", "H\u200b", "H\u202eA",
    "\u0410@\u041d", "\u03b1*H", "H\u00b2", "H \u2212 H0", "\uff28", "\U0001d407", "\ud800", "\U000e0041", "\x85",
    "\u2028", "\r", "\x0c", "\x0b", "\t", "\n", "H\r\nH", "\u00a0H", "e\u0301*H", "\u1e9e", "\ufb01", "\u0131",
]  # fmt: skip

CLAUSES = [
    " where", " where ,", " where beta", " where beta<0", " where beta channel", " where beta node, beta real",
    " where k channel", " where canary()<0", " where beta<canary", " where __import__('os') real", " where H channel",
    " where lam node", " where 0<1", " where beta<gamma<=2*alpha", " where beta<0<", " where beta<>0",
    " where k matrix", " where a b c", " where where", " where x real", " where __class__ scalar",
    " where beta < (lambda: canary)()", " where beta >= 1e999", " where beta < 2**99999", " where A<0",
    " where g = H**2", " where g = canary()", " where g = A@H", " where beta = H", " where g = H, g = H", " where g =",
    " where g = g(H)", " where tanh = H", " where g = __import__('os')", " where g == H", " where = H",
    " where g = H*H0, beta<0", " where f = H*H*H, g = f(f(f(f(f(f(f(f(f(H)))))))))", " where \u03b3 = H",
    " where g = H.real",
]  # fmt: skip

VALID = [
    *(str(catalogue[name]) for name in catalogue),
    "dH/dt = -alpha*L@H + beta*(A - A@A)@H where beta<0",
    "tanh(A@H@W) - sigmoid(-H)/(1 + H**2) + sqrt(abs(H0))*exp(-kappa)",
    "softplus(sin(H) + cos(H0)) - relu(H)**3 + 0.25*M*H0",
    "k*(I - 2*L + A**3/4)@H where k channel, k nonpositive",
    "((H - (H0 - (H - 1.5e-3))))*--2",
    "-alpha*L@H + beta*g(H) where g = H**3/(1 + H**2), beta<0",
    "f(A@H) - g(H) where g = k*tanh(H), f = g(H)**2 - g(-H), k channel",
]

SEVERAL = [
    "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v where Du < Dv",
    "du/dt = -L@u + g(v)\ndv/dt = u - 2*v where g = H**2/(1 + H**2)",
    "H'' = -gamma*H - alpha*H' + tanh(A@H) - H0'",
    "u' = -alpha*exp(-t)*L@u + beta*sin(omega*t); v'' = v' + k*v where k channel, beta<0",
    "u' = B@A@u - A@B@v where B antisymmetric; v' = C@v where C symmetric stochastic",
    "u' = -L@u + sigma*u*xi - xi/2; v' = u@W + M*v0",
    "B@H + t*xi where B signed",
]

#: Pieces of systems of several fields, in their place and out of it.
MARKS = [
    "'", "''", "; ", ";", " = ", "=", "\n", "u' = ", "v'' = ", "dv/dt = ", "du/dt", "u0'", "t", "xi", " where ",
    " where B symmetric", " where u scalar", " where g = u", "B@u", "u'v", "\u2032", "t' = t", "u; v", "where", "'='",
]  # fmt: skip

NOISE = "AHLIMW0123456789abckalphbet_+-*/@(). \t\n,<>='\"[]{}:;!%&|^~\\#$`?\u03b1\u2212\u00b2\x00"


class Fuzzer:
    """Strings of five sorts: pieces glued by signs, hostile fragments, mutated equations, hostile clauses, lines."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = [*STRUCTURAL, *USUAL_COEFFICIENTS, *FUNCTIONS, *RESERVED, "k", "g(H)", "f(g(H))", "canary"]

    def strings(self) -> Iterator[str]:
        yield from PLAIN
        yield from FORBIDDEN_SIGNS
        yield from (f"beta*H{clause}" for clause in CLAUSES)
        yield from SEVERAL
        while True:
            yield self.random.choice([self.glued, self.hostile, self.mutated, self.mutated, self.clause, self.lines])()

    def piece(self) -> str:
        return self.random.choice([self.random.choice(PLAIN), self.random.choice(self.names), self.wrapped()])

    def wrapped(self) -> str:
        function = self.random.choice([*FUNCTIONS, "canary", "eval", "", "-", "H.__class__"])
        return f"{function}({self.random.choice(PLAIN)})"

    def glued(self) -> str:
        signs = [" + ", " - ", "*", "/", "@", "**", " ", ".", "*-", "\n+", " if ", " and ", " is ", " for H in "]
        text = self.piece()
        for _ in range(self.random.randint(0, 5)):
            text += self.random.choice(signs) + self.piece()
        return text

    def hostile(self) -> str:
        parts = [self.random.choice(FORBIDDEN_SIGNS), self.random.choice(VALID), self.piece()]
        self.random.shuffle(parts)
        return self.random.choice(["", " ", "+", "*", "@", "\n", ";"]).join(parts[: self.random.randint(1, 3)])

    def lines(self) -> str:
        """Equations with left sides, glued by what separates them, some with pieces put in anywhere."""
        letters = ["u", "v", "w", "H", "u0", "x", "t", "lambda", "\u03b1"]
        first, *others = self.random.sample(letters, self.random.randint(1, 3))
        bodies = ["-L@u", "B@u", "u*v - w", "u' - v", "tanh(H)", "t*xi", self.random.choice(PLAIN), self.piece()]
        text = self.random.choice([f"{first}' = ", f"{first}'' = ", f"d{first}/dt = "]) + self.random.choice(bodies)
        for name in others:
            sign = self.random.choice(["; ", "\n", ";\n", " ", ", "])
            text += sign + self.random.choice([f"{name}' = ", f"d{name}/dt="]) + self.random.choice(bodies)
        text += self.random.choice(["" if "B@" not in text else " where B signed", self.random.choice(CLAUSES)])
        return self.random.choice([text, self.changed(text), self.changed(self.random.choice(SEVERAL))])

    def changed(self, text: str) -> str:
        for _ in range(self.random.randint(1, 3)):
            i = self.random.randint(0, len(text))
            text = text[:i] + self.random.choice(MARKS) + text[i + self.random.choice([0, 0, 1, 4]) :]
        return text

    def mutated(self) -> str:
        text = self.random.choice([*VALID, *SEVERAL])
        for _ in range(self.random.randint(1, 4)):
            i, j = sorted(self.random.randint(0, len(text)) for _ in "ab")
            j = min(j, i + 6)
            middle = self.random.choice(
                [
                    "",
                    self.random.choice(NOISE),
                    self.random.choice(PLAIN),
                    self.random.choice(self.names),
                    text[i:j] * 2,
                    text[i:j][::-1],
                    f"({text[i:j]})",
                ]
            )
            text = text[:i] + middle + text[j:]
        return text

    def clause(self) -> str:
        body = self.random.choice([self.random.choice(VALID).partition(" where")[0], self.glued()])
        return body + self.random.choice(CLAUSES) + self.random.choice(["", ", ", ", k channel", self.piece()])


def hostile_strings(count: int, seed: int = 20230723) -> list[str]:
    found: dict[str, None] = {}
    for text in Fuzzer(seed).strings():
        found[text] = None
        if len(found) == count:
            break
    return list(found)


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
