"""Hostile strings, for the test that each of them is read or refused and none is run."""

from __future__ import annotations

import random
from collections.abc import Iterator

from rdgraph.language.reader import RESERVED, STRUCTURAL, USUAL_COEFFICIENTS
from rdgraph.systems.catalogue import catalogue
from rdgraph.vocabulary.functions import FUNCTIONS

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
