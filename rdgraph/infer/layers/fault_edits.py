"""Single faults of an equation, as trees: a sign, an operator, a power, a term, a function, a coefficient, a letter.

Where a layer differs from its equation, the equation with one fault that agrees says what the layer does instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from rdgraph.infer.layers.function_inverses import GATE, KINK
from rdgraph.language.printer import to_text
from rdgraph.language.tree import (
    ELEMENTWISE,
    Apply,
    Call,
    Kind,
    Minus,
    Name,
    Negative,
    Node,
    Over,
    Plus,
    Power,
    Times,
    field,
    kind_of,
    names_in,
    operator,
)
from rdgraph.vocabulary.functions import FUNCTIONS

#: Names of the letters that stand for a number or a coefficient that is fitted anew.
FREED = "fitted"
_I, _A, _L = operator("I"), operator("A"), operator("L")
#: What is written for a letter by mistake, each with its words.
_INSTEAD: dict[str, tuple[tuple[sp.Basic, str], ...]] = {
    "L": ((Minus(_I, _A), "I - A"), (Plus(_I, _A), "I + A"), (_A, "A"), (_I, "I"), (Minus(_A, _I), "A - I")),
    "A": ((_L, "L"), (_I, "I"), (Plus(_I, _A), "I + A"), (Minus(_A, _I), "A - I")),
    "I": ((_A, "A"), (_L, "L")),
}
#: What may stand for an operator that has a rule of its own.
_FOR_OTHERS = ((_A, "A"), (Negative(_A), "-A"), (_L, "L"), (_I, "I"))


@dataclass(frozen=True)
class Edit:
    """A fault: its kind, what it is in words, the term that it concerns, and the equation with it.

    `freed` is the letter, or `FREED` for a number, in whose place a value is fitted anew.
    """

    kind: str
    text: str
    term: str
    tree: sp.Basic
    freed: str = ""


def single_faults(tree: sp.Basic) -> Iterator[Edit]:
    """Every single fault of a right-hand side that is tried, each once."""
    seen = {tree}
    ruled, usual = (list(_everywhere(tree, own)) for own in (True, False))
    for edit in (*ruled, *_whole(tree), *_inside(tree), *usual):
        if edit.tree not in seen and _is_field(edit.tree):
            seen.add(edit.tree)
            yield edit


def _is_field(tree: sp.Basic) -> bool:
    return kind_of(tree) in ELEMENTWISE and any(n.kind is Kind.FIELD for n in names_in(tree))


def _whole(tree: sp.Basic) -> Iterator[Edit]:
    text = to_text(tree)
    yield Edit("sign", "the sign of everything is flipped", text, Negative(tree))
    for name in FUNCTIONS:
        if not isinstance(tree, Call):
            yield Edit("activation", f"{name} is applied to the result", text, Call(name, tree))
    freed = Name(FREED, Kind.SCALAR)
    yield Edit("coefficient", "everything has another factor", text, Times(freed, tree), FREED)
    yield Edit("coefficient", "something is added to everything", text, Plus(tree, Name(FREED, Kind.CHANNEL)), FREED)


def _everywhere(tree: sp.Basic, is_ruled: bool) -> Iterator[Edit]:
    """An operator, with a rule of its own or one of the language, that is another one wherever it stands."""
    for letter in names_in(tree):
        if letter.kind is Kind.OPERATOR and (letter.name not in _INSTEAD) is is_ruled:
            for other, word in _INSTEAD.get(letter.name, _FOR_OTHERS):
                text = f"{word} stands where the equation has {letter.name}, everywhere"
                yield Edit("operator", text, letter.name, tree.xreplace({letter: other}))


def _inside(node: sp.Basic) -> Iterator[Edit]:
    """Faults at a node and below it; what is rebuilt around a fault keeps its words."""
    if not isinstance(node, Node | sp.Rational):
        return
    yield from _at(node)
    for place, part in enumerate(node.args):
        if isinstance(part, Node | sp.Rational) and not (isinstance(node, Power) and place == 1):
            for edit in _inside(part):
                arguments = [*node.args[:place], edit.tree, *node.args[place + 1 :]]
                try:
                    made = node.func(*arguments)
                    kind_of(made)
                except Exception:  # an edit that has no kind here is no equation
                    continue
                term = edit.term if isinstance(node, Plus | Minus) else to_text(node)
                yield Edit(edit.kind, edit.text, term, made, edit.freed)


def _at(node: sp.Basic) -> Iterator[Edit]:
    text = to_text(node)
    match node:
        case sp.Rational():
            if node not in (0, 1):
                yield Edit("coefficient", f"the number {text} is another one", text, Name(FREED, Kind.SCALAR), FREED)
        case Name():
            yield from _letters(node)
        case Plus() | Minus():
            yield from _terms(node)
        case Negative():
            yield Edit("sign", f"the sign of {to_text(node.inner)} is flipped", text, node.inner)
        case Power():
            yield from _powers(node)
        case Call():
            yield from _functions(node)
        case Apply():
            yield from _applied(node)
        case Times() | Over():
            if kind_of(node.left) in ELEMENTWISE and kind_of(node.right) in ELEMENTWISE:
                yield Edit("coefficient", f"the factor {to_text(node.right)} is missing", text, node.left)
            if kind_of(node.left) in ELEMENTWISE:
                yield Edit("coefficient", f"the factor {to_text(node.left)} is missing", text, node.right)


def _letters(node: Name) -> Iterator[Edit]:
    name = node.name
    match node.kind:
        case Kind.OPERATOR:
            for tree, word in _INSTEAD.get(name, _FOR_OTHERS):
                yield Edit("operator", f"{word} stands where the equation has {name}", name, tree)
            yield Edit("power", f"one {name} too many", name, Apply(node, node))
        case Kind.FIELD if name in ("H", "H0"):
            other = "H0" if name == "H" else "H"
            yield Edit("letter", f"{other} stands where the equation has {name}", name, field(other))
            yield Edit("power", f"{name} is squared", name, Power(node, sp.Integer(2)))
            for other in (_A, _L):
                text = f"{other.name}@{name} stands where the equation has {name}"
                yield Edit("operator", text, name, Apply(other, node))
        case Kind.SCALAR:
            yield Edit("coefficient", f"{name} has another value here", name, Name(FREED, Kind.SCALAR), name)
            yield Edit("coefficient", f"{name} is one number per channel", name, Name(FREED, Kind.CHANNEL), FREED)
        case Kind.CHANNEL:
            yield Edit("coefficient", f"{name} has other values here", name, Name(FREED, Kind.CHANNEL), name)
        case Kind.MATRIX:
            yield Edit("coefficient", f"{name} is another matrix here", name, Name(FREED, Kind.MATRIX), name)


def _terms(node: Plus | Minus) -> Iterator[Edit]:
    left, right = node.left, node.right
    one, other = to_text(left), to_text(right)
    swapped = Minus if isinstance(node, Plus) else Plus
    yield Edit("sign", f"the sign of {other} is flipped", other, swapped(left, right))
    yield Edit("sign", f"the sign of {one} is flipped", one, node.func(Negative(left), right))
    yield Edit("missing term", f"the term {other} is missing", other, left)
    kept = right if isinstance(node, Plus) else Negative(right)
    yield Edit("missing term", f"the term {one} is missing", one, kept)
    if kind_of(node) in ELEMENTWISE:
        factor = Times(Name(FREED, Kind.SCALAR), right)
        yield Edit("coefficient", f"{other} has another coefficient", other, node.func(left, factor), FREED)
        first = Times(Name(FREED, Kind.SCALAR), left)
        yield Edit("coefficient", f"{one} has another coefficient", one, node.func(first, right), FREED)


def _powers(node: Power) -> Iterator[Edit]:
    base, exponent = to_text(node.base), node.exponent
    for other in (exponent + 1, exponent - 1):
        if other >= 0:
            tree = Power(node.base, sp.Integer(other)) if other != 1 else node.base
            yield Edit("power", f"{base} to the power {other}, not {exponent}", to_text(node), tree)


def _functions(node: Call) -> Iterator[Edit]:
    text = to_text(node)
    yield Edit("activation", f"{node.function} is missing", text, node.argument)
    for name in FUNCTIONS:
        if name != node.function:
            yield Edit("activation", f"{name} stands for {node.function}", text, Call(name, node.argument))
    x = node.argument
    leaky = Minus(Call(KINK, x), Times(sp.Rational(1, 100), Call(KINK, Negative(x))))
    yield Edit("activation", f"a leaky relu stands for {node.function}", text, leaky)
    yield Edit("activation", f"silu stands for {node.function}", text, Times(x, Call(GATE, x)))


def _applied(node: Apply) -> Iterator[Edit]:
    left, right, text = node.left, node.right, to_text(node)
    if kind_of(left) is Kind.OPERATOR:
        kind = "power" if _repeats(left, right) else "operator"
        yield Edit(kind, f"one {to_text(left)} is missing", text, right)
        yield Edit("power", f"one {to_text(left)} too many", text, Apply(left, node))
        if kind_of(right) is Kind.FIELD:
            moved = Apply(left, Plus(right, Name(FREED, Kind.CHANNEL)))
            yield Edit("bias", f"something is added before {to_text(left)} is applied", text, moved, FREED)
        if kind_of(right) is Kind.OPERATOR:
            yield Edit("power", f"one {to_text(right)} is missing", text, left)
    elif kind_of(right) is Kind.MATRIX:
        yield Edit("missing term", f"the matrix {to_text(right)} is missing", text, left)


def _repeats(left: sp.Basic, right: sp.Basic) -> bool:
    return right == left or (isinstance(right, Apply) and right.left == left)
