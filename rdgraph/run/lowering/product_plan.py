"""Second stage of lowering: the sparse products, their order, and the torch source that computes them.

Products are shared between terms and never formed as matrices: A@A@H is A@(A@H). The last product of a sum takes the
other terms along, so that a kernel can add them in the same pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import sympy as sp

from rdgraph.language.factored_form import Entrywise, Term, Word, terms_of
from rdgraph.language.normal_form import H, Mix, State
from rdgraph.language.printer import to_text
from rdgraph.language.reader import Vocabulary, start_of
from rdgraph.language.sympy_form import from_sympy
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.packed_form import PACKED, PACKED_START, Blocks, PerField, needs_packing, packed_form
from rdgraph.run.lowering.splines import spline_call
from rdgraph.run.lowering.torch_source import GeneratedFunction, coefficient_code, function_code, matrix_code, safe_name
from rdgraph.vocabulary.learned_functions import LearnedFunction, is_key

Key = tuple[Word, sp.Expr]
#: A piece of torch source, and the same in the language of equations.
Text = tuple[str, str]


@dataclass(frozen=True)
class ProductPlan:
    """The steps of one evaluation of a field; `products` counts sparse products, `mixes` channel-mixing products."""

    equation: str
    steps: tuple[str, ...]
    products: int
    mixes: int

    def __str__(self) -> str:
        count = f"{self.products} sparse product{'' if self.products == 1 else 's'}"
        count += f", {self.mixes} channel mixings" if self.mixes else ""
        lead = "" if "=" in self.equation else "dH/dt = "
        return "\n".join([f"{lead}{self.equation}    ({count})", *(f"  {step}" for step in self.steps)])


def schedule(name: str, forms: Mapping[str, sp.Expr], kinds: Mapping[str, Kind]) -> GeneratedFunction:
    """The function that computes factored normal forms; several fields are packed, a single one is called H."""
    if len(forms) == 1:
        (form,) = forms.values()
        return _Schedule(kinds, _uses(form, {})).function(name, form)
    form = packed_form(forms)
    packed = {State(field): PACKED for field in forms} if needs_packing(forms) else {}
    return _Schedule(kinds, _uses(form, packed), tuple(forms), packed).function(name, form)


def _uses(form: sp.Expr, packed: Mapping[sp.Expr, sp.Expr]) -> Counter[Key]:
    """The number of sums, or longer words, that need each product; atoms count under the empty word.

    A product with a field that is `packed` is a block of the product with the packed state, and needs that.
    """
    counts: Counter[Key] = Counter()
    for total in _sums(form):
        terms = terms_of(total)
        counts.update({(t.word[i:], t.atom) for t in terms for i in range(len(t.word) + 1)})
        counts.update((t.word[1:], t.atom) for t in terms if len(t.word) > 1)
        firsts = {(t.word[-1], t.atom) for t in terms if t.word}
        counts.update({((), atom): n - 1 for atom, n in Counter(atom for _, atom in firsts).items()})
    for (word, atom), count in list(counts.items()):
        if word and atom in packed:
            counts[word, packed[atom]] += count
    return counts


def _sums(form: sp.Expr) -> Iterator[sp.Expr]:
    """A sum and every sum inside its atoms, each atom once."""
    seen: set[sp.Expr] = set()

    def walk(total: sp.Expr) -> Iterator[sp.Expr]:
        yield total
        for term in terms_of(total):
            if term.atom not in seen:
                seen.add(term.atom)
                for inner in _inner_sums(term.atom):
                    yield from walk(inner)

    return walk(form)


def _inner_sums(atom: sp.Expr) -> tuple[sp.Expr, ...]:
    """The sums inside an atom."""
    match atom:
        case Entrywise():
            return atom.arguments
        case Blocks():
            return atom.args
        case Mix():
            return (atom.inner,)
    return () if _is_letter(atom) else (atom,)


def _is_letter(atom: sp.Expr) -> bool:
    """Whether an atom is a plain tensor: a state, a start, or 1 for a column of ones."""
    return isinstance(atom, State) or atom == 1


class _Schedule:
    """One function under construction.

    For several `fields` the state is packed; the products of those in `packed` are blocks of packed products.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        uses: Counter[Key],
        fields: tuple[str, ...] = (),
        packed: Mapping[sp.Expr, sp.Expr] | None = None,
    ) -> None:
        self.kinds, self.uses, self.fields, self.packed = kinds, uses, fields, packed or {}
        self.state = safe_name(PACKED.name if fields else H.name)
        self.blocks = {State(name): PACKED for name in fields}
        self.blocks |= {State(start_of(name)): PACKED_START for name in fields}
        self.opened: dict[str, None] = {}
        self.known: dict[Key, Text] = {}
        self.coefficients: dict[sp.Expr, str] = {}
        self.letters: dict[str, None] = {}
        self.lines: list[str] = []
        self.steps: list[str] = []
        self.products = self.mixes = 0

    def function(self, name: str, form: sp.Expr) -> GeneratedFunction:
        text, step = self._full_value(form, self.state)
        self.lines.append(f"return {text}")
        self.steps.append(f"d({', '.join(self.fields)}) = {step}" if self.fields else f"dH = {step}")
        first = (PACKED.name, PACKED_START.name) if self.fields else ("H", "H0")
        order: list[str] = [x for x in (*first, "A", "L") if x in self.letters or x == first[0]]
        order += sorted(x for x in self.letters if x not in order)
        return GeneratedFunction(
            name,
            tuple(order),
            tuple(self.coefficients),
            tuple(self.lines),
            tuple(self.steps),
            self.products,
            self.mixes,
        )

    # ------------------------------------------------------------------ sums
    def value(self, total: sp.Expr) -> Text:
        """A sum as text; the last product includes the other terms."""
        terms = terms_of(total)
        if not terms:
            return "0.0", "0"
        if len(terms) == 1 and isinstance(terms[0].atom, Blocks) and terms[0].coefficient == 1 and not terms[0].word:
            return self.product((), terms[0].atom)
        free = [t for t in terms if t.word and not self._is_shared(t)]
        if _is_single_letter(free) and self._nested_cost(free) < self._chain_cost(free):
            rest = [t for t in terms if t not in free]
            inner = sp.Add(*(t.shortened().expression() for t in free))
            operand = self._assign(((), inner), self.value(inner))
            return self._carried(free[0].word[0], operand, sp.S.One, rest)
        carrier = max(
            (t for t in free if self._is_full(t.atom) and self._is_even(t)), key=lambda t: len(t.word), default=None
        )
        if carrier is None:
            return self._plain(terms)
        operand = self.product(carrier.word[1:], carrier.atom)
        return self._carried(carrier.word[0], operand, carrier.coefficient, [t for t in terms if t is not carrier])

    def _full_value(self, total: sp.Expr, like: str = "") -> Text:
        """A sum with all nodes and channels, also if it contains coefficients only.

        It is shaped like a state, by default that of one field.
        """
        text, step = self.value(total)
        is_full = any(self._is_full(t.atom) for t in terms_of(total))
        if is_full:
            return text, step
        like = like or (self._letter(State(self.fields[0]))[0] if self.fields else self.state)
        return f"torch.zeros_like({like}) + {_bracketed(text)}", f"0*{like} + {_bracketed(step)}"

    def _plain(self, terms: Iterable[Term]) -> Text:
        """A sum without a sparse product."""
        pieces = []
        for term in terms:
            name = (None, None) if term.is_constant else self.product(term.word, term.atom)
            factors = self._factor(term.coefficient), self._words(term.coefficient)
            pieces.append(tuple(_scaled(f, n) for f, n in zip(factors, name, strict=True)))
        return _joined(p[0] for p in pieces), _joined(p[1] for p in pieces)

    def _carried(self, letter: str, operand: Text, scale: sp.Expr, rest: list[Term]) -> Text:
        """letter(operand, scale, (factor, value), ...): the product and the other terms in one pass."""
        constants = [t for t in rest if t.is_constant]
        values = [(t.coefficient, self.product(t.word, t.atom)) for t in rest if not t.is_constant]
        self.letters[letter] = None
        self.products += 1
        arguments = [operand[0], "None" if scale == 1 else self._named(scale)] if scale != 1 or values else [operand[0]]
        arguments += [f"({self._named(c)}, {v[0]})" for c, v in values]
        text = f"{letter}({', '.join(arguments)})"
        step = [_scaled(self._words(scale), f"({letter}@{_bracketed(operand[1])})")]
        step += [_scaled(self._words(c), v[1]) for c, v in values]
        if constants:
            more = self._plain(constants)
            text, step = f"{text} + {_bracketed(more[0])}", [*step, more[1]]
        return text, _joined(step)

    # ------------------------------------------------------------------ products
    def product(self, word: Word, atom: sp.Expr) -> Text:
        """word@atom, computed once; an atom used once is written inline."""
        if (word, atom) in self.known:
            return self.known[word, atom]
        if word and atom in self.packed:
            return self._block(self.product(word, self.packed[atom]), atom)
        if not word:
            text = self.atom(atom)
            return text if _is_letter(atom) or self.uses[word, atom] <= 1 else self._assign((word, atom), text)
        operand = self.product(word[1:], atom)
        self.letters[word[0]] = None
        self.products += 1
        return self._assign((word, atom), (f"{word[0]}({operand[0]})", f"{word[0]}@{_bracketed(operand[1])}"))

    def _assign(self, key: Key, text: Text) -> Text:
        name = f"x{len(self.known) + 1}"
        self.known[key] = name, name
        self.lines.append(f"{name} = {text[0]}")
        self.steps.append(f"{name} = {text[1]}")
        return name, name

    def _block(self, packed: Text, atom: sp.Expr) -> Text:
        """The block of a field in a packed tensor, which is cut once; the plan shows A@u, the source the block."""
        names = [f"{packed[0]}_{safe_name(field)}" for field in self.fields]
        if packed[0] not in self.opened:
            self.opened[packed[0]] = None
            self.lines.append(f"{', '.join(names)} = {packed[0]}.chunk({len(names)}, -1)")
        index = [State(field) for field in self.fields].index(atom)
        return names[index], f"{packed[1]}[{self.fields[index]}]"

    def _letter(self, atom: sp.Symbol) -> Text:
        """A state or a start; one of several fields is a block of the packed tensor."""
        if atom not in self.blocks:
            self.letters[atom.name] = None
            return safe_name(atom.name), safe_name(atom.name)
        packed = self.blocks[atom].name
        self.letters[packed] = None
        if packed not in self.opened:
            self.opened[packed] = None
            letters = [safe_name(x.name) for x, owner in self.blocks.items() if owner.name == packed]
            self.lines.append(f"{', '.join(letters)} = {safe_name(packed)}.chunk({len(letters)}, -1)")
        return safe_name(atom.name), atom.name

    def _is_shared(self, term: Term) -> bool:
        """Whether the product of a term is already computed, or is also needed elsewhere."""
        is_block = term.atom in self.packed
        return is_block or (term.word, term.atom) in self.known or self.uses[term.word, term.atom] > 1

    def _is_even(self, term: Term) -> bool:
        """Whether the coefficient is the same for all nodes, so that it commutes with operators."""
        return Kind.NODE not in self._kinds_in(term.coefficient)

    def _chain_cost(self, terms: Iterable[Term]) -> int:
        """Products of the form A@H, A@(A@H), ..."""
        return len({(t.word[i:], t.atom) for t in terms for i in range(len(t.word))} - set(self.known))

    def _nested_cost(self, terms: Iterable[Term]) -> int:
        """Products of the nested form A@(... + A@(...)): fewer where several fields go through the operator."""
        inner = [t for t in terms if t.word and (t.word, t.atom) not in self.known]
        if not inner:
            return 0
        if not _is_single_letter(inner) or not all(self._is_even(t) and self._is_full(t.atom) for t in inner):
            return self._chain_cost(inner)
        return 1 + self._nested_cost(t.shortened() for t in inner)

    # ------------------------------------------------------------------ atoms
    def atom(self, atom: sp.Expr) -> Text:
        """An atom as text, bracketed where needed."""
        match atom:
            case sp.Integer():
                return f"torch.ones_like({self.state}[..., :1])", f"{self.state}**0"
            case State():
                return self._letter(atom)
            case Blocks():
                parts = [
                    self._block_value(form, State(name)) for form, name in zip(atom.args, self.fields, strict=True)
                ]
                texts, steps = zip(*parts, strict=True)
                return f"torch.cat(({', '.join(texts)}), -1)", f"[{' | '.join(steps)}]"
            case Mix():
                self.mixes += 1
                text, step = map(_bracketed, self._full_value(atom.inner))
                (matrix,) = atom.word
                self.letters.update(dict.fromkeys(sorted(s.name for s in matrix.free_symbols)))
                return f"({text} @ {_bracketed(matrix_code(matrix))})", f"({step}@{self._words(matrix)})"
            case Entrywise(function="*" | "/"):
                left, right = (tuple(map(_bracketed, self.value(a))) for a in atom.arguments)
                return f"({left[0]}{atom.function}{right[0]})", f"({left[1]}{atom.function}{right[1]})"
            case Entrywise(function="**"):
                text, step = map(_bracketed, self.value(atom.arguments[0]))
                return f"{text}**{atom.exponent}", f"{step}**{atom.exponent}"
            case Entrywise() if is_key(atom.function):
                declared = LearnedFunction.of_key(atom.function)
                self.letters[declared.name] = None
                text, step = self._full_value(atom.arguments[0])
                return spline_call(declared, text, safe_name(declared.name)), f"{declared.name}({step})"
            case Entrywise():
                text, step = self.value(atom.arguments[0])
                return function_code(atom.function, text), f"{atom.function}({step})"
        text, step = map(_bracketed, self.value(atom))
        return text, step

    def _block_value(self, form: sp.Expr, field: State) -> Text:
        """The block of one field, with all nodes and channels."""
        text, step = self.value(form)
        if any(self._is_full(t.atom) for t in terms_of(form)):
            return text, step
        like = self._letter(field)
        if form == 0:
            return f"torch.zeros_like({like[0]})", "0"
        return f"torch.zeros_like({like[0]}) + {_bracketed(text)}", f"0*{like[1]} + {_bracketed(step)}"

    def _is_full(self, atom: sp.Expr) -> bool:
        """Whether an atom has all channels, not one value per node."""
        if _is_letter(atom) or isinstance(atom, Mix | Blocks):
            return bool(atom != 1)
        return any(
            self._is_full(t.atom) or Kind.CHANNEL in self._kinds_in(t.coefficient)
            for a in _inner_sums(atom) for t in terms_of(a)
        )  # fmt: skip

    # ------------------------------------------------------------------ coefficients
    def _kinds_in(self, coefficient: sp.Expr) -> set[Kind]:
        return {self.kinds[s.name] for s in coefficient.free_symbols}

    def _factor(self, coefficient: sp.Expr) -> str:
        """A coefficient inside elementwise text: numbers are literals."""
        plain = coefficient.is_number and not coefficient.has(PerField)
        return coefficient_code(coefficient) if plain else self._named(coefficient)

    def _words(self, coefficient: sp.Expr) -> str:
        """A coefficient or a matrix in the language of equations, bracketed where needed."""
        if isinstance(coefficient, PerField):
            return f"[{' | '.join(map(self._words, coefficient.args))}]"
        return _bracketed(to_text(from_sympy(coefficient, Vocabulary(self.kinds))))

    def _named(self, coefficient: sp.Expr) -> str:
        """The generated name of a coefficient."""
        return self.coefficients.setdefault(coefficient, f"c{len(self.coefficients)}")


def _is_single_letter(terms: Iterable[Term]) -> bool:
    return len({t.word[0] for t in terms}) == 1


def _scaled(factor: str, name: str | None) -> str:
    """factor*name, shorter for factors 1 and -1."""
    if name is None:
        return factor
    return {"1": name, "-1": f"-{name}", "(-1)": f"-{name}"}.get(factor, f"{factor}*{name}")


def _joined(pieces: Iterable[str]) -> str:
    return " + ".join(pieces).replace("+ -", "- ")


def _bracketed(text: str) -> str:
    """The text in brackets unless it is a single word, number, call or bracketed piece."""
    return text if _is_closed(text) else f"({text})"


def _is_closed(text: str) -> bool:
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and not (letter.isalnum() or letter in "_.()[]"):
            return False
        if depth == 0 and letter in ")]" and i + 1 < len(text) and text[i + 1] not in ".[(":
            return False
    return True
