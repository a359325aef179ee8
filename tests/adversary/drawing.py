"""Random systems: pieces of equations, recipes that put them together, and assumptions about their letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.adversary import expressions, splines
from tests.adversary.assumptions import Unsatisfied
from tests.adversary.systems import LETTERS, STRUCTURAL, Drawn, Random

DECLARED = ("k", "omega", "rho_1", "q")
BOUNDED = ("tanh", "sigmoid", "sin", "cos")
FUNCTIONS = ("tanh", "relu", "sigmoid", "exp", "abs", "softplus", "sin", "cos")


class Writer:
    """Draws texts; remembers the letters it used and their kinds."""

    def __init__(self, rng: Random, *, plain: bool = False) -> None:
        self.rng = rng
        self.plain = plain
        self.kinds: dict[str, str] = {}
        self.learned: list[str] = []
        self.fresh = list(rng.permutation(LETTERS))
        self.declared = list(rng.permutation(DECLARED))

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def letter(self, kind: str | None = None) -> str:
        """A coefficient, new or used before."""
        same = [n for n, k in self.kinds.items() if k == (kind or "scalar")]
        if same and self.chance(0.3):
            return str(self.pick(same))
        if kind is None:
            kind = "scalar" if self.plain or self.chance(0.88) else self.pick(["channel", "node"])
        pool = self.declared if self.declared and self.chance(0.15) else self.fresh
        name = str(pool.pop()) if pool else "k9"
        self.kinds[name] = kind
        return name

    def number(self) -> str:
        return str(self.pick(["2", "3", "0.5", "0.3", "1.5", "4", "0.25", "1", "0.1"]))

    def coefficient(self) -> str:
        """A factor: mostly a letter, sometimes a number or a small expression."""
        draw = self.rng.random()
        if draw < 0.62:
            return self.letter()
        if draw < 0.8:
            return self.number()
        x, y = self.letter("scalar"), self.letter("scalar")
        return str(self.pick([f"{x}*{y}", f"({x} - {y})", f"({x} + {y})", f"{x}/{y}", f"(1 - {x})", f"{x}**2",
                              f"({x} - {self.number()})"]))  # fmt: skip

    def word(self, degree: int = 3) -> str:
        """An operator: words in A, L and sums of them."""
        words = ["A", "L", "A@A", "L@L", "A@L", "A**2", "L**2", "(A - A@A)", "(I - A)", "(2*I - L)", "(I + A)"]
        words += ["A@A@A", "L**3", "(A - L)@A", "A@L@A"] if degree > 2 else []
        return str(self.pick(words if self.chance(0.55) else ["L", "L", "A"]))

    def linear(self, state: str = "H") -> str:
        """coefficient * word @ H."""
        if self.chance(0.15):
            return f"{self.coefficient()}*{state}"
        return f"{self.coefficient()}*{self.word()}@{state}"

    def sign(self) -> str:
        return "+" if self.chance(0.5) else "-"

    def polynomial(self) -> str:
        """A polynomial of single entries: products with named, numeric, double, complex or missing zeros."""
        x, n, m = self.letter("scalar"), self.number(), self.number()
        return str(self.pick([
            "H*(1 - H)", "H*(1 - H**2)", "H*(H - H**2)", "H**2*(1 - H)", f"H*(1 - H)*(H - {x})", f"H*({x} - H)",
            f"({x} - H)*(H - {n})", f"(H - {x})**2", f"H*(H - {x})**2", f"(H**2 + {x})", f"(H**2 - {x})",
            f"({x} - H**2)",
            f"(H**2 + {x}*H + {n})", f"({n} - {x}*H - H**3)", "H**3", "H**2", f"(H - H**3/{n})",
            f"H*(H - {n})*({m} - H)",
            f"({n} + H - {x}*H**2)", f"H*({x} - H**2)", f"(H - {n})*(H - {m})", f"H**2*({x} - H)", "(1 - H)**2*H",
            f"(H**2 - 2*{x}*H + {x}**2)", f"H*({x} + H)", f"(H**3 + {x}*H)", f"(H**4 - {x})",
            f"H*(H**2 - {n})*({x} - H)",
            f"(H - {x})*(H - 2*{x})", f"(H**2 + {x})*(1 - H)",
        ]))  # fmt: skip

    def call(self) -> str:
        """A function of single entries."""
        f = self.pick(FUNCTIONS)
        inner = self.pick(["H", "H", f"{self.coefficient()}*H", "2*H", f"(H - {self.letter('scalar')})", "H/2", "-H"])
        return f"{f}({inner})"

    def unknown(self) -> str:
        """A function that is learned, alone, under an operator, of neighbours or times the state."""
        declared = splines.draw(self.rng)
        self.learned.append(declared.text)
        shapes = ["{f}(H)", "{f}(H)", "{f}(2*H)", "{f}(-H)", "{f}(A@H)", "H*{f}(H)", "({f}(H) - {f}(H0))", "L@{f}(H)",
                  "({f}(H) + {f}(-H))", "{f}(H - A@H)", "{f}({f}(H))", "{f}(H)**2"]  # fmt: skip
        return str(self.pick(shapes)).format(f=declared.name)

    def rational(self) -> str:
        x, n = self.letter("scalar"), self.number()
        return str(self.pick([
            "H/(1 + H**2)", f"H**2/({x} + H**2)", "1/(1 + H**2)", f"H/({x}**2 + H**2)", "H**3/(1 + H**2)",
            f"({n} - H)/({x} + H**2)", "H**2/(1 + H**2)**2", f"H/(1 + {x}*H**2)", "1/(2 - H + H**2)",
            "H/sqrt(1 + H**2)",
            "sqrt(1 + H**2)",
        ]))  # fmt: skip

    def dependent(self) -> str:
        """Sums of functions that depend on each other: what looks different may be equal or cancel."""
        x = self.letter("scalar")
        return str(self.pick([
            "(relu(H) - relu(-H))", "(abs(H) - 2*relu(H))", "(sigmoid(2*H) - 0.5*tanh(H))", "(sin(H)**2 + cos(H)**2)",
            "(softplus(H) - softplus(-H))", "(abs(H)**2 - H**2)", "(exp(H)*exp(-H))", "(sigmoid(H) + sigmoid(-H))",
            "relu(H)*relu(-H)", "(tanh(H) + tanh(-H))", "(sqrt(H**2) - abs(H))", "abs(abs(H))", "relu(relu(H))",
            f"(exp({x} + H) - exp({x})*exp(H))", f"(abs({x}*H) - {x}*abs(H))", f"(relu({x}*H) - {x}*relu(H))",
            "(sin(2*H) - 2*sin(H)*cos(H))", "(1 - tanh(H)**2)", "sigmoid(H)*(1 - sigmoid(H))", "(abs(H) + H)/2",
        ]))  # fmt: skip

    def coupled(self) -> str:
        """Terms outside the exact class: products across nodes, mixing, masks, node coefficients."""
        x, node = self.letter("scalar"), self.letter("node")
        options = [
            "H*(A@H)", f"{self.pick(BOUNDED)}(A@H)", "relu(A@H - H)", f"{node}*H", f"{node}*(A@H)", f"A@({node}*H)",
            "(A@H)**2", "H*(L@H)", f"L@(H**3 - {x}*H)", "A@tanh(H)", "L@(H**2)", f"{node}*H*(1 - H)", "A@(H*(1 - H))",
            f"{node}*(H0 - H)", "abs(L@H)", "(A@H)*(1 - H)", "(A@H)*(1 - H**2)", f"tanh({node}*H)", f"{node}*tanh(H)",
            f"{node}*H0", f"{node}**2*H", "H*(1 - A@H)",
        ]  # fmt: skip
        if self.chance(0.3):
            self.kinds["M"] = "node"
            options = ["M*H", "M*H0", "M*M*H", "M*(H0 - H)", "(1 - M)*H", "M*(1 - M)*H**2", "M*H**2",
            "M*(A@H)", "M**3*H",
                       "A@(M*H)", "M*H*(1 - H)", "(M - M**2)*H**3", "M*tanh(H)"]  # fmt: skip
        elif self.chance(0.2):
            self.kinds["W"] = "matrix"
            options = ["H@W", "A@H@W", "tanh(H@W)", "L@H@W", "H@W@W", "tanh(A@H@W)", "relu(H)@W"]
        return str(self.pick(options))


def _joined(writer: Writer, terms: list[str]) -> str:
    text = ("-" if terms[0][0] not in "-(" and writer.chance(0.6) else "") + terms[0]
    for term in terms[1:]:
        text += f" {writer.sign()} {term}"
    return text


def _linear(w: Writer) -> list[str]:
    terms = [w.linear() for _ in range(int(w.rng.integers(1, 4)))]
    if w.chance(0.35):
        terms.append(w.linear("H0") if w.chance(0.4) else f"{w.coefficient()}*H0")
    return terms


def _reaction(w: Writer) -> list[str]:
    return [f"{w.coefficient()}*L@H", f"{w.coefficient()}*{w.polynomial()}"]


def _damped(w: Writer) -> list[str]:
    x, y = w.letter("scalar"), w.letter("scalar")
    return [f"-{x}*L@H", f"{y}*{w.polynomial()}"]


def _bare_reaction(w: Writer) -> list[str]:
    return [f"{w.coefficient()}*{w.polynomial()}"] + ([w.linear()] if w.chance(0.4) else [])


def _function(w: Writer) -> list[str]:
    extra = [f"{w.coefficient()}*H"] if w.chance(0.4) else []
    return [w.linear(), f"{w.coefficient()}*{w.call()}", *extra]


def _rational(w: Writer) -> list[str]:
    return [w.linear(), f"{w.coefficient()}*{w.rational()}"]


def _dependent(w: Writer) -> list[str]:
    tail = [f"{w.coefficient()}*{w.polynomial()}"] if w.chance(0.3) else []
    return [w.linear(), f"{w.coefficient()}*{w.dependent()}", *tail]


def _coupled(w: Writer) -> list[str]:
    tail = [f"{w.coefficient()}*{w.polynomial()}"] if w.chance(0.25) else []
    return [w.linear(), f"{w.coefficient()}*{w.coupled()}", *tail]


def _mixture(w: Writer) -> list[str]:
    makers = [w.linear, w.polynomial, w.call, w.rational, w.dependent, w.coupled, lambda: w.linear("H0")]
    terms = [f"{w.coefficient()}*{w.pick(makers)()}" for _ in range(int(w.rng.integers(1, 4)))]
    if w.chance(0.3):
        f = w.pick(("tanh", "relu", "abs", "sigmoid", "sin"))
        terms.append(f"{f}({w.linear()} {w.sign()} {w.pick(['H', 'H0', w.coefficient()])})")
    return terms


#: Shapes of nonlinear reactions: products with functions, compositions, quotients and roots.
SHAPES = (
    "{f}(H)", "H*{f}(H)", "H*{f}(1 - H)", "{f}(H)*(1 - H)", "{f}(H)*(1 - H**2)", "H*exp(-H)", "H*exp(-H**2)",
    "exp(-H**2)", "exp(-H)", "{f}({g}(H))", "{f}({n}*H)", "{f}(H) + {g}(H)", "{f}(H)*{g}(H)", "{f}(H)**2",
    "H/sqrt(1 + H**2)", "sqrt(1 + H**2)", "H/(1 + H**2)", "H**2/(1 + H**2)", "H*abs(H)", "{f}(H)/(1 + H**2)",
    "(1 - abs(H))", "H*(1 - abs(H))", "(softplus(H) - 1)", "(1 - exp(H))", "(exp(-H) - exp(H))", "(sigmoid(H) - 0.5)",
)  # fmt: skip


def _nonlinear(w: Writer) -> list[str]:
    smooth = ("tanh", "sigmoid", "sin", "cos", "softplus")
    shape = str(w.pick(SHAPES)).format(f=w.pick(smooth), g=w.pick(smooth), n=w.number())
    damping = [str(w.pick([f"{w.coefficient()}*H", f"{w.coefficient()}*H**3", f"{w.number()}"]))]
    return [f"-{w.letter('scalar')}*L@H", f"{w.coefficient()}*{shape}", *(damping if w.chance(0.6) else [])]


def _sourced(w: Writer) -> list[str]:
    tail = [f"{w.coefficient()}*{w.polynomial()}"] if w.chance(0.5) else []
    return [f"{w.coefficient()}*L@H", f"{w.coefficient()}*(H0 - H)" if w.chance(0.5) else w.linear("H0"), *tail]


def _learned(w: Writer) -> list[str]:
    damping = [str(w.pick(["-H", f"-{w.letter('scalar')}*H", "-2*H", "-H**3", f"{w.coefficient()}*{w.polynomial()}"]))]
    return [f"-{w.letter('scalar')}*L@H", f"{w.pick(['1', '1', w.coefficient()])}*{w.unknown()}",
            *(damping if w.chance(0.6) else [])]  # fmt: skip


#: Equations close to those in use.
USUAL = (
    "-alpha*L@H", "-alpha*L@H + beta*H*(1 - H)", "-alpha*L@H + beta*H*(1 - H**2)", "-alpha*L@H + beta*H*(H - H**2)",
    "-alpha*L@H + beta*(A@H - A@A@H)", "-alpha*L@H + beta*H0", "-alpha*L@H + beta*L@H", "-alpha*L@H + beta*(L@H + H)",
    "-alpha*L@H + beta*(H + A@H)", "-L@H + M*H0", "-L@H + H@W + H0", "A@H@W - omega*H + beta*H0",
    "-alpha*(1 - beta)*L@H + delta*H*(1 - H**2)", "-alpha*L@H + beta*(H0 - H)", "A@H - H",
    "-alpha*L@H + beta*H*(1 - H)*(H - a)", "0.5*a*(A@H - H) + H@W - H + H0", "-alpha*L@H + beta*tanh(H)",
    "-alpha*L@H - beta*H**3 + gamma*H", "-alpha*L@H - beta*L@L@H",
)  # fmt: skip


def _usual(w: Writer) -> list[str]:
    text = str(w.pick(USUAL))
    for name in sorted(expressions.names(text) - set(STRUCTURAL)):
        kind = "matrix" if name == "W" else "node" if name == "M" else "scalar"
        w.kinds[name] = "channel" if name == "omega" else kind
    if not w.plain and w.chance(0.15) and "alpha" in w.kinds:
        w.kinds["alpha"] = str(w.pick(["channel", "node"]))
    return [f"({text})"] + ([w.linear()] if w.chance(0.15) else [])


RECIPES: dict[str, tuple[float, Callable[[Writer], list[str]]]] = {
    "linear": (0.2, _linear),
    "reaction": (0.14, _reaction),
    "damped": (0.12, _damped),
    "bare reaction": (0.08, _bare_reaction),
    "function": (0.1, _function),
    "rational": (0.05, _rational),
    "dependent": (0.08, _dependent),
    "coupled": (0.09, _coupled),
    "mixture": (0.04, _mixture),
    "sourced": (0.05, _sourced),
    "usual": (0.05, _usual),
    "nonlinear": (0.12, _nonlinear),
    "learned": (0.08, _learned),
}


def draw(rng: Random, recipe: str | None = None) -> Drawn:
    """A random system; its assumptions can be satisfied."""
    if recipe is None:
        shares = np.array([share for share, _ in RECIPES.values()])
        recipe = str(rng.choice(list(RECIPES), p=shares / shares.sum()))
    while True:
        writer = Writer(rng, plain=bool(rng.random() < 0.7))
        body = _joined(writer, RECIPES[recipe][1](writer))
        used = expressions.names(body)
        if not used & {"H", "H0"}:
            continue
        kinds = {n: k for n, k in writer.kinds.items() if n in used}
        drawn = Drawn(
            body, tuple(sorted(kinds.items())), _statements(writer, kinds), recipe, learned=tuple(writer.learned)
        )
        try:
            drawn.values(np.random.default_rng(0))
        except Unsatisfied:
            continue
        return drawn


def _statements(w: Writer, kinds: Mapping[str, str]) -> tuple[str, ...]:
    """Assumptions of every kind: signs in words and as comparisons, bounds, relations, chains."""
    found: list[str] = []
    names = [n for n, k in kinds.items() if k != "matrix" and n != "M"]
    scalars = [n for n in names if kinds[n] == "scalar"]
    for name in names:
        if w.chance(0.25):
            word = str(w.pick(["real", "real", "negative", "nonnegative", "nonpositive", "positive"]))
            shown = {"negative": f"{name} < 0", "nonnegative": f"{name} >= 0", "nonpositive": f"0 >= {name}"}
            found.append(shown[word] if word in shown and w.chance(0.5) else f"{name} {word}")
    if scalars and w.chance(0.2):
        x = w.pick(scalars)
        found.append(str(w.pick([f"{x} < 1", f"{x} <= 2", f"{x} > 1", f"{x} >= 0.5", f"{x} < 3"])))
    if len(scalars) > 1 and w.chance(0.3):
        x, y = w.rng.permutation(scalars)[:2]
        found.append(str(w.pick([f"{x} <= {y}", f"{x} < {y}", f"{x} <= 2*{y}", f"{x} > {y}", f"0 < {x} <= {y}",
                                 f"{x} + {y} < 3", f"{x}*{y} <= 1", f"{x}**2 < {y}", f"{x} >= {y} + 1"])))  # fmt: skip
    unique: dict[str, str] = {}
    for text in found:
        unique.setdefault(text, text)
    return tuple(unique)
