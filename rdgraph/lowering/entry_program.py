"""Entrywise expressions and their gradients as straight lines of Triton text: what one entry of a state becomes.

The gradient goes backwards through the same lines, as autograd does, so that NaN and infinity come out where they do
there; nothing is simplified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import sympy as sp

from rdgraph.algebra.factored_form import Entrywise, Term, terms_of
from rdgraph.algebra.normal_form import H0, H
from rdgraph.errors import NotApplicable
from rdgraph.kernels.entry_text import EntryText
from rdgraph.lowering.torch_source import coefficient_code
from rdgraph.syntax.functions import FUNCTIONS
from rdgraph.syntax.learned_function import is_key

#: Names of the letters in the text.
LETTERS = {H: "h", H0: "h0"}


def entry_program(values: Sequence[sp.Expr]) -> EntryText:
    """The program of entrywise expressions; NotApplicable where one has a coefficient, or what Triton has no text for.

    >>> program = entry_program([Entrywise("*", H, 1 - H)])
    >>> program.lines, program.results
    (('y1 = 1 - h', 'y2 = h*y1'), ('y2',))
    >>> program.back, program.gradients
    (('a_y2 = k1*g', 'a_y1 = a_y2*h', 'a_h = a_y2*y1 - a_y1'), ('a_h', None))
    """
    recorder = _Recorder()
    results = tuple(recorder.atom(value) for value in values)
    for number, name in enumerate(results, start=1):
        recorder.pieces.setdefault(name, []).append(f"k{number}*g")
    back, gradients = recorder.backwards()
    return EntryText(tuple(recorder.lines), results, back, gradients)


@dataclass
class _Recorder:
    """Lines in the making: the values in their order, and what each sends back to those it was made of."""

    lines: list[str] = field(default_factory=list)
    known: dict[sp.Expr, str] = field(default_factory=dict)
    #: For every named value: the names it was made of, each with what it sends there.
    sent: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    #: The pieces of every gradient, as they come in.
    pieces: dict[str, list[str]] = field(default_factory=dict)

    def value(self, total: sp.Expr) -> str:
        """A sum as one name or number."""
        terms = terms_of(total)
        if len(terms) == 1 and terms[0].coefficient == 1 and not terms[0].word:
            return self.atom(terms[0].atom)
        if total in self.known:
            return self.known[total]
        pieces, sent = [], []
        for term in terms:
            factor = self._number(term)
            if term.is_constant:
                pieces.append(factor)
                continue
            name = self.atom(term.atom)
            pieces.append({"1": name, "-1": f"-{name}"}.get(factor, f"{factor}*{name}"))
            sent.append((name, {"1": "{a}", "-1": "-{a}"}.get(factor, f"{factor}*{{a}}")))
        if not sent:
            return coefficient_code(total)
        return self._named(total, " + ".join(pieces).replace("+ -", "- "), sent)

    def atom(self, atom: sp.Expr) -> str:
        """One atom as a name or number."""
        if atom in LETTERS:
            return LETTERS[atom]
        if atom == 1:
            return "1.0"
        if atom in self.known:
            return self.known[atom]
        if not isinstance(atom, Entrywise):
            if isinstance(atom, sp.Add):
                return self.value(atom)
            raise NotApplicable(f"expected an entrywise expression in H and H0, got {atom}; evaluate the field itself")
        if atom.function in ("*", "/"):
            left, right = (self.value(part) for part in atom.arguments)
            if atom.function == "*":
                return self._named(atom, f"{left}*{right}", [(left, f"{{a}}*{right}"), (right, f"{{a}}*{left}")])
            return self._named(atom, f"{left}/{right}", [(left, f"{{a}}/{right}"), (right, f"-{{a}}*{{y}}/{right}")])
        if atom.function == "**":
            return self._power(atom)
        return self._call(atom)

    def _power(self, atom: Entrywise) -> str:
        """A whole power, by squares; its gradient by the power before."""
        base, exponent = self.value(atom.arguments[0]), atom.exponent
        size = abs(exponent)
        if exponent > 0:
            return self._named(atom, power_text(base, size), [(base, f"{{a}}*({size}*{power_text(base, size - 1)})")])
        slope = f"{{a}}*({exponent}/({power_text(base, size + 1)}))"
        return self._named(atom, f"1/({power_text(base, size)})", [(base, slope)])

    def _call(self, atom: Entrywise) -> str:
        """A function of the language, by the text of its record."""
        record = None if is_key(atom.function) else FUNCTIONS[atom.function]
        if record is None or record.triton is None or record.triton_gradient is None:
            raise NotApplicable(f"expected a function with Triton text, got {atom.function}; evaluate the field itself")
        argument = self.value(atom.arguments[0])
        slope = record.triton_gradient.format(a="{a}", x=argument, y="{y}")
        return self._named(atom, record.triton.format(x=argument), [(argument, slope)])

    def _number(self, term: Term) -> str:
        """The coefficient of a term inside an expression, which has to be a number."""
        if term.word or term.coefficient.free_symbols or not term.coefficient.is_number:
            raise NotApplicable(
                f"expected numbers and no operator inside an expression, got {term.expression()}; evaluate the field "
                "itself"
            )
        return coefficient_code(term.coefficient)

    def _named(self, key: sp.Expr, text: str, sent: list[tuple[str, str]]) -> str:
        name = f"y{len(self.known) + 1}"
        self.known[key] = name
        self.lines.append(f"{name} = {text}")
        self.sent[name] = [(part, slope) for part, slope in sent if part.isidentifier()]
        return name

    def backwards(self) -> tuple[tuple[str, ...], tuple[str | None, str | None]]:
        """The lines of the gradients, from the last value to the letters."""
        lines = []
        for name in (*reversed(self.sent), *LETTERS.values()):
            if name not in self.pieces:
                continue
            lines.append(f"a_{name} = {' + '.join(self.pieces[name]).replace('+ -', '- ')}")
            for part, slope in self.sent.get(name, []):
                self.pieces.setdefault(part, []).append(slope.format(a=f"a_{name}", y=name))
        first, second = (f"a_{name}" if name in self.pieces else None for name in LETTERS.values())
        return tuple(lines), (first, second)


def power_text(base: str, exponent: int) -> str:
    """base**exponent for a name and a whole number, by squares.

    >>> power_text("h", 0), power_text("h", 1), power_text("h", 3), power_text("h", 6)
    ('1', 'h', 'h*h*h', '(h*h*h)*(h*h*h)')
    """
    if exponent < 4:
        return "*".join([base] * exponent) or "1"
    half = f"({power_text(base, exponent // 2)})"
    return f"{half}*{half}" if exponent % 2 == 0 else f"{half}*{half}*{base}"
