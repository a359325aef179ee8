"""The C source of a field: one function per pass over the rows, and Runge-Kutta steps around them.

The body of a pass is what one entry (node i, channel c) needs: loads, gathered products, entrywise lines, stores. The
frame around it (`rdgraph/data/compiled_frame.c`) is the same for every field.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import resources
from string import Template

import sympy as sp

from rdgraph.algebra.factored_form import Entrywise, Term, factored_form, terms_of
from rdgraph.algebra.normal_form import LAPLACIAN, TIME, Algebra, Mix, State
from rdgraph.errors import InvalidArgument
from rdgraph.lowering.c_expressions import expression_text, function_source, number_text, power_text
from rdgraph.lowering.row_plan import Product, RowPlan, as_product, mixed
from rdgraph.lowering.torch_source import matrix_code
from rdgraph.lowering.vector_field import coefficient_symbol
from rdgraph.syntax.reader import start_of
from rdgraph.syntax.tree import Kind
from rdgraph.syntax.unfolding import unfolded
from rdgraph.systems.system import System

#: Rows that one thread takes at a time; fixed, so that no bit depends on the number of threads.
BLOCK = 8192
#: Degrees for which the rows of a run have a loop of their own.
RUN_DEGREES = range(1, 9)
#: Names that the source uses itself.
_TAKEN = {"t", "p", "i", "c", "k", "I", "real", "int", "do", "if", "for"}
_GENERATED = re.compile(r"[cwxyk]\d+")


@dataclass(frozen=True)
class Layout:
    """What the source depends on beside the equations: types and shapes, never values.

    `operators` has the letters of the operators with the type of their indices, `axes` says of every coefficient
    whether it varies along the nodes and along the channels; with `has_degree`, L = D - A is a letter of its own.
    """

    real: str
    channels: int
    operators: tuple[tuple[str, str], ...]
    has_degree: bool
    has_runs: bool
    axes: tuple[tuple[str, tuple[bool, bool]], ...]

    @property
    def laplacians(self) -> dict[str, str]:
        """Letters D - A, with the letter of their A."""
        return {"L": "A"} if self.has_degree else {}

    def axes_of(self, expression: sp.Expr) -> tuple[bool, bool]:
        """The axes along which an expression in the coefficients varies."""
        known = dict(self.axes)
        own = [known[s.name] for s in expression.free_symbols - {TIME}]
        return any(a for a, _ in own), any(b for _, b in own)


@dataclass
class PassText:
    """One pass in the making: loads and lines of an entry, what is gathered, what is stored."""

    level: int
    loads: dict[str, str] = field(default_factory=dict)
    gathers: dict[tuple[str, str], str] = field(default_factory=dict)
    mixes: dict[tuple[str, str], str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CompiledSource:
    """The source, and the order in which its arrays are handed over."""

    text: str
    coefficients: tuple[sp.Expr, ...]
    matrices: tuple[sp.Expr, ...]
    stored: tuple[str, ...]
    passes: int


def compiled_source(system: System, layout: Layout) -> CompiledSource:
    """The C source of all fields of a system; the symbols of its coefficients are those of `coefficient_symbol`."""
    names = _state_names(system)
    starts = {state: start_of(state) for state in system.fields}
    symbols = {name: coefficient_symbol(name) for name in system.letters}
    symbols |= {name: State(name) for name in (*starts, *starts.values())} | {TIME.name: TIME}
    kinds = {**system.letters, **dict.fromkeys((*starts, *starts.values()), Kind.FIELD)}
    algebra = Algebra(symbols, kinds, {} if layout.has_degree else LAPLACIAN)
    forms = {names[state]: factored_form(unfolded(tree), algebra) for state, tree in system.flow.items()}
    plan = RowPlan(forms, {State(name): own for name, own in names.items()}, kinds)
    states = [tuple(names[name] for name in some) for some in (starts, starts.values())]
    return _Writer(plan, layout, *states).source(system.text)


def _state_names(system: System) -> dict[str, str]:
    """Names in C of the states and their starts: their own, unless the source uses them itself."""
    names: dict[str, str] = {}
    for state in (*system.fields, *map(start_of, system.fields)):
        name = state.replace("'", "_rate")
        while name in _TAKEN or name in names.values() or _GENERATED.fullmatch(name):
            name += "_"
        names[state] = name
    return names


class _Writer:
    """One source in the making."""

    def __init__(self, plan: RowPlan, layout: Layout, fields: tuple[str, ...], starts: tuple[str, ...]) -> None:
        self.plan, self.layout, self.fields, self.starts = plan, layout, fields, starts
        self.timed: dict[sp.Expr, str] = {}
        self.coefficients: dict[sp.Expr, str] = {}
        self.matrices: dict[sp.Expr, str] = {}
        self.functions: dict[str, None] = {}
        self.temporaries = 0

    def source(self, equation: str) -> CompiledSource:
        passes = [self._pass(level) for level in range(1, self.plan.passes + 1)]
        values = {
            "equation": " ".join(equation.split()),
            "coefficients": self._coefficient_notes(),
            "real": self.layout.real,
            "channels": self.layout.channels,
            "width": self.layout.channels * len(self.fields),
            "block": BLOCK,
            "stored_count": len(self.plan.stored),
            "functions": "\n".join(map(function_source, self.functions)),
            "members": "\n".join(f"    {line}" for line in self._member_lines()),
            "filling": "\n".join(f"    {line}" for line in self._filling_lines()),
            "passes": "\n".join(self._pass_source(text) for text in passes),
            "calls": "\n".join(f"    RUN_PASS(pass_{text.level})" for text in passes),
        }
        text = Template(_frame()).substitute(values)
        names = tuple(x.name for x in self.plan.stored)
        return CompiledSource(text, tuple(self.coefficients), tuple(self.matrices), names, len(passes))

    # ------------------------------------------------------------------ one pass
    def _pass(self, level: int) -> PassText:
        entry = _Entry(self, PassText(level))
        for stored in self.plan.stored:
            if stored.level == level:
                entry.store(stored.name, stored.product)
        for name, form in self.plan.forms.items():
            if self.plan.levels[name] == level:
                entry.output(name, form)
        return entry.text

    def _pass_source(self, text: PassText) -> str:
        arguments = [f"const real {name}" for name in (*text.gathers.values(), *text.mixes.values())]
        body = [*(f"const real {name} = {load};" for name, load in text.loads.items()), *text.lines]
        lines = [
            f"static inline void entry_{text.level}({', '.join(['const Member *p, const int64_t i, const int c', *arguments])}) {{",
            *(f"    {line}" for line in body),
            "}",
            "",
            *(self._runs(text) if self.layout.has_runs and text.gathers else self._rows(text)),
        ]
        return "\n".join(lines) + "\n"

    def _rows(self, text: PassText) -> list[str]:
        """The pass over compressed rows."""
        lines = [
            f"static void pass_{text.level}(const Member *member, const int64_t begin, const int64_t end) {{",
            "    const Member copy = *member, *p = &copy;",
            *(["    SIMD"] if self.layout.channels == 1 and not text.gathers else []),
            "    for (int64_t i = begin; i < end; ++i) {",
            *(f"        real {name}[CHANNELS] = {{0}};" for name in text.gathers.values()),
        ]
        for letter in dict.fromkeys(letter for letter, _ in text.gathers):
            lines += [
                f"        for ({dict(self.layout.operators)[letter]} e = p->{letter}_rows[i]; e < p->{letter}_rows[i + 1]; ++e) {{",
                f"            const real weight = p->{letter}_weights[e];",
                f"            const int64_t j = p->{letter}_columns[e];",
                "            EACH_CHANNEL {",
                *(
                    f"                {name}[c] += weight * {self.at(array, 'j')};"
                    for (own, array), name in text.gathers.items()
                    if own == letter
                ),
                "            }",
                "        }",
            ]
        return [*lines, *self._finish(text, " " * 8), "    }", "}"]

    def _runs(self, text: PassText) -> list[str]:
        """The pass over runs of rows with the same offsets and weights."""
        (letter,) = dict.fromkeys(letter for letter, _ in text.gathers)
        added = [
            f"{name}[c] += weights[k] * {self.at(array, '(i + offsets[k])')};"
            for (_, array), name in text.gathers.items()
        ]
        lines = [
            f"static inline void run_{text.level}(const Member *p, const int degree, const int64_t begin, const int64_t end, "
            "const int64_t *restrict offsets, const real *restrict weights) {",
            *(["    SIMD"] if self.layout.channels == 1 else []),
            "    for (int64_t i = begin; i < end; ++i) {",
            *(f"        real {name}[CHANNELS] = {{0}};" for name in text.gathers.values()),
            "        for (int k = 0; k < degree; ++k) {",
            "            EACH_CHANNEL {",
            *(f"                {line}" for line in added),
            "            }",
            "        }",
            *self._finish(text, " " * 8),
            "    }",
            "}",
            "",
            f"static void pass_{text.level}(const Member *member, const int64_t begin, const int64_t end) {{",
            "    const Member copy = *member, *p = &copy;",
            f"    for (int64_t r = first_run(p->{letter}_starts, p->{letter}_count[0], begin); p->{letter}_starts[r] < end; ++r) {{",
            f"        const int64_t first = p->{letter}_starts[r] < begin ? begin : p->{letter}_starts[r];",
            f"        const int64_t last = p->{letter}_starts[r + 1] > end ? end : p->{letter}_starts[r + 1];",
            f"        const int64_t *offsets = p->{letter}_offsets + p->{letter}_entries[r];",
            f"        const real *weights = p->{letter}_weights + p->{letter}_entries[r];",
            f"        switch (p->{letter}_degrees[r]) {{",
            *(f"        case {k}: WITH_CONSTANTS(run_{text.level}, {k}) break;" for k in RUN_DEGREES),
            f"        default: run_{text.level}(p, p->{letter}_degrees[r], first, last, offsets, weights);",
            "        }",
            "    }",
            "}",
        ]  # fmt: skip
        return lines

    def _finish(self, text: PassText, indent: str) -> list[str]:
        """Mixed channels, and then every entry of a row."""
        lines = []
        for (matrix, array), name in text.mixes.items():
            lines += [
                f"real {name}[CHANNELS] = {{0}};",
                "for (int k = 0; k < CHANNELS; ++k) {",
                f"    const real value = {self.at(array, 'i', 'k')};",
                f"    EACH_CHANNEL {name}[c] += value * p->{matrix}[k * CHANNELS + c];",
                "}",
            ]
        arguments = ["p", "i", "c", *(f"{name}[c]" for name in (*text.gathers.values(), *text.mixes.values()))]
        lines.append(f"EACH_CHANNEL entry_{text.level}({', '.join(arguments)});")
        return [indent + line for line in lines]

    # ------------------------------------------------------------------ where things lie
    def at(self, array: str, row: str, channel: str = "c") -> str:
        """An entry of a state, a start or a stored array."""
        for names, base in ((self.fields, "state"), (self.starts, "start")):
            if array in names:
                block = names.index(array)
                return f"p->{base}[{row} * WIDTH + {f'{block} * CHANNELS + ' if block else ''}{channel}]"
        return f"p->{array}[{row} * CHANNELS + {channel}]"

    def coefficient(self, expression: sp.Expr, loads: dict[str, str]) -> str:
        """The name of a coefficient in an entry; numbers stand as they are."""
        if expression.is_number:
            return number_text(expression)
        if expression.has(TIME):
            return self._timed(expression, loads)
        name = self.coefficients.setdefault(expression, f"c{len(self.coefficients)}")
        along_nodes, along_channels = self.layout.axes_of(expression)
        index = {(True, True): "i * CHANNELS + c", (True, False): "i", (False, True): "c", (False, False): "0"}
        loads[name] = f"p->{name}[{index[along_nodes, along_channels]}]"
        return name

    def _timed(self, expression: sp.Expr, loads: dict[str, str]) -> str:
        """The name of a coefficient that varies with the time, computed from those that do not."""
        loads.setdefault("t", "(real)p->t")
        own = {s: sp.Symbol(self.coefficient(s, loads)) for s in expression.free_symbols - {TIME}}
        name = self.timed.setdefault(expression, f"k{len(self.timed)}")
        loads[name] = expression_text(expression.xreplace(own))
        return name

    def _member_lines(self) -> list[str]:
        lines = ["const real *restrict state, *restrict start;", "real *restrict out;"]
        lines += [f"const real *restrict {name};" for name in (*self.coefficients.values(), *self.matrices.values())]
        lines += [f"real *restrict {x.name};" for x in self.plan.stored]
        for letter, index in self.layout.operators:
            lines += [f"const {kind} *restrict {letter}_{part};" for kind, part in self._parts(index)]
        lines += [f"const real *restrict {letter}_degree;" for letter in self.layout.laplacians]
        return lines

    def _parts(self, index: str) -> list[tuple[str, str]]:
        if self.layout.has_runs:
            kinds = [("int64_t", "count"), ("int64_t", "starts"), ("int64_t", "entries"), ("int32_t", "degrees")]
            return [*kinds, ("int64_t", "offsets"), ("real", "weights")]
        return [(index, "rows"), (index, "columns"), ("real", "weights")]

    def _filling_lines(self) -> list[str]:
        """How the arrays that are handed over become the pointers of one member."""
        handed = [("real", "start")]
        handed += [("real", name) for name in (*self.coefficients.values(), *self.matrices.values())]
        for letter, index in self.layout.operators:
            handed += [(kind, f"{letter}_{part}") for kind, part in self._parts(index)]
        handed += [("real", f"{letter}_degree") for letter in self.layout.laplacians]
        lines = [f"p.{name} = (const {kind} *)arrays[{k}] + m * strides[{k}];" for k, (kind, name) in enumerate(handed)]
        lines += [f"p.{x.name} = work + {k} * nodes * CHANNELS;" for k, x in enumerate(self.plan.stored)]
        return lines

    def _coefficient_notes(self) -> str:
        names = [(name, str(c)) for c, name in self.coefficients.items()]
        names += [(name, matrix_code(m)) for m, name in self.matrices.items()]
        return "\n".join(f"// {name} = {text}" for name, text in names)


class _Entry:
    """The lines of one pass for one entry."""

    def __init__(self, writer: _Writer, text: PassText) -> None:
        self.writer, self.plan, self.text = writer, writer.plan, text
        self.known: dict[sp.Expr, str] = {}

    def store(self, name: str, product: Product) -> None:
        term = Term(sp.S.One, product.word, product.atom)
        value = self._atom(product.atom) if not product.word else self._gathered(term)
        self.text.lines += [f"const real {name} = {value};", f"p->{name}[i * CHANNELS + c] = {name};"]

    def output(self, name: str, form: sp.Expr) -> None:
        self.text.lines.append(f"{self.writer.at(name, 'i').replace('p->state', 'p->out', 1)} = {self.value(form)};")

    # ------------------------------------------------------------------ sums
    def value(self, total: sp.Expr) -> str:
        """A sum as text."""
        letter, together, inner = self.plan.nested.get(total, ("", (), sp.S.Zero))
        pieces = [self._scaled(t) for t in terms_of(total) if t not in together]
        if together:
            array = self.plan.array(as_product(inner))
            assert array is not None
            pieces.append(self._product(letter, array))
        return " + ".join(pieces).replace("+ -", "- ") if pieces else "0"

    def _scaled(self, term: Term) -> str:
        if term.is_constant:
            return self._factor(term.coefficient)
        value = self._named(Product(term.word, term.atom))
        match term.coefficient:
            case sp.S.One:
                return value
            case sp.S.NegativeOne:
                return f"-{value}"
        return f"{self._factor(term.coefficient)}*{value}"

    def _factor(self, coefficient: sp.Expr) -> str:
        return self.writer.coefficient(coefficient, self.text.loads)

    # ------------------------------------------------------------------ products and atoms
    def _named(self, product: Product) -> str:
        """word@atom as one name or bracketed text."""
        array = self.plan.array(product)
        if array is not None and not (not product.word and product.atom == 1):
            stored = next((x for x in self.plan.stored if x.name == array), None)
            if stored is None or stored.level < self.text.level:
                self.text.loads[array] = self.writer.at(array, "i")
            return array if stored is None or stored.level <= self.text.level else self._anew(product)
        return self._anew(product)

    def _anew(self, product: Product) -> str:
        if product.word:
            return self._gathered(Term(sp.S.One, product.word, product.atom))
        return self._atom(product.atom)

    def _gathered(self, term: Term) -> str:
        array = self.plan.array(Product(term.word[1:], term.atom))
        assert array is not None
        return self._product(term.word[0], array)

    def _product(self, letter: str, array: str) -> str:
        """letter@array, gathered in this pass; L = D - A takes the entry of the row along."""
        if letter in self.writer.layout.laplacians:
            inner = self._product(self.writer.layout.laplacians[letter], array)
            self.text.loads[array] = self.writer.at(array, "i")
            self.text.loads[f"{letter}_degree"] = f"p->{letter}_degree[i]"
            return f"({letter}_degree*{array} - {inner})"
        return self.text.gathers.setdefault((letter, array), f"{letter}_{array}")

    def _atom(self, atom: sp.Expr) -> str:
        if atom == 1:
            return "1"
        if atom in self.known:
            return self.known[atom]
        match atom:
            case Mix():
                array = self.plan.array(mixed(atom))
                assert array is not None
                (matrix,) = atom.word
                if matrix.has(TIME):
                    raise InvalidArgument(
                        f"expected mixing matrices that stay as they are, got {matrix} in {TIME}; evaluate the field "
                        "itself"
                    )
                name = self.writer.matrices.setdefault(matrix, f"w{len(self.writer.matrices)}")
                return self.text.mixes.setdefault((name, array), f"{name}_{array}")
            case Entrywise(function="*" | "/"):
                left, right = (self._operand(a) for a in atom.arguments)
                text = f"{left}{atom.function}{right}"
            case Entrywise(function="**"):
                text = power_text(self._operand(atom.arguments[0]), atom.exponent)
            case Entrywise():
                self.writer.functions[atom.function] = None
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
        self.writer.temporaries += 1
        self.known[key] = f"y{self.writer.temporaries}"
        self.text.lines.append(f"const real {self.known[key]} = {text};")
        return self.known[key]


def _frame() -> str:
    return resources.files("rdgraph").joinpath("data", "compiled_frame.c").read_text(encoding="utf-8")
