"""Text to tree: a whitelist over Python's own `ast`, typed while it is read. Nothing is ever evaluated.

The grammar is numpy's notation: `+ - * /` and `**` act elementwise, `@` applies an operator or multiplies matrices.
Limits (length, nesting, exponents, digits) keep every refusal fast.
"""

from __future__ import annotations

import ast
import keyword
import operator
import re
import unicodedata
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Any

import sympy as sp

from rdgraph.errors import LanguageError, UnknownName, closest
from rdgraph.language.printer import to_text
from rdgraph.language.tree import (
    MAX_DECIMAL_EXPONENT,
    MAX_DIGITS,
    MAX_EXPONENT,
    Apply,
    Call,
    Kind,
    Minus,
    Name,
    Negative,
    Over,
    Plus,
    Power,
    Times,
    TypeMismatch,
    kind_of,
)
from rdgraph.vocabulary.functions import FUNCTIONS
from rdgraph.vocabulary.learned_functions import STANDARD_KNOTS, STANDARD_RANGE, LearnedFunction

# ---------------------------------------------------------------------- reader
MAX_LENGTH = 4000
MAX_NESTING = 60
MAX_TREE_DEPTH = 150

STRUCTURAL: dict[str, Kind] = {
    "H": Kind.FIELD,
    "H0": Kind.FIELD,
    "A": Kind.OPERATOR,
    "L": Kind.OPERATOR,
    "I": Kind.OPERATOR,
    "W": Kind.MATRIX,
    "M": Kind.NODE,
}
#: The time and white noise, which drive a system from outside.
TIME_LETTER, NOISE_LETTER = "t", "xi"
DRIVERS = {TIME_LETTER: Kind.SCALAR, NOISE_LETTER: Kind.FIELD}
USUAL_COEFFICIENTS = (
    "alpha", "beta", "gamma", "delta", "epsilon", "kappa", "mu", "nu", "a", "b", "c",
    "eta", "theta", "rho", "sigma", "omega",
)  # fmt: skip
#: Usual coefficients that give way to a function declared by their name, as in sigma(H) where sigma = tanh(H).
GIVING_WAY = frozenset({"eta", "theta", "rho", "sigma", "omega"})
#: Functions that are learned unless declared otherwise, and the current declarations of learned functions.
USUAL_LEARNED = ("phi", "psi")
LEARNED: dict[str, LearnedFunction] = {name: LearnedFunction(name) for name in USUAL_LEARNED}
#: Coefficients that need no declaration in equations of named fields; in dH/dt = f(H), where they would be ambiguous,
#: they do.
FIELD_COEFFICIENTS = {"d": "the degree of a node"}
#: Names that equations may not use: the symbols of answers, and constants.
RESERVED = {
    "lam": "an eigenvalue of L",
    "T": "the end time",
    "tau": "the step size",
    "R": "the radius of a box",
    "s": "the largest row sum of A",
    "h": "a single entry of the state",
    "h0": "a single entry of the initial state",
    "oo": "infinity",
    "pi": "the constant",
    "E": "the constant",
    "where": "the word before declarations",
}
#: The mark of a derivative in time, after the name of a field.
PRIME = "'"
_PRIMED = re.compile(r"[A-Za-z_]\w*'+")

_BINARY = {ast.Add: Plus, ast.Sub: Minus, ast.Mult: Times, ast.Div: Over, ast.MatMult: Apply}
_ARITHMETIC = {
    Negative: operator.neg, Plus: operator.add, Minus: operator.sub, Times: operator.mul, Over: operator.truediv,
    Power: operator.pow,
}  # fmt: skip
#: Bits of numbers that are put together while a text is read.
_NUMBER_BITS = 1000
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(r"-?\s*\d+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
#: Two factors without an operator between them, as in 2 H, 2H and (H) H.
_ADJACENT = re.compile(r"(?<=[\w.)'])\s+(?=[\w(.])|(?<=\d)(?=[A-Za-z_])|(?<=\))(?=[\w.])")
# Remedies and spellings are data: the reader of the explorer's page takes them from here.
#: Remedies for characters that the language does not have.
CHARACTER_REMEDIES = {
    "^": "write a power as **",
    "=": "write the right-hand side only, or u' = ... once for every field, with ; between them",
    ",": "separate equations by ; and give a function one argument in round brackets",
    "[": "use round brackets", "]": "use round brackets", "{": "use round brackets", "}": "use round brackets",
}  # fmt: skip
#: Remedies for frequent mistakes; {name} is the name at the mark.
REMEDIES = {
    "character": "use names, numbers, + - * / ** @ and round brackets",
    "factors": "write * between factors, or @ to apply an operator",
    "keyword": "{name} is a keyword of Python; choose another name, as in {name}_1",
    "syntax": "check brackets and operators near the mark",
}
#: Plain spellings of characters that are not ASCII.
SPELLINGS = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "κ": "kappa", "μ": "mu", "µ": "mu",
    "ν": "nu", "−": "-", "–": "-", "×": "*", "·": "*", "⊙": "*", "∘": "*", "²": "**2", "³": "**3",
    "А": "A", "Α": "A", "Н": "H", "Η": "H", "Ι": "I", "І": "I", "Μ": "M", "М": "M", "ℋ": "H",
    "а": "a", "Ь": "b", "с": "c",
}  # fmt: skip


@dataclass(frozen=True)
class Vocabulary:
    """The names a text may use: letters with their kinds, and functions, declared and learned ones included."""

    kinds: Mapping[str, Kind] = dataclass_field(default_factory=dict)
    functions: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    learned: Mapping[str, LearnedFunction] = dataclass_field(default_factory=dict)

    @classmethod
    def standard(
        cls,
        coefficients: Mapping[str, Kind] | None = None,
        functions: Iterable[str] = (),
        fields: Iterable[str] | None = None,
        learned: Mapping[str, LearnedFunction] | None = None,
    ) -> Vocabulary:
        """H, H0, A, L, I, W, M, t, xi, the usual coefficients, phi and psi, and the declared names.

        Named `fields` replace H: each adds its initial state, u0, and the usual names of its diffusivity, Du and D_u,
        but not for a velocity such as u'. With named fields d is a coefficient as well.
        """
        named = tuple(functions)
        usual = [letter for letter in USUAL_COEFFICIENTS if letter not in GIVING_WAY.intersection(named)]
        kinds: dict[str, Kind] = {**STRUCTURAL, **DRIVERS, **dict.fromkeys(usual, Kind.SCALAR)}
        names = tuple(fields or ())
        if fields is not None:
            del kinds["H"], kinds["H0"]
            kinds.update(dict.fromkeys((*FIELD_COEFFICIENTS, *usual_of_fields(names)), Kind.SCALAR))
            kinds.update({letter: Kind.FIELD for name in names for letter in (name, start_of(name))})
        kinds.update(coefficients or {})
        standing = {n: f for n, f in LEARNED.items() if n not in kinds and n not in named and n not in FUNCTIONS}
        return cls(kinds, named, names, {**standing, **(learned or {})})

    def without(self, *letters: str) -> Vocabulary:
        return replace(self, kinds={n: k for n, k in self.kinds.items() if n not in letters})

    def extended(self, letters: Mapping[str, Kind]) -> Vocabulary:
        return replace(self, kinds={**self.kinds, **letters})

    @property
    def function_names(self) -> list[str]:
        """The functions of the language and the declared ones."""
        return [*FUNCTIONS, *self.functions, *self.learned]


def start_of(name: str) -> str:
    """The name of the initial state of a field.

    >>> start_of("u"), start_of("u'")
    ('u0', "u0'")
    """
    return f"{name[:-1]}0{PRIME}" if name.endswith(PRIME) else f"{name}0"


def usual_of_fields(names: Iterable[str]) -> tuple[str, ...]:
    """Coefficients of named fields that need no declaration: their diffusivities."""
    return tuple(f"{lead}{name}" for name in names if not name.endswith(PRIME) for lead in ("D", "D_"))


def check_new_name(name: str) -> None:
    """Raise where a declared name is malformed or reserved."""
    if not isinstance(name, str):
        raise LanguageError(
            str(name)[:40], 0, expected="a name as text", got=type(name).__name__, remedy="declare names, as in ['k']"
        )
    meaning = RESERVED.get(name)
    if name in STRUCTURAL or name in DRIVERS:
        meaning = "a letter of the language"
    elif name in FUNCTIONS:
        meaning = "an elementwise function"
    if meaning:
        raise LanguageError(
            name, 0, expected="a free name", got=f"{name!r}, reserved for {meaning}", remedy=f"call it {name}_1"
        )
    if not _NAME.fullmatch(name) or name.startswith("_"):
        raise LanguageError(
            name, 0, expected="letters, digits and _", got=repr(name), remedy="start with a letter, as in k1"
        )
    if keyword.iskeyword(name):
        raise LanguageError(
            name, 0, expected="a free name", got=f"{name!r}, a Python keyword", remedy=f"call it {name}_1"
        )


def number_value(node: sp.Basic) -> sp.Rational | None:
    """Value of a tree of plain numbers; None where it has names or functions, or too many digits.

    >>> number_value(read_expression("(1 - 0.5*2)")), number_value(read_expression("2*alpha"))
    (0, None)
    """
    if isinstance(node, sp.Rational):
        return node
    if not isinstance(node, Negative | Power | Plus | Minus | Times | Over):
        return None
    values = [number_value(part) for part in node.args]
    if any(value is None or value.p.bit_length() + value.q.bit_length() > _NUMBER_BITS for value in values):
        return None
    result: sp.Rational = _ARITHMETIC[type(node)](*values)  # type: ignore[operator]
    return result


def read_expression(text: str, vocabulary: Vocabulary | None = None, *, offset: int = 0) -> sp.Basic:
    """The typed tree of a text; `offset` shifts reported columns when the text is part of a longer one.

    >>> read_expression("-alpha*L@H").func.__name__
    'Apply'
    """
    return _Reader(text, vocabulary or Vocabulary.standard(), offset).read()


class _Reader:
    def __init__(self, text: str, vocabulary: Vocabulary, offset: int) -> None:
        self.text, self.vocabulary = text, vocabulary
        self.full = " " * offset + text
        self.shift = offset

    def error(self, at: int, expected: str, got: str, remedy: str) -> LanguageError:
        return LanguageError(self.full, at + self.shift, expected=expected, got=got, remedy=remedy)

    def read(self) -> sp.Basic:
        self.check_characters()
        tree = self.syntax_tree()
        self.check_depth(tree)
        result = self.convert(tree)
        if (length := len(to_text(result))) > MAX_LENGTH:
            raise self.error(0, f"at most {MAX_LENGTH} characters when printed", f"{length}", "shorten the equation")
        return result

    def check_characters(self) -> None:
        text = self.text
        if not text.strip():
            raise self.error(0, "an equation", "nothing", 'write the right-hand side, as in "-alpha*L@H"')
        depth = 0
        for at, character in enumerate(text[: MAX_LENGTH + 1]):
            if not (character.isascii() and (character.isalnum() or character in "_+-*/@(). \t\n'")):
                raise self.unexpected_character(at, character)
            depth += (character == "(") - (character == ")")
            if depth > MAX_NESTING:
                raise self.error(at, f"at most {MAX_NESTING} nested brackets", "more", "remove superfluous brackets")
        if len(text) > MAX_LENGTH:
            got = f"{len(text)} characters"
            raise self.error(MAX_LENGTH, f"at most {MAX_LENGTH} characters", got, "shorten the equation")
        marked = {at for match in _PRIMED.finditer(text) for at in range(*match.span())}
        for at, character in enumerate(text):
            if character == PRIME and at not in marked:
                raise self.error(at, "' after the name of a field", "' alone", "write u' for the derivative of u")
            if (
                character == PRIME
                and (following := text[at + 1 : at + 2])
                and (following.isalnum() or following == "_")
            ):
                got = f"{following!r} right after it"
                raise self.error(at + 1, "an operator after u'", got, REMEDIES["factors"])

    def unexpected_character(self, at: int, character: str) -> LanguageError:
        if character.isascii():
            remedy = CHARACTER_REMEDIES.get(character, REMEDIES["character"])
            return self.error(at, "a character of the language", repr(character), remedy)
        name = unicodedata.name(character, "unnamed character")
        plain = SPELLINGS.get(character) or unicodedata.normalize("NFKC", character)
        remedy = f"write {plain}" if plain.isascii() and plain.strip() else "use plain ASCII"
        return self.error(at, "plain ASCII text", f"{character!r} ({name})", remedy)

    def syntax_tree(self) -> ast.expr:
        flat = self.text.replace("\n", " ").replace("\t", " ").replace(PRIME, "_")
        self.indent = len(flat) - len(flat.lstrip())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(flat.strip(), mode="eval").body
        except SyntaxError as problem:
            at = self.indent + (problem.offset - 1 if problem.offset else len(flat.strip()))
            found = repr(self.text[at]) if at < len(self.text.rstrip()) else "the end of the text"
            got = found if problem.msg in (None, "invalid syntax") else problem.msg
            expected, remedy = "an expression", REMEDIES["syntax"]
            words = [word for word in _NAME.finditer(flat) if keyword.iskeyword(word[0])]
            if words:
                at, got = words[0].start(), f"{words[0][0]!r}, a Python keyword"
                remedy = REMEDIES["keyword"].format(name=words[0][0])
            elif gap := _ADJACENT.search(self.text.rstrip(), self.indent):
                at, expected, remedy = gap.end(), "an operator between factors", REMEDIES["factors"]
                before = re.search(r"[A-Za-z_]\w*$", self.text[: gap.start()])
                if before and before[0] in self.vocabulary.function_names:
                    at, expected, remedy = (
                        before.start(),
                        f"{before[0]}(...)",
                        f"write {before[0]}( ... ) with brackets",
                    )
                got = repr(re.match(r"\w*'*|.", self.text[at:])[0] or self.text[at])  # type: ignore[index]
            raise self.error(at, expected, got, remedy) from None
        except (ValueError, MemoryError, RecursionError):
            raise self.error(0, "an expression", "nesting too deep to read", "simplify the equation") from None

    def check_depth(self, tree: ast.expr) -> None:
        level: list[ast.AST] = [tree]
        for _ in range(MAX_TREE_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
            if not level:
                return
        at = getattr(level[0], "col_offset", 0) + self.indent
        raise self.error(at, f"a tree at most {MAX_TREE_DEPTH} deep", "a deeper one", "group terms with brackets")

    def convert(self, node: ast.expr) -> sp.Basic:
        at = node.col_offset + self.indent
        match node:
            case ast.BinOp(op=ast.Pow()):
                return self.power(node)
            case ast.BinOp(op=op) if type(op) in _BINARY:
                left, right, at = self.convert(node.left), self.convert(node.right), self.operator_place(node)
                self.check_divisor(right, at, divides=isinstance(op, ast.Div))
                return self.typed(_BINARY[type(op)](left, right), at)
            case ast.UnaryOp(op=ast.USub()):
                return self.typed(Negative(self.convert(node.operand)), at)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.convert(node.operand)
            case ast.Name():
                return self.letter(self.source(node), at)
            case ast.Constant():
                return self.number(node, at)
            case ast.Call():
                return self.call(node, at)
        got = type(node).__name__
        raise self.error(at, "names, numbers, + - * / ** @ and functions", got, "rewrite this part as plain maths")

    def operator_place(self, node: ast.BinOp) -> int:
        """Column of the operator sign between the operands."""
        start = (node.left.end_col_offset or 0) + self.indent
        stop = node.right.col_offset + self.indent
        gap = self.text[start:stop]
        sign = re.search(r"[-+*/@]", gap)
        return start + (sign.start() if sign else 0)

    def typed(self, node: sp.Basic, at: int) -> sp.Basic:
        try:
            kind_of(node)
        except TypeMismatch as mismatch:
            raise self.error(at, mismatch.expected, mismatch.got, mismatch.remedy) from None
        return node

    def letter(self, name: str, at: int) -> Name:
        kind = self.vocabulary.kinds.get(name)
        if kind is not None:
            return Name(name, kind)
        if name in self.vocabulary.function_names:
            raise self.error(at, f"{name}(...)", f"{name} without brackets", f"write {name}(H)")
        if name in RESERVED:
            got = f"{name!r}, reserved for {RESERVED[name]}"
            raise self.error(at, "a letter of the language", got, "use another name for a coefficient")
        if name in FIELD_COEFFICIENTS:
            got = f"{name!r}, which could be {FIELD_COEFFICIENTS[name]}"
            remedy = f"declare the coefficient: where {name} scalar; degrees come with the normalisation of A"
            raise self.error(at, "a letter with one meaning", got, remedy)
        if name.endswith(PRIME):
            raise self.unknown_derivative(name, at)
        near = closest(name, [*self.vocabulary.kinds, *self.vocabulary.function_names])
        sort = "operator" if self.text[at + len(name) :].lstrip().startswith("@") else "scalar"
        remedy = (f"did you mean {near}?  " if near else "") + f"declare it: where {name} {sort}"
        if self.vocabulary.fields:
            expected = "a field that has an equation, or a coefficient"
            got = f"{name!r}, which has neither equation nor declaration"
            raise self.error(at, expected, got, f"{remedy}, or give {name}' = ...")
        raise self.error(at, "a known name", f"unknown name {name!r}", remedy)

    def unknown_derivative(self, name: str, at: int) -> LanguageError:
        base = name.rstrip(PRIME)
        second = f"{base}{PRIME}{PRIME}"
        if len(name) - len(base) > 1:
            return self.error(
                at, "derivatives below the second on this side", name, f"write {second} = ... on the left"
            )
        return self.error(
            at, f"a state; {name} is one where {base} has an equation of second order", name,
            f"write the right-hand side of {name} in its place, or give {second} = ...",
        )  # fmt: skip

    def number(self, node: ast.Constant, at: int) -> sp.Rational:
        literal = self.text[at : (node.end_col_offset or 0) + self.indent]
        match = _NUMBER.fullmatch(literal)
        if not match:
            raise self.error(at, "a decimal number", literal[:20] or repr(node.value)[:20], "write it as 0.25 or 3")
        exponent = match.group(2)
        if len(match.group(1).replace(".", "").removeprefix("0")) > MAX_DIGITS or (
            exponent and abs(int(exponent[1:])) > MAX_DECIMAL_EXPONENT
        ):
            got = f"a literal of {len(literal)} characters"
            raise self.error(
                at, f"at most {MAX_DIGITS} digits, exponent {MAX_DECIMAL_EXPONENT}", got, "name the constant"
            )
        return sp.Rational(literal)

    def power(self, node: ast.BinOp) -> sp.Basic:
        base, at = self.convert(node.left), self.operator_place(node)
        literal = self.source(node.right)
        if not _WHOLE.fullmatch(literal):
            column = node.right.col_offset + self.indent
            raise self.error(column, "a whole number as exponent", literal[:20], "write H**2; for roots use sqrt(H)")
        exponent = int("".join(literal.split()))
        if abs(exponent) > MAX_EXPONENT:
            raise self.error(at, f"an exponent of at most {MAX_EXPONENT}", literal[:20], "use a smaller power")
        self.check_divisor(base, at, divides=exponent < 0)
        return self.typed(Power(base, sp.Integer(exponent)), at)

    def check_divisor(self, divisor: sp.Basic, at: int, *, divides: bool) -> None:
        if divides and number_value(divisor) == 0:
            raise self.error(at, "a divisor other than 0", to_text(divisor), "division by zero has no value")

    def source(self, node: ast.expr) -> str:
        """The source text of a node, without brackets around it."""
        return self.text[node.col_offset + self.indent : (node.end_col_offset or 0) + self.indent]

    def call(self, node: ast.Call, at: int) -> sp.Basic:
        if not isinstance(node.func, ast.Name):
            raise self.error(at, "a function name before the bracket", type(node.func).__name__, REMEDIES["factors"])
        name = self.source(node.func)
        known = self.vocabulary.function_names
        if name not in known:
            near = closest(name, known)
            remedy = f"did you mean {near}?" if near else f"known functions: {', '.join(known)}"
            if name.isidentifier():
                remedy += f"; rd.register_function({name!r}, FORMULA) adds one, where {name} learned trains it"
            if name in self.vocabulary.kinds:
                remedy = f"{name} is not a function; write {name}*( ... ) or {name}@( ... )"
            raise self.error(at, "a known function", repr(name), remedy)
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            got = f"{len(node.args) + len(node.keywords)} arguments"
            raise self.error(at, f"{name}(expression)", got, "give exactly one expression")
        function = self.vocabulary.learned[name].key if name in self.vocabulary.learned else name
        return self.typed(Call(function, self.convert(node.args[0])), at)


# ---------------------------------------------------------------------- learned names
# Learned functions: `phi` and `psi` by default, and those that `learned` declares.


def learned(
    name: str,
    *,
    knots: int = STANDARD_KNOTS,
    range: tuple[Any, Any] = STANDARD_RANGE,  # noqa: A002 - the word for it
    odd: bool = False,
    monotone: str | None = None,
    bound: Any = None,
    lipschitz: Any = None,
    per_channel: bool = False,
) -> LearnedFunction:
    """Declare a learned function of one entry, for all equations read afterwards.

    Args:
        name: its name in equations, which must be free.
        knots: number of equidistant knots of the cubic spline.
        range: (lower, upper), the first and the last knot; beyond them the function is a straight line.
        odd: phi(-x) = -phi(x).
        monotone: "nondecreasing" or "nonincreasing".
        bound: |phi(x)| <= bound everywhere.
        lipschitz: |phi'(x)| <= lipschitz everywhere.
        per_channel: one function for each channel of the state.

    Returns:
        The declaration. A system keeps the declaration it was read with and writes it after `where`.

    Raises:
        InvalidArgument: no spline satisfies the declaration.
        LanguageError: the name is reserved.

    The declared facts hold for all values of the parameters; proofs use nothing else.

    >>> import rdgraph as rd
    >>> _ = rd.vocabulary.learned("gate_example", knots=8, odd=True, lipschitz=2)
    >>> print(rd.parse("-alpha*L@H + gate_example(H)"))
    -alpha*L@H + gate_example(H) where gate_example learned knots=8 range=-3:3 odd lipschitz=2
    >>> rd.vocabulary.forget_learned("gate_example")
    """
    check_new_name(name)
    declared = LearnedFunction(
        name, knots, range, odd, monotone=monotone, bound=bound, lipschitz=lipschitz, per_channel=per_channel
    )
    LEARNED[name] = declared
    return declared


def declared_names() -> tuple[str, ...]:
    """The names whose meaning differs from that in a process without declarations."""
    usual = {name: LearnedFunction(name) for name in USUAL_LEARNED}
    return tuple(name for name, declared in LEARNED.items() if usual.get(name) != declared)


def forget_learned(name: str) -> None:
    """Remove a declaration of `learned`; equations read before keep it.

    Args:
        name: the name of a declared function.

    Raises:
        UnknownName: no function is declared under this name.

    >>> import rdgraph as rd
    >>> _ = rd.vocabulary.learned("gate_example")
    >>> rd.vocabulary.forget_learned("gate_example")
    """
    if name not in LEARNED:
        raise UnknownName("learned function", name, LEARNED)
    del LEARNED[name]
    LEARNED.update({usual: LearnedFunction(usual) for usual in USUAL_LEARNED if usual == name})
