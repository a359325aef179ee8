"""The C lines that compute one entry (node i, channel c) in one pass: loads, entrywise lines, stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import sympy as sp

from rdgraph.language.factored_form import Entrywise, Term, Word, terms_of
from rdgraph.language.normal_form import Mix
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.c_expressions import SourceNames, power_text

# ---------------------------------------------------------------------- row plan
# Which arrays a compiled field stores, and in how many passes over the rows it is computed.
#
# Entrywise expressions are computed where they are used; an array is stored only if an operator or a mixing matrix
# reads it, since those read other entries. Pass p may read the arrays of the passes before it. One pass computes all
# products it needs in one loop over the entries of each row.


class Product(NamedTuple):
    """A product word@atom in generated source, stored or gathered; with the empty word the atom or an inner sum."""

    word: Word
    atom: sp.Expr


@dataclass(frozen=True)
class Stored:
    """An intermediate array: its name, its content, and the pass that computes it."""

    name: str
    product: Product
    level: int


class RowPlan:
    """The passes of some fields, given by their factored forms.

    >>> from rdgraph.language.factored_form import factored_form
    >>> from rdgraph.systems.parser import parse
    >>> s = parse("beta*(A@H - A@A@H) + tanh(A@H)")
    >>> H = s.algebra.symbols["H"]
    >>> plan = RowPlan({"H": factored_form(s.expression, s.algebra)}, {H: "H"}, s.letters)
    >>> [(x.name, x.product.word, x.level) for x in plan.stored], plan.passes
    ([('x1', ('A',), 1)], 2)
    """

    def __init__(
        self, forms: Mapping[str, sp.Expr], letters: Mapping[sp.Symbol, str], kinds: Mapping[str, Kind]
    ) -> None:
        self.forms, self.letters, self.kinds = dict(forms), dict(letters), kinds
        self.uses = _uses(self.forms.values(), letters)
        self.stored: list[Stored] = []
        self._names: dict[Product, Stored] = {}
        self._levels: dict[sp.Expr, int] = {}
        #: The inner sums that replace several products of one sum, by that sum.
        self.nested: dict[sp.Expr, tuple[str, tuple[Term, ...], sp.Expr]] = {}
        self.levels = {field: self.level(form) for field, form in self.forms.items()}

    @property
    def passes(self) -> int:
        return max([*self.levels.values(), *(x.level for x in self.stored)])

    # ------------------------------------------------------------------ where a value can be computed
    def level(self, total: sp.Expr) -> int:
        """The first pass that can compute a sum; stores the products it needs."""
        if total not in self._levels:
            nested = self._nested(total)
            terms = [t for t in terms_of(total) if nested is None or t not in nested[1]]
            inner = [] if nested is None else [self.available(as_product(nested[2])) + 1]
            self._levels[total] = max([1, *inner, *(self._term_level(t) for t in terms)])
        return self._levels[total]

    def _term_level(self, term: Term) -> int:
        return self.available(Product(term.word[1:], term.atom)) + 1 if term.word else self._atom_level(term.atom)

    def _atom_level(self, atom: sp.Expr) -> int:
        if self.is_letter(atom):
            return 1
        if isinstance(atom, Mix):
            return self.available(mixed(atom)) + 1
        return max((self.level(inner) for inner in inner_sums(atom, self.letters)), default=1)

    def available(self, product: Product) -> int:
        """The pass that stores an array, which is added to the plan; 0 for the state and its start."""
        if not product.word and self.is_state(product.atom):
            return 0
        if product not in self._names:
            if product.word:
                level = self.available(Product(product.word[1:], product.atom)) + 1
            else:
                level = 1 if product.atom == 1 else self._atom_level(product.atom)
            # its parts come first, so that names follow the order of computation
            self._names[product] = Stored(f"x{len(self.stored) + 1}", product, level)
            self.stored.append(self._names[product])
        return self._names[product].level

    def array(self, product: Product) -> str | None:
        """The name of a stored array or a state."""
        if not product.word and self.is_state(product.atom):
            return self.letters[product.atom]
        return self._names[product].name if product in self._names else None

    def is_state(self, atom: sp.Expr) -> bool:
        return atom in self.letters

    def is_letter(self, atom: sp.Expr) -> bool:
        return atom == 1 or atom in self.letters

    # ------------------------------------------------------------------ A@(x + A@y) in place of A@x + A@A@y
    def _nested(self, total: sp.Expr) -> tuple[str, tuple[Term, ...], sp.Expr] | None:
        """The operator, the terms and the inner sum, if one product of a sum is cheaper than several."""
        free = [t for t in terms_of(total) if t.word and self._is_free(t)]
        by_letter: dict[str, list[Term]] = {}
        for term in free:
            by_letter.setdefault(term.word[0], []).append(term)
        for letter, terms in by_letter.items():
            if len(terms) > 1 and self._nested_cost(terms) < self._chain_cost(terms):
                inner = sp.Add(*(t.shortened().expression() for t in terms))
                self.nested[total] = letter, tuple(terms), inner
                return self.nested[total]
        return None

    def _is_free(self, term: Term) -> bool:
        """Whether no other term needs the product of this one, and its coefficient commutes with operators."""
        product = Product(term.word, term.atom)
        is_even = all(self.kinds.get(s.name) is not Kind.NODE for s in term.coefficient.free_symbols)
        return is_even and product not in self._names and self.uses[product] <= 1

    def _chain_cost(self, terms: Iterable[Term]) -> int:
        """The number of products and stored arrays if every word is computed separately."""
        suffixes = {Product(t.word[i:], t.atom) for t in terms for i in range(len(t.word) + 1)}
        heads = {Product(t.word, t.atom) for t in terms}
        stored = {p for p in suffixes - set(self._names) if p.word or not self.is_state(p.atom)}
        return len({p for p in stored if p.word}) + len(stored - heads)

    def _nested_cost(self, terms: Iterable[Term]) -> int:
        """The cost with one product of an inner sum, which is stored."""
        inner = [t.shortened() for t in terms]
        deeper = [t for t in inner if t.word]
        if len(deeper) > 1 and len({t.word[0] for t in deeper}) == 1:
            return 2 + min(self._chain_cost(deeper), self._nested_cost(deeper))
        return 2 + self._chain_cost(deeper)


def as_product(total: sp.Expr) -> Product:
    """A sum as the array that holds it: A@H for the sum that is A@H alone."""
    terms = terms_of(total)
    is_alone = len(terms) == 1 and terms[0].coefficient == 1
    return Product(terms[0].word, terms[0].atom) if is_alone else Product((), total)


def mixed(atom: Mix) -> Product:
    """The product that a mixing matrix multiplies."""
    return as_product(atom.inner)


def inner_sums(atom: sp.Expr, letters: Mapping[sp.Symbol, str]) -> tuple[sp.Expr, ...]:
    """The sums inside an atom."""
    match atom:
        case Entrywise():
            return atom.arguments
        case Mix():
            return (atom.inner,)
    return () if atom == 1 or atom in letters else (atom,)


def _uses(forms: Iterable[sp.Expr], letters: Mapping[sp.Symbol, str]) -> Counter[Product]:
    """The number of sums, or longer words, that need each product."""
    counts: Counter[Product] = Counter()
    for total in _sums(forms, letters):
        terms = terms_of(total)
        counts.update({Product(t.word, t.atom) for t in terms if t.word})
        counts.update(Product(t.word[i:], t.atom) for t in terms for i in range(1, len(t.word)))
    return counts


def _sums(forms: Iterable[sp.Expr], letters: Mapping[sp.Symbol, str]) -> Iterator[sp.Expr]:
    """All sums, and the sums inside their atoms, each once."""
    seen: set[sp.Expr] = set()
    waiting = list(forms)
    while waiting:
        total = waiting.pop()
        if total not in seen:
            seen.add(total)
            yield total
            waiting += [s for t in terms_of(total) for s in inner_sums(t.atom, letters)]


# ---------------------------------------------------------------------- entry source
@dataclass
class PassText:
    """One pass: the loads of an entry, its lines, and its sums over a row, by operator and array."""

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
        """The name of one of the `gathers` or `mixes`, which is added if new."""
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
    """The source of one entry under construction."""

    def __init__(self, plan: RowPlan, names: SourceNames, text: PassText) -> None:
        self.plan, self.names, self.text = plan, names, text
        self.known: dict[sp.Expr, str] = {}
        self.stored: set[str] = set()

    def store(self, name: str, product: Product) -> None:
        """Compute an array and store its entry, once: before the first line of this pass that needs it."""
        if name in self.stored:
            return
        self.stored.add(name)
        self.text.lines += [f"const real {name} = {self._computed(product)};", f"p->{name}[i * CHANNELS + c] = {name};"]

    def output(self, name: str, form: sp.Expr) -> None:
        """The slope of one field."""
        target = self.names.at(name, "i").replace("p->state", "p->out", 1)
        self.text.lines.append(f"{target} = {self.value(form)};")

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
        """word@atom: loaded or available as an array, else computed here."""
        array = self.plan.array(product)
        if array is None or product == Product((), sp.S.One):
            return self._computed(product)
        if self.plan.available(product) < self.text.level:
            self.text.loads[array] = self.names.at(array, "i")
        else:
            self.store(array, product)
        return array

    def _computed(self, product: Product) -> str:
        if product.word:
            return self._product(product.word[0], Product(product.word[1:], product.atom))
        return self._atom(product.atom)

    def _product(self, letter: str, operand: Product) -> str:
        """letter@operand, gathered in this pass; L = D - A includes the entry of the row."""
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
