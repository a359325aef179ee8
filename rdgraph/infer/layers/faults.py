"""Explanations of a difference between a layer and an equation by a single fault.

Faults are a sign, an operator, a power, a term, a function or a coefficient. If the equation with one fault agrees with
the layer, that fault is the explanation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.errors import RdgraphError
from rdgraph.infer.fit.damped_steps import Effort
from rdgraph.infer.formulas.slopes_and_inverses import GATE, KINK
from rdgraph.infer.layers.coefficient_fit import FREED
from rdgraph.infer.layers.equation_target import Target
from rdgraph.infer.layers.layer_check import Comparison, LayerCheck, array_word
from rdgraph.infer.layers.probe_graphs import Reading, declared_readings, differences, neighbouring_readings
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

_I, _A, _L = operator("I"), operator("A"), operator("L")
#: Operators that are confused with each other, with their text.
_INSTEAD: dict[str, tuple[tuple[sp.Basic, str], ...]] = {
    "L": ((Minus(_I, _A), "I - A"), (Plus(_I, _A), "I + A"), (_A, "A"), (_I, "I"), (Minus(_A, _I), "A - I")),
    "A": ((_L, "L"), (_I, "I"), (Plus(_I, _A), "I + A"), (Minus(_A, _I), "A - I")),
    "I": ((_A, "A"), (_L, "L")),
}
#: Replacements for an operator with a user-defined rule.
_FOR_OTHERS = ((_A, "A"), (Negative(_A), "-A"), (_L, "L"), (_I, "I"))


@dataclass(frozen=True)
class Edit:
    """A fault: its kind, its description, the affected term, and the equation with the fault.

    `freed` is the coefficient, or `FREED` for a number, whose value is fitted again.
    """

    kind: str
    text: str
    term: str
    tree: sp.Basic
    freed: str = ""


def single_faults(tree: sp.Basic) -> Iterator[Edit]:
    """All single faults of a right-hand side that are tried, without repetition."""
    seen = {tree}
    ruled, usual = (list(_everywhere(tree, is_ruled)) for is_ruled in (True, False))
    for edit in (*ruled, *_whole(tree), *_inside(tree), *usual):
        if edit.tree not in seen and _is_field(edit.tree):
            seen.add(edit.tree)
            yield edit


def _is_field(tree: sp.Basic) -> bool:
    return kind_of(tree) in ELEMENTWISE and any(n.kind is Kind.FIELD for n in names_in(tree))


def _whole(tree: sp.Basic) -> Iterator[Edit]:
    text = to_text(tree)
    yield Edit("sign", "the overall sign is flipped", text, Negative(tree))
    for name in FUNCTIONS:
        if not isinstance(tree, Call):
            yield Edit("activation", f"{name} is applied to the result", text, Call(name, tree))
    freed = Name(FREED, Kind.SCALAR)
    yield Edit("coefficient", "the result has another factor", text, Times(freed, tree), FREED)
    yield Edit("coefficient", "something is added to the result", text, Plus(tree, Name(FREED, Kind.CHANNEL)), FREED)


def _everywhere(tree: sp.Basic, is_ruled: bool) -> Iterator[Edit]:
    """Faults that replace an operator, user-defined or of the language, everywhere."""
    for letter in names_in(tree):
        if letter.kind is Kind.OPERATOR and (letter.name not in _INSTEAD) is is_ruled:
            for other, word in _INSTEAD.get(letter.name, _FOR_OTHERS):
                text = f"{word} in place of {letter.name}, everywhere"
                yield Edit("operator", text, letter.name, tree.xreplace({letter: other}))


def _inside(node: sp.Basic) -> Iterator[Edit]:
    """Faults at a node and below it; the enclosing tree is rebuilt, the description stays."""
    if not isinstance(node, Node | sp.Rational):
        return
    yield from _at(node)
    for position, part in enumerate(node.args):
        if isinstance(part, Node | sp.Rational) and not (isinstance(node, Power) and position == 1):
            for edit in _inside(part):
                arguments = [*node.args[:position], edit.tree, *node.args[position + 1 :]]
                try:
                    edited = node.func(*arguments)
                    kind_of(edited)
                except Exception:  # the edit is not valid here
                    continue
                term = edit.term if isinstance(node, Plus | Minus) else to_text(node)
                yield Edit(edit.kind, edit.text, term, edited, edit.freed)


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
                yield Edit("operator", f"{word} in place of {name}", name, tree)
            yield Edit("power", f"one {name} too many", name, Apply(node, node))
        case Kind.FIELD if name in ("H", "H0"):
            other = "H0" if name == "H" else "H"
            yield Edit("letter", f"{other} in place of {name}", name, field(other))
            yield Edit("power", f"{name} is squared", name, Power(node, sp.Integer(2)))
            for other in (_A, _L):
                text = f"{other.name}@{name} in place of {name}"
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
    remaining = right if isinstance(node, Plus) else Negative(right)
    yield Edit("missing term", f"the term {one} is missing", one, remaining)
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
            yield Edit("activation", f"{name} in place of {node.function}", text, Call(name, node.argument))
    x = node.argument
    leaky = Minus(Call(KINK, x), Times(sp.Rational(1, 100), Call(KINK, Negative(x))))
    yield Edit("activation", f"a leaky relu in place of {node.function}", text, leaky)
    yield Edit("activation", f"silu in place of {node.function}", text, Times(x, Call(GATE, x)))


def _applied(node: Apply) -> Iterator[Edit]:
    left, right, text = node.left, node.right, to_text(node)
    if kind_of(left) is Kind.OPERATOR:
        repeats = right == left or (isinstance(right, Apply) and right.left == left)
        kind = "power" if repeats else "operator"
        yield Edit(kind, f"one {to_text(left)} is missing", text, right)
        yield Edit("power", f"one {to_text(left)} too many", text, Apply(left, node))
        if kind_of(right) is Kind.FIELD:
            moved = Apply(left, Plus(right, Name(FREED, Kind.CHANNEL)))
            yield Edit("bias", f"something is added before {to_text(left)} is applied", text, moved, FREED)
        if kind_of(right) is Kind.OPERATOR:
            yield Edit("power", f"one {to_text(right)} is missing", text, left)
    elif kind_of(right) is Kind.MATRIX:
        yield Edit("missing term", f"the matrix {to_text(right)} is missing", text, left)


# ---------------------------------------------------------------------- fault hints
# Readings, comparisons and equations with one fault that agree with the layer.

#: Budget of the search for faults: about four seconds.
EXPLANATION_EFFORT = 40_000_000
#: Order of explanations that agree equally well: the most flexible ones come last.
_ORDER = (
    "dropout", "comparison", "transposed edges", "self-loops", "normalisation", "weights", "activation", "sign",
    "operator", "missing term", "power", "letter", "bias", "coefficient", "attention", "training mode", "graphs",
)  # fmt: skip


@dataclass(frozen=True)
class Hint:
    """A kind of fault with its description; `explains` says whether the layer agrees with the faulty equation."""

    kind: str
    text: str
    explains: bool = True
    equation: str = ""
    term: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.explains else f"maybe {self.kind}: {self.text}"


@dataclass(frozen=True)
class Explanation:
    """A hint with the comparison that agrees."""

    hint: Hint
    comparison: Comparison


def explanations(
    check: LayerCheck, target: Target, reading: Reading, effort: float = EXPLANATION_EFFORT
) -> list[Explanation]:
    """Single faults under which the layer agrees, the likeliest first, one of each kind.

    If there is none, readings that differ in several properties are tried, too.
    """
    check = replace(check, effort=Effort(effort))
    causes: dict[str, Explanation] = {}
    for source in (_other_readings, _other_comparisons, _other_equations):
        for hint, changed, other, known in source(check, target, reading):
            if hint.kind in causes or check.effort.is_spent:
                continue
            if causes and hint.kind in ("coefficient", "bias"):
                continue  # a free number would also fit what another fault explains
            comparison = _tried(check, changed, other, known, starts=0 if causes else 1)
            if comparison is not None:
                causes[hint.kind] = Explanation(_worded(check, hint, comparison), comparison)
    if not causes:
        return _several_readings(check, target, reading)
    return sorted(causes.values(), key=lambda e: _ORDER.index(e.hint.kind))


def _several_readings(check: LayerCheck, target: Target, reading: Reading) -> list[Explanation]:
    for other in declared_readings(transposed=None):
        if check.effort.is_spent:
            break
        comparison = _tried(check, target, other, check.known, starts=1)
        if comparison is not None:
            return [Explanation(Hint(kind, text), comparison) for kind, text in differences(reading, other)]
    return []


Candidate = tuple[Hint, Target, Reading, Mapping[str, Any]]


def _tried(
    check: LayerCheck, target: Target, reading: Reading, known: Mapping[str, Any], starts: int
) -> Comparison | None:
    """The comparison if it agrees; None if it does not, or the changed equation is invalid."""
    try:
        comparison = check.compared(target, reading, known, starts=starts)
    except RdgraphError:
        return None
    return comparison if check.agrees(comparison) else None


def _other_readings(check: LayerCheck, target: Target, reading: Reading) -> Iterator[Candidate]:
    for kind, text, other in neighbouring_readings(reading):
        yield Hint(kind, text), target, other, check.known


def _other_comparisons(check: LayerCheck, target: Target, reading: Reading) -> Iterator[Candidate]:
    """Euler's step for the flow, the increment for the step, and the like."""
    if check.widths[0] != check.widths[1]:
        return
    step = Target(target.tree, "step", 1, target.step if target.compared == "step" else target.T)
    forms = {
        "one step of Euler's method": step,
        "the right-hand side alone, without the state": Target(target.tree, "field"),
        "the flow": Target(
            target.tree, "flow", T=target.step * target.count if target.compared == "step" else target.T
        ),
    }
    if target.count > 1:
        forms |= {
            f"{n} of {target.count} steps": replace(target, count=n) for n in (target.count - 1, target.count + 1) if n
        }
    if target.compared == "field":
        forms = {"a step of Euler's method, H + f(H)": Target(target.tree, "step", 1, 1.0)}
    for words, form in forms.items():
        if form != target:
            yield Hint("comparison", f"the layer computes {words}"), form, reading, check.known


def _other_equations(check: LayerCheck, target: Target, reading: Reading) -> Iterator[Candidate]:
    for edit in single_faults(target.tree):
        if edit.freed and edit.freed != FREED and edit.freed not in check.known:
            continue  # it was free before
        changed = replace(target, tree=edit.tree)
        yield Hint(edit.kind, edit.text, equation=str(changed), term=edit.term), changed, reading, check.known
    used = {n.name for n in names_in(target.tree)}
    for name in sorted(used & set(check.known)):
        others = {key: value for key, value in check.known.items() if key != name}
        yield Hint("coefficient", f"{name} has another value", term=name), target, reading, others


def _worded(check: LayerCheck, hint: Hint, comparison: Comparison) -> Hint:
    """The hint with the fitted value of the freed number in its text and equation."""
    values = comparison.fit.values
    if hint.term in values and hint.term in check.known:
        return replace(hint, text=f"{hint.text}: {array_word(hint.term, values[hint.term], check.named, check.near)}")
    if FREED not in values or FREED in comparison.fit.loose:
        return hint
    word = array_word(FREED, values[FREED], check.named, check.near)
    text = f"{hint.text}: {word.removeprefix(f'{FREED} = ')}"
    shown = word.removeprefix(f"{FREED} = ") if values[FREED].ndim == 0 else FREED
    return replace(hint, text=text, equation=hint.equation.replace(FREED, shown))


def attention_hint(check: LayerCheck, target: Target, reading: Reading) -> Hint | None:
    """A hint for layers linear in H whose operator has other row sums than that of the equation, else None."""
    if not any(n.kind is Kind.OPERATOR and n.name != "I" for n in names_in(target.tree)):
        return None
    if reading.normalisation != "row" or check.unknowns(target.tree).size or check.widths[0] != check.widths[1]:
        return None
    graph = max(check.answers.graphs, key=lambda g: g.num_nodes)
    shape = (graph.num_nodes, check.call.width)
    rows = check.call(graph, np.ones(shape)) - check.call(graph, np.zeros(shape))
    letters = {**reading.operators(graph), **check.known, "H": np.ones(shape), "H0": np.zeros(shape)}
    wanted = target.values(letters) - target.values({**letters, "H": np.zeros(shape)})
    worst = int(np.abs(rows - wanted).max(axis=1).argmax())
    if np.abs(rows - wanted).max() <= check.precision:
        return None
    text = (
        f"on constants node {worst} gets {rows[worst, 0]:.4g} where weights that sum to 1 give {wanted[worst, 0]:.4g}"
    )
    return Hint("attention", f"the weights of a node do not sum to 1: {text}", explains=False)
