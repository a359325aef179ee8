"""Tree to text and to LaTeX. The text reads back to the same tree, bracket for bracket."""

from __future__ import annotations

import re
from html import escape
from urllib.parse import quote

import sympy as sp
from sympy.printing.conventions import split_super_sub
from sympy.printing.pretty.pretty_symbology import greek_unicode

from rdgraph.language.tree import (
    MAX_DECIMAL_EXPONENT,
    MAX_DIGITS,
    Apply,
    Call,
    Fold,
    Kind,
    Minus,
    Name,
    Negative,
    Over,
    Plus,
    Power,
    Times,
    kind_of,
)
from rdgraph.vocabulary.functions import FUNCTIONS
from rdgraph.vocabulary.learned_functions import short_name

# ---------------------------------------------------------------------- printer
_SIGN = {Plus: " + ", Minus: " - ", Times: "*", Over: "/", Apply: "@"}
_LEVEL = {Plus: 1, Minus: 1, Times: 2, Over: 2, Apply: 2, Negative: 3, Power: 4}
_ATOM = 5
#: Kinds whose products and powers are taken entry by entry.
_LINEAR = (Kind.OPERATOR, Kind.MATRIX)
_SPREAD = (Kind.FIELD, Kind.NODE, Kind.CHANNEL)


def _level(node: sp.Basic) -> int:
    return _LEVEL.get(type(node), _ATOM)  # type: ignore[arg-type]


def to_text(node: sp.Basic) -> str:
    """The text of a tree, with the fewest brackets that keep its structure."""
    return _TEXT(node)


class _Text(Fold[str]):
    """A tree in the language."""

    def number(self, node: sp.Rational) -> str:
        return _decimal(node)

    def name(self, node: Name) -> str:
        return node.name

    def plus(self, node: Plus | Minus | Times | Over | Apply) -> str:
        level = _level(node)
        return self.bracketed(node.left, level) + _SIGN[type(node)] + self.bracketed(node.right, level + 1)

    minus = times = over = apply = plus

    def negative(self, node: Negative) -> str:
        return "-" + self.bracketed(node.inner, _LEVEL[Negative])

    def power(self, node: Power) -> str:
        return f"{self.bracketed(node.base, _ATOM)}**{node.exponent}"

    def call(self, node: Call) -> str:
        return f"{short_name(node.function)}({self(node.argument)})"

    def bracketed(self, node: sp.Basic, level: int) -> str:
        text = self(node)
        return text if _level(node) >= level else f"({text})"


_TEXT = _Text()


def _decimal(number: sp.Rational) -> str:
    """A terminating decimal, digit for digit; with an exponent where the plain form is too long to be read back."""
    step = 1 if number > 1 else -1
    for exponent in range(0, step * (MAX_DECIMAL_EXPONENT + 1), step):
        text = _plain(number * sp.Integer(10) ** -exponent)
        if len(text.replace(".", "").removeprefix("0")) <= MAX_DIGITS:
            return f"{text}e{exponent}" if exponent else text
    return _plain(number)


def _plain(number: sp.Rational) -> str:
    if number.q == 1:
        return str(number.p)
    places = 0
    scaled = number
    while scaled.q != 1:
        scaled, places = scaled * 10, places + 1
    digits = str(scaled.p).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"


def to_latex(node: sp.Basic) -> str:
    """LaTeX of a tree: operators and fields upright bold, Hadamard products as a circled dot."""
    return _LATEX(node)


def upright(name: str) -> str:
    r"""LaTeX of a function without a special notation, with {} for the argument.

    >>> upright("soft_step").format("x")
    '\\operatorname{soft\\_step}\\left(x\\right)'
    """
    escaped = name.replace("_", r"\_")
    return rf"\operatorname{{{{{escaped}}}}}\left({{}}\right)"


class _Latex(Fold[str]):
    """A tree in LaTeX."""

    def number(self, node: sp.Rational) -> str:
        return str(sp.latex(node))

    def name(self, node: Name) -> str:
        return _latex_name(node)

    def plus(self, node: Plus | Minus) -> str:
        right = self.bracketed(node.right, 4 if isinstance(node.right, Negative) else 2)
        return self.bracketed(node.left, 1) + _SIGN[type(node)] + right

    minus = plus

    def negative(self, node: Negative) -> str:
        return "-" + self.bracketed(node.inner, 4 if isinstance(node.inner, Negative) else 2)

    def times(self, node: Times) -> str:
        both = all(kind_of(side) in _SPREAD for side in node.args)
        digits = isinstance(node.right, sp.Rational | Power) and self(node.right)[:1].isdigit()
        sign = r" \odot " if both else r" \cdot " if digits else " "
        return self.bracketed(node.left, 2) + sign + self.bracketed(node.right, 4)

    def apply(self, node: Apply) -> str:
        return self.bracketed(node.left, 2) + " " + self.bracketed(node.right, 4)

    def over(self, node: Over) -> str:
        return rf"\frac{{{self(node.left)}}}{{{self(node.right)}}}"

    def power(self, node: Power) -> str:
        mark = r"\circ " if kind_of(node.base) in _SPREAD else ""
        base = self.bracketed(node.base, _ATOM)
        fraction = isinstance(node.base, Over) or (isinstance(node.base, sp.Rational) and node.base.q != 1)
        return (rf"\left({base}\right)" if fraction else base) + f"^{{{mark}{node.exponent}}}"

    def call(self, node: Call) -> str:
        """A function of the language in its usual notation, a declared one by its name."""
        shape = FUNCTIONS[node.function].latex if node.function in FUNCTIONS else upright(node.function)
        return shape.format(self(node.argument))

    def bracketed(self, node: sp.Basic, level: int) -> str:
        text = self(node)
        if isinstance(node, Over | Call) or _level(node) >= level:
            return text
        return rf"\left({text}\right)"


_LATEX = _Latex()
#: The diffusivity of a field, Du or Dv, which is written with an index.
_DIFFUSIVITY = re.compile(r"D([A-Za-z]\d*)")


def _latex_name(node: Name) -> str:
    if node.kind is Kind.FIELD:
        return _latex_field(node.name)
    if node.kind in (Kind.OPERATOR, Kind.MATRIX):
        return sp.latex(sp.MatrixSymbol(node.name, 1, 1), mat_symbol_style="bold")
    diffusivity = _DIFFUSIVITY.fullmatch(node.name)
    return sp.latex(sp.Symbol(f"D_{diffusivity[1]}" if diffusivity else node.name))


def _latex_field(name: str) -> str:
    """Bold; a velocity with a dot, a start at the time 0."""
    base = name.removesuffix("'")
    start = base.endswith("0") and len(base) > 1
    bold = str(sp.latex(sp.MatrixSymbol(base[:-1] if start else base, 1, 1), mat_symbol_style="bold"))
    dotted = bold if base == name else rf"\dot{{{bold}}}"
    return f"{dotted}(0)" if start else dotted


# ---------------------------------------------------------------------- prefix form
def to_term(node: sp.Basic) -> str:
    """The prefix form that `rdgraph.check_certificate` reads: (act A x) is A@x, (mix W x) is x@W, (call f x) is f(x).

    >>> from rdgraph.language.reader import read_expression
    >>> to_term(read_expression("-alpha*A@H + H**2/2"))
    '(+ (act (* (- alpha) A) H) (/ (* H H) 2))'
    """
    return _TERM(node)


class _Term(Fold[str]):
    """A tree in prefix form; coefficients of operators and matrices come first."""

    def number(self, node: sp.Rational) -> str:
        return str(node.p) if node.q == 1 else f"(/ {node.p} {node.q})"

    def name(self, node: Name) -> str:
        return node.name

    def plus(self, node: Plus | Minus) -> str:
        return f"({_SIGN[type(node)].strip()} {self(node.left)} {self(node.right)})"

    minus = plus

    def negative(self, node: Negative) -> str:
        return f"(- {self(node.inner)})"

    def times(self, node: Times) -> str:
        first, second = self(node.left), self(node.right)
        return f"(* {second} {first})" if kind_of(node.left) in _LINEAR else f"(* {first} {second})"

    def over(self, node: Over) -> str:
        if kind_of(node.left) in _LINEAR:
            return f"(* (/ 1 {self(node.right)}) {self(node.left)})"
        return f"(/ {self(node.left)} {self(node.right)})"

    def apply(self, node: Apply) -> str:
        left, right = self(node.left), self(node.right)
        if kind_of(node.right) is Kind.FIELD:
            return f"(act {left} {right})"
        return f"(mix {right} {left})" if kind_of(node.left) is Kind.FIELD else f"(@ {left} {right})"

    def power(self, node: Power) -> str:
        factors = " ".join([self(node.base)] * abs(node.exponent))
        if kind_of(node.base) in _LINEAR:
            return f"(@ {factors})" if factors else "I"
        product = f"(* {factors})" if factors else "1"
        return product if node.exponent >= 0 else f"(/ 1 {product})"

    def call(self, node: Call) -> str:
        return f"(call {quote(node.function, safe='')} {self(node.argument)})"  # learned functions have long keys


_TERM = _Term()

# ---------------------------------------------------------------------- mathml printer
# Tree to MathML, which browsers draw by themselves: the notation of the LaTeX, without anything to load.

_BOLD = 'mathvariant="normal" style="font-weight:bold"'
_THIN = '<mspace width="0.17em"/>'
#: Greek letters whose names differ from those of sympy.
_LETTERS = {"lam": "λ"}


def _function_sign(name: str) -> str:
    """A function as it is written: by the letter that LaTeX has for it, where there is one.

    >>> _function_sign("sigmoid"), _function_sign("tanh")
    ('σ', 'tanh')
    """
    macro = re.match(r"\\([a-z]+)", FUNCTIONS[name].latex) if name in FUNCTIONS else None
    return str(greek_unicode.get(macro[1] if macro else name, name))


def to_mathml(node: sp.Basic) -> str:
    """Presentation MathML of a tree, without the `math` element around it: operators and fields upright bold.

    >>> from rdgraph.language.reader import read_expression
    >>> to_mathml(read_expression("beta**2"))
    '<msup><mi>β</mi><mn>2</mn></msup>'
    """
    return _MATHML(node)


def math_element(inner: str, *, is_block: bool = True) -> str:
    """The <math> element around MathML, as a paragraph or within a line.

    >>> math_element("<mi>β</mi>", is_block=False)
    '<math display="inline"><mi>β</mi></math>'
    """
    display = "block" if is_block else "inline"
    return f'<math display="{display}">{inner}</math>'


def row(*parts: str) -> str:
    """Join MathML parts into one row."""
    return f"<mrow>{''.join(parts)}</mrow>"


def sign(text: str) -> str:
    """An operator sign, such as + or =."""
    return f"<mo>{escape(text)}</mo>"


class _MathML(Fold[str]):
    """A tree in MathML."""

    def number(self, node: sp.Rational) -> str:
        digits = f"<mn>{abs(node.p)}</mn>" if node.q == 1 else f"<mfrac><mn>{abs(node.p)}</mn><mn>{node.q}</mn></mfrac>"
        return digits if node >= 0 else row(sign("−"), digits)

    def name(self, node: Name) -> str:
        if node.kind is Kind.FIELD:
            return _field(node.name)
        diffusivity = _DIFFUSIVITY.fullmatch(node.name)
        return _letter(f"D_{diffusivity[1]}" if diffusivity else node.name, node.kind in (Kind.OPERATOR, Kind.MATRIX))

    def plus(self, node: Plus | Minus) -> str:
        right = self.bracketed(node.right, 4 if isinstance(node.right, Negative) else 2)
        return row(self.bracketed(node.left, 1), sign("+" if isinstance(node, Plus) else "−"), right)

    minus = plus

    def negative(self, node: Negative) -> str:
        return row(sign("−"), self.bracketed(node.inner, 4 if isinstance(node.inner, Negative) else 2))

    def times(self, node: Times) -> str:
        both = all(kind_of(side) in _SPREAD for side in node.args)
        first = node.right.base if isinstance(node.right, Power) else node.right
        between = sign("⊙") if both else sign("·") if isinstance(first, sp.Rational) else _THIN
        return row(self.bracketed(node.left, 2), between, self.bracketed(node.right, 4))

    def apply(self, node: Apply) -> str:
        return row(self.bracketed(node.left, 2), _THIN, self.bracketed(node.right, 4))

    def over(self, node: Over) -> str:
        return f"<mfrac>{row(self(node.left))}{row(self(node.right))}</mfrac>"

    def power(self, node: Power) -> str:
        base = self.bracketed(node.base, _ATOM)
        fraction = isinstance(node.base, Over) or (isinstance(node.base, sp.Rational) and node.base.q != 1)
        exponent = f"<mn>{node.exponent}</mn>"
        mark = row('<mo lspace="0" rspace="0">∘</mo>', exponent) if kind_of(node.base) in _SPREAD else exponent
        return f"<msup>{_brackets(base) if fraction else base}{mark}</msup>"

    def call(self, node: Call) -> str:
        argument = self(node.argument)
        if node.function == "sqrt":
            return f"<msqrt>{argument}</msqrt>"
        if node.function == "abs":
            return row(sign("|"), argument, sign("|"))
        return row(f'<mi mathvariant="normal">{escape(_function_sign(node.function))}</mi>', _brackets(argument))

    def bracketed(self, node: sp.Basic, level: int) -> str:
        text = self(node)
        is_closed = isinstance(node, Over | Call) or _LEVEL.get(type(node), _ATOM) >= level  # type: ignore[arg-type]
        return text if is_closed else _brackets(text)


_MATHML = _MathML()


def _brackets(inner: str) -> str:
    """Round brackets, which grow only around fractions and roots: fonts without maths draw large ones badly."""
    grows = "" if "<mfrac" in inner or "<msqrt" in inner else ' stretchy="false"'
    return row(f"<mo{grows}>(</mo>", inner, f"<mo{grows}>)</mo>")


def _letter(name: str, is_bold: bool = False) -> str:
    """A name with its index, Greek where it is the name of a Greek letter.

    >>> _letter("beta_1")
    '<msub><mi>β</mi><mn>1</mn></msub>'
    """
    stem, supers, subs = split_super_sub(name)
    shown = _LETTERS.get(stem) or greek_unicode.get(stem, stem)
    style = f" {_BOLD}" if is_bold else ' mathvariant="normal"' if len(shown) > 1 else ""
    base = f"<mi{style}>{escape(shown)}</mi>"
    above, below = (_index(parts) for parts in (supers, subs))
    if above and below:
        return f"<msubsup>{base}{below}{above}</msubsup>"
    return f"<msub>{base}{below}</msub>" if below else f"<msup>{base}{above}</msup>" if above else base


def _index(parts: list[str]) -> str:
    text = ",".join(parts)
    return "" if not text else f"<mn>{text}</mn>" if text.isdecimal() else f"<mi>{escape(text)}</mi>"


def _field(name: str) -> str:
    """Bold; a velocity with a dot, a start at the time 0."""
    base = name.removesuffix("'")
    is_start = base.endswith("0") and len(base) > 1
    letter = _letter(base[:-1] if is_start else base, is_bold=True)
    shown = letter if base == name else dotted(letter)
    return row(shown, sign("("), "<mn>0</mn>", sign(")")) if is_start else shown


def dotted(letter: str, order: int = 1) -> str:
    """The derivative in time: a dot above, or two."""
    return f"<mover>{letter}{sign({1: '˙', 2: '¨'}[order])}</mover>"
