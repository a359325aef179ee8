"""c_0*(A@H) + sum_m c_m*phi_m(H, H0) with its gradients, in a few kernels.

Forward: one kernel for the terms, one product that adds them. Backward: one kernel for all entrywise gradients and sums
over the nodes, one transposed product that adds the gradient of the terms, one sampled product for weights that need a
gradient. H is saved, and A@H if its coefficient needs a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sympy as sp
import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.graphs.kernels import operations as ops
from rdgraph.graphs.kernels.entry_text import EntryText
from rdgraph.graphs.kernels.row_order import Rows
from rdgraph.language.factored_form import Entrywise, Term, terms_of
from rdgraph.language.normal_form import H0, H
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.torch_source import GeneratedFunction, coefficient_code
from rdgraph.vocabulary.functions import FUNCTIONS
from rdgraph.vocabulary.learned_functions import is_key

if TYPE_CHECKING:
    from rdgraph.graphs.kernels.entry_kernels import EntryKernels


# ---------------------------------------------------------------------- entry program
# Entrywise expressions and their gradients as straight-line Triton text for one entry of a state.
#
# The gradient goes backwards through the same lines, as in autograd, so that NaN and infinity appear in the same
# places; nothing is simplified.

#: Names of H and H0 in generated text.
LETTERS = {H: "h", H0: "h0"}


def entry_program(values: Sequence[sp.Expr]) -> EntryText:
    """The program of entrywise expressions; NotApplicable for coefficients and functions without Triton text.

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
    """Lines under construction: the values in order, and the gradient of each in its operands."""

    lines: list[str] = field(default_factory=list)
    known: dict[sp.Expr, str] = field(default_factory=dict)
    #: For every named value: the names of its operands, each with its gradient there.
    sent: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    #: The terms of every gradient, in order.
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
        """An integer power by squaring; its gradient uses the previous power."""
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
        """The coefficient of a term inside an expression, which must be a number."""
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
        """The lines of the gradients, from the last value back to H and H0."""
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


# ---------------------------------------------------------------------- fused terms
# Which equations run as generated kernels: c_0*(A@H) + sum_m c_m*phi_m(H, H0), the c the same for all nodes.

#: The admitted arguments of the generated function.
_ARGUMENTS = {"H", "H0", "A"}


@dataclass(frozen=True)
class FusedTerms:
    """The coefficients c_0, c_1, ... of the product and of the entrywise terms, and the text of the terms.

    A coefficient has a place among those of the generated function `field`, or is a number that this has not named.
    """

    places: tuple[int | None, ...]
    numbers: tuple[float, ...]
    text: EntryText

    @property
    def order(self) -> tuple[int, ...]:
        """For every coefficient of `field` the first term with it."""
        used = {index for index in self.places if index is not None}
        return tuple(self.places.index(index) for index in range(len(used)))

    @property
    def uses_start(self) -> bool:
        """Whether H0 occurs."""
        return self.text.gradients[1] is not None

    def wants_scale(self, values: Sequence[Tensor]) -> bool:
        """Whether the coefficient of the product, from those of `field`, needs a gradient."""
        scale_index = self.places[0]
        return scale_index is not None and values[scale_index].requires_grad

    def stack(self, values: Sequence[Tensor], one: Tensor, batch: tuple[int, ...]) -> Tensor:
        """The coefficients as one tensor (terms, 1 or B, 1, 1 or d), from those of `field`; `one` is 1 as a tensor."""
        factors = [
            _flat(number * one if index is None else values[index], batch)
            for index, number in zip(self.places, self.numbers, strict=True)
        ]
        return torch.stack(torch.broadcast_tensors(*factors))


def fused_terms(form: sp.Expr, field: GeneratedFunction, kinds: Mapping[str, Kind]) -> FusedTerms | None:
    """The terms of the factored form of a single field, whose generated function is `field`; None for other terms.

    Linear equations gain nothing: their product already includes every term.

    >>> from rdgraph.run.lowering.lowering_stages import lowered
    >>> from rdgraph.systems.parser import parse
    >>> lowered(parse("F"), False, "row").fused.places
    (0, 1, 2)
    >>> lowered(parse("-L@H + beta*tanh(A@H)"), False, "row").fused is None
    True
    """
    terms = terms_of(form)
    products = [term for term in terms if term.word]
    others = [term for term in terms if not term.word]
    is_one = len(products) == 1 and products[0].word == ("A",) and products[0].atom == H
    is_even = all(kinds[s.name] in (Kind.SCALAR, Kind.CHANNEL) for t in terms for s in t.coefficient.free_symbols)
    is_bent = any(isinstance(term.atom, Entrywise) for term in others)
    if not (is_one and is_even and is_bent and set(field.arguments) <= _ARGUMENTS):
        return None
    coefficients = [term.coefficient for term in (*products, *others)]
    if not set(field.coefficients) <= set(coefficients):
        return None
    try:
        text = entry_program([term.atom for term in others])
    except NotApplicable:
        return None
    places = {coefficient: index for index, coefficient in enumerate(field.coefficients)}
    numbers = tuple(float(c) if c.is_number else 0.0 for c in coefficients)
    return FusedTerms(tuple(places.get(c) for c in coefficients), numbers, text)


def _flat(coefficient: Tensor, batch: tuple[int, ...]) -> Tensor:
    """A coefficient that broadcasts against (*batch, n, d), with one value for all nodes, as (1 or B, 1, 1 or d)."""
    width = coefficient.shape[-1] if coefficient.ndim else 1
    if coefficient.ndim <= 2 or all(size == 1 for size in coefficient.shape[:-2]):
        return coefficient.reshape(1, 1, width)
    return coefficient.expand(*batch, 1, width).reshape(-1, 1, width)


# ---------------------------------------------------------------------- fused slope
@dataclass(eq=False)
class HeldTranspose:
    """A cache of weights in the order of the transpose, valid for the same, unchanged weights."""

    source: Tensor | None = None
    version: int = 0
    transposed: Tensor | None = None

    def weights(self, pattern: list[Tensor], weights: Tensor) -> Tensor:
        """The weights (1 or B, E) in that order."""
        is_same = self.source is not None and self.source.data_ptr() == weights.data_ptr()
        if self.transposed is None or not is_same or self.version != weights._version:
            self.source, self.version = weights.detach(), weights._version
            self.transposed = ops.transposed_weights(pattern, self.source)
        return self.transposed


@dataclass(frozen=True, eq=False)
class SlopeCall:
    """The arguments of a slope evaluation except the tensors that may need a gradient.

    Args:
        terms: The coefficients and the text of the terms.
        pattern: The tensors of A's pattern, as `rdgraph.graphs.kernels.operations` has them.
        function: The generated function, and `code`, which computes the same from torch's own operations.
        one: 1 as a tensor.
        wants_scale: Whether the coefficient of the product needs a gradient.
        held: The shared cache of weights in the order of the transpose.
    """

    terms: FusedTerms
    pattern: list[Tensor]
    function: GeneratedFunction
    code: Callable[..., Tensor]
    one: Tensor
    wants_scale: bool
    held: HeldTranspose | None = None

    @property
    def kernels(self) -> EntryKernels:
        from rdgraph.graphs.kernels.entry_kernels import entry_kernels

        return entry_kernels(self.terms.text)

    def value(self, weights: Tensor, H: Tensor, H0: Tensor | None, stack: Tensor) -> Tensor:
        """The slope (B, n, d); weights (1 or B, E), stack (rows, 1 or B, 1, 1 or d)."""
        from rdgraph.graphs.kernels import triton_spmm as fused

        entry = self.kernels.value(H, H0, stack)
        return fused.spmm(self._rows(0), weights, H, stack[0], [(self.one, entry)], out=entry)

    def value_and_product(self, weights: Tensor, H: Tensor, H0: Tensor | None, stack: Tensor) -> tuple[Tensor, Tensor]:
        """A@H, and the slope."""
        from rdgraph.graphs.kernels import triton_spmm as fused

        return fused.pull(self._rows(0), weights, H, stack[0], [(self.one, self.kernels.value(H, H0, stack))])

    def gradients(
        self, g: Tensor, H: Tensor, H0: Tensor | None, product: Tensor | None, weights: Tensor, stack: Tensor,
        partial: Tensor | None, wanted: Sequence[bool],
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        """The gradients in the weights, H and H0, where wanted; `partial` receives those in the stack."""
        wants_weights, wants_state, wants_start = wanted
        entry, grad_start, scaled = self.kernels.gradient(
            g, H, H0, product, stack, partial, wants_start=wants_start, wants_scaled=wants_weights
        )
        grad_weights = None if scaled is None else self.sampled(scaled, H, weights)
        grad_state = None
        if wants_state:
            source, scale = (g, stack[0]) if scaled is None else (scaled, None)
            grad_state = self.pulled(weights, source, scale, entry)
        return grad_weights, grad_state, grad_start

    def partial_sums(self, H: Tensor, count: int) -> Tensor:
        """Workspace for the gradients of the stack of `count` evaluations."""
        return self.kernels.partial_sums(H, count)

    def stack_gradient(self, partial: Tensor | None, stack: Tensor) -> Tensor | None:
        """The gradient of the stack, summed over all evaluations."""
        from rdgraph.graphs.kernels.entry_kernels import stack_gradient

        return None if partial is None else stack_gradient(partial, stack)

    def pulled(self, weights: Tensor, g: Tensor, scale: Tensor | None, entry: Tensor) -> Tensor:
        """scale*(A'@g) + entry."""
        from rdgraph.graphs.kernels import triton_spmm as fused

        held = HeldTranspose() if self.held is None else self.held
        back = held.weights(self.pattern, weights)
        return fused.spmm(self._rows(1), back, g, scale, [(self.one, entry)], out=entry)

    def sampled(self, g: Tensor, H: Tensor, weights: Tensor) -> Tensor:
        """The gradient of the operator's weights from the gradient g of the slope."""
        from rdgraph.graphs.kernels import triton_sddmm

        return triton_sddmm.sddmm(self._rows(0), g, H, len(weights) == 1).to(weights.dtype)

    def eager(self, weights: Tensor, H: Tensor, H0: Tensor | None, stack: Tensor) -> Tensor:
        """The slope by torch's own operations, which can be differentiated repeatedly."""

        def product(x: Tensor, scale: Tensor | None = None, *terms: tuple[Tensor, Tensor]) -> Tensor:
            factors, values = [k for k, _ in terms], [y.contiguous() for _, y in terms]
            return ops.spmm(self.pattern, weights, x.contiguous(), scale, None, factors, values)

        given = {"H": H, "H0": H0, "A": product}
        arguments = [given[name] for name in self.function.arguments]
        return self.code(None, *arguments, *(stack[row] for row in self.terms.order))

    def _rows(self, side: int) -> Rows:
        """The rows of A, or those of its transpose."""
        return Rows.from_tensors(ops.parts(self.pattern)[side])


class FusedSlope(torch.autograd.Function):
    """The slope for autograd: call, weights (1 or B, E), H and H0 (B, n, d), stack (rows, 1 or B, 1, 1 or d)."""

    @staticmethod
    def forward(
        ctx: Any, call: SlopeCall, weights: Tensor, H: Tensor, H0: Tensor | None, stack: Tensor
    ) -> Tensor:  # fmt: skip
        product = None
        if call.wants_scale and ctx.needs_input_grad[4]:
            product, slope = call.value_and_product(weights, H, H0, stack)
        else:
            slope = call.value(weights, H, H0, stack)
        ctx.call = call
        ctx.save_for_backward(weights, H, H0, stack, product)
        return slope

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        weights, H, H0, stack, product = ctx.saved_tensors
        call, wanted = ctx.call, ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():
            return None, *differentiable(call.eager, [weights, H, H0, stack], wanted, g)
        partial = call.partial_sums(H, 1) if wanted[3] else None
        sums = None if partial is None else partial[0]
        gradients = call.gradients(g.contiguous(), H, H0, product, weights, stack, sums, wanted[:3])
        return None, *gradients, call.stack_gradient(partial, stack)


def differentiable(
    function: Callable[..., Any], inputs: Sequence[Tensor | None], wanted: Sequence[bool], g: Any
) -> list[Tensor | None]:
    """The gradients of a function of some inputs, as expressions that can be differentiated again."""
    with torch.enable_grad():
        # Aliases: one input may depend on another, and that path must not be counted here.
        copies = [None if x is None else x.view_as(x) for x in inputs]
        asked = [x for x, want in zip(copies, wanted, strict=True) if want and x is not None]
        gradients = iter(torch.autograd.grad(function(*copies), asked, g, create_graph=True, allow_unused=True))
    return [next(gradients) if want else None for want in wanted]


@dataclass(frozen=True, eq=False)
class FusedField:
    """A field at one time by generated kernels: the call, and the arguments of `FusedSlope` besides the state."""

    call: SlopeCall
    weights: Tensor
    start: Tensor | None
    stack: Tensor

    def slope(self, H: Tensor) -> Tensor:
        """The slope (*batch, n, d)."""
        if self.is_tracked(H):
            slope: Tensor = FusedSlope.apply(  # type: ignore[no-untyped-call]
                self.call, self.weights, flat(H), self.start, self.stack
            )
            return slope.view(H.shape)
        return self.call.value(self.weights, flat(H), self.start, self.stack).view(H.shape)

    def is_tracked(self, H: Tensor) -> bool:
        """Whether the state, weights, stack or start need a gradient."""
        known = (H, self.weights, self.stack, *(() if self.start is None else (self.start,)))
        return torch.is_grad_enabled() and any(x.requires_grad for x in known)


def flat(x: Tensor) -> Tensor:
    """(*batch, n, d) as (B, n, d), contiguous."""
    return x.reshape(-1, *x.shape[-2:]).contiguous()
