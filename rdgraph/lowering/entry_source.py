"""The C lines that compute one entry (node i, channel c) in one pass: loads, entrywise lines, stores."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy as sp

from rdgraph.algebra.factored_form import Entrywise, Term, terms_of
from rdgraph.algebra.normal_form import Mix
from rdgraph.lowering.c_expressions import power_text
from rdgraph.lowering.row_plan import Product, RowPlan, as_product, mixed
from rdgraph.lowering.source_names import SourceNames


@dataclass
class PassText:
    """One pass: what an entry loads, its lines, and the sums over a row that it is given, by letter and array."""

    level: int
    loads: dict[str, str] = field(default_factory=dict)
    gathers: dict[tuple[str, str], str] = field(default_factory=dict)
    mixes: dict[tuple[str, str], str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    @property
    def sums(self) -> tuple[str, ...]:
        """The names of products and mixed channels."""
        return (*self.gathers.values(), *self.mixes.values())

    def summed(self, kind: dict[tuple[str, str], str], letter: str, array: str) -> str:
        """The name of one of the `gathers` or `mixes`, taken up where it is new."""
        if (letter, array) not in kind:
            name = f"{letter}_{array}"
            while name in self.sums:  # operators and arrays may have an underscore in their names
                name += "_"
            kind[letter, array] = name
        return kind[letter, array]

    def function(self) -> list[str]:
        """The function of one entry."""
        given = ["const Member *p", "const int64_t i", "const int c", *(f"const real {name}" for name in self.sums)]
        loads = [f"    const real {name} = {load};" for name, load in self.loads.items()]
        head = f"INLINE void entry_{self.level}({', '.join(given)}) {{"
        return [head, *loads, *(f"    {line}" for line in self.lines), "}"]


def pass_text(plan: RowPlan, names: SourceNames, level: int) -> PassText:
    """One pass of a plan."""
    entry = _Entry(plan, names, PassText(level))
    for stored in plan.stored:
        if stored.level == level:
            entry.store(stored.name, stored.product)
    for name, form in plan.forms.items():
        if plan.levels[name] == level:
            entry.output(name, form)
    return entry.text


class _Entry:
    """One entry in the making."""

    def __init__(self, plan: RowPlan, names: SourceNames, text: PassText) -> None:
        self.plan, self.names, self.text = plan, names, text
        self.known: dict[sp.Expr, str] = {}

    def store(self, name: str, product: Product) -> None:
        """Compute an array and store its entry."""
        self.text.lines += [f"const real {name} = {self._anew(product)};", f"p->{name}[i * CHANNELS + c] = {name};"]

    def output(self, name: str, form: sp.Expr) -> None:
        """The slope of one field."""
        place = self.names.at(name, "i").replace("p->state", "p->out", 1)
        self.text.lines.append(f"{place} = {self.value(form)};")

    # ------------------------------------------------------------------ sums
    def value(self, total: sp.Expr) -> str:
        """A sum as text."""
        letter, together, inner = self.plan.nested.get(total, ("", (), sp.S.Zero))
        pieces = [self._scaled(t) for t in terms_of(total) if t not in together]
        if together:
            pieces.append(self._product(letter, as_product(inner)))
        return " + ".join(pieces).replace("+ -", "- ") if pieces else "0"

    def _scaled(self, term: Term) -> str:
        factor = self.names.coefficient(term.coefficient, self.text.loads)
        if term.is_constant:
            return factor
        value = self._named(Product(term.word, term.atom))
        return {"1": value, "(-1)": f"-{value}"}.get(factor, f"{factor}*{value}")

    # ------------------------------------------------------------------ products and atoms
    def _named(self, product: Product) -> str:
        """word@atom: loaded or at hand where it is an array, else computed here."""
        array = self.plan.array(product)
        if array is None or product == Product((), sp.S.One):
            return self._anew(product)
        if self.plan.available(product) < self.text.level:
            self.text.loads[array] = self.names.at(array, "i")
        return array

    def _anew(self, product: Product) -> str:
        if product.word:
            return self._product(product.word[0], Product(product.word[1:], product.atom))
        return self._atom(product.atom)

    def _product(self, letter: str, operand: Product) -> str:
        """letter@operand, gathered in this pass; L = D - A takes the entry of the row along."""
        array = self.plan.array(operand)
        assert array is not None
        laplacians = self.names.layout.laplacians
        if letter in laplacians:
            self.text.loads[array] = self.names.at(array, "i")
            self.text.loads[f"{letter}_degree"] = f"p->{letter}_degree[i]"
            return f"({letter}_degree*{array} - {self._product(laplacians[letter], operand)})"
        return self.text.summed(self.text.gathers, letter, array)

    def _atom(self, atom: sp.Expr) -> str:
        if atom == 1:
            return "1"
        if atom in self.known:
            return self.known[atom]
        match atom:
            case Mix():
                array, (matrix,) = self.plan.array(mixed(atom)), atom.word
                assert array is not None
                name = self.names.matrix(matrix)
                return self.text.summed(self.text.mixes, name, array)
            case Entrywise(function="*" | "/"):
                left, right = (self._operand(a) for a in atom.arguments)
                text = f"{left}{atom.function}{right}"
            case Entrywise(function="**"):
                text = power_text(self._operand(atom.arguments[0]), atom.exponent)
            case Entrywise():
                self.names.functions[atom.function] = None
                text = f"f_{atom.function}({self.value(atom.arguments[0])})"
            case _ if self.plan.is_state(atom):
                return self._named(Product((), atom))
            case _:
                text = self.value(atom)
        return self._temporary(atom, text)

    def _operand(self, total: sp.Expr) -> str:
        """A sum as one name."""
        text = self.value(total)
        return text if text.isidentifier() or text.isdigit() else self.known.get(total) or self._temporary(total, text)

    def _temporary(self, key: sp.Expr, text: str) -> str:
        self.known[key] = f"y{len(self.known) + 1}"
        self.text.lines.append(f"const real {self.known[key]} = {text};")
        return self.known[key]
