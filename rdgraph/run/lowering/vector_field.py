"""`lower`: a system, an operator and coefficients become a batched torch vector field f(t, H)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse
import sympy as sp
import torch
from torch import Tensor, nn

from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.graphs.operator import Operator
from rdgraph.language.reader import TIME_LETTER, start_of
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.coefficients import (
    CoefficientShape,
    coefficient_dtype,
    coefficient_shapes,
    read_coefficients,
    valued_letters,
)
from rdgraph.run.lowering.field_blocks import FieldBlocks
from rdgraph.run.lowering.fused_slope import FusedField, HeldTranspose
from rdgraph.run.lowering.kernel_route import KernelRoute
from rdgraph.run.lowering.lowering_stages import Code, coefficient_symbol, lowered
from rdgraph.run.lowering.packed_form import PACKED, PACKED_START
from rdgraph.run.lowering.product_plan import ProductPlan
from rdgraph.run.lowering.splines import LearnedShape
from rdgraph.run.lowering.torch_source import GeneratedFunction, coefficient_code, evaluated
from rdgraph.systems.further_operators import FurtherOperators
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

# ---------------------------------------------------------------------- operator application
# How generated functions apply operators: B(x, scale, (factor, value), ...) = scale*(B@x) + sum of factor*value.

Application = Callable[..., Tensor]


def application(operator: Operator, dtype: torch.dtype) -> Application:
    """The application of A, or of another operator, to states that are converted to a precision.

    >>> from rdgraph import generators
    >>> swap = application(generators.path(2).operator("row"), torch.float32)
    >>> swap(torch.tensor([[1.0], [2.0]]), torch.tensor(10.0)).ravel()
    tensor([20., 10.])
    """

    def apply(x: Tensor, scale: Tensor | None = None, *terms: tuple[Tensor, Tensor]) -> Tensor:
        return operator.product(x.to(dtype), scale, [(k, y.to(dtype)) for k, y in terms])

    return apply


def laplacian_application(operator: Operator, one: Tensor, dtype: torch.dtype) -> Application:
    """The application of L = D - A, for operators that are not normalised; `one` is 1 as a tensor of their kind.

    >>> from rdgraph import generators
    >>> laplacian = laplacian_application(generators.path(2).operator("none"), torch.tensor(1.0), torch.float32)
    >>> laplacian(torch.tensor([[1.0], [3.0]])).ravel()
    tensor([-2.,  2.])
    """
    degree = operator.degree
    if degree is None:
        raise InvalidArgument(f"expected an operator with degrees for L, got {operator!r}; make it with 'none'")

    def apply(x: Tensor, scale: Tensor | None = None, *terms: tuple[Tensor, Tensor]) -> Tensor:
        factor = one if scale is None else scale
        x = x.to(dtype)
        return operator.product(x, -factor, [(factor * degree, x), *((k, y.to(dtype)) for k, y in terms)])

    return apply


# ---------------------------------------------------------------------- further operators
# The operators besides A that a field holds: read from the arguments, checked against their declared properties.

#: How far weights may deviate from declared properties, relative to the largest weight.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


@dataclass(frozen=True)
class HeldOperators:
    """Operators by name; they move, and are restricted to members, with their field."""

    entries: Mapping[str, Operator] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    @property
    def weights(self) -> tuple[Tensor, ...]:
        return tuple(held.weights for held in self.entries.values())

    def application(self, name: str, dtype: torch.dtype) -> Application:
        """B(x, scale, (factor, value), ...) = scale*(B@x) + the sum of factor*value."""
        return application(self.entries[name].current(), dtype)

    def moved(self, fn: Callable[[Tensor], Tensor]) -> HeldOperators:
        """The held operators on another device or in another precision, where `fn` moves tensors."""
        return self._each(lambda held: moved_operator(held, fn(held.weights), fn))

    def member(self, index: tuple[int, ...]) -> HeldOperators:
        """The held operators of one member of the batch."""
        return self._each(lambda held: held.member(index).prepare())

    def members(self, index: Tensor) -> HeldOperators:
        """The held operators of some members, counted through the flattened batch."""
        return self._each(lambda held: held.members(index).prepare())

    def _each(self, change: Callable[[Operator], Operator]) -> HeldOperators:
        return HeldOperators({name: change(held) for name, held in self.entries.items()})


def moved_operator(held: Operator, weights: Tensor, fn: Callable[[Tensor], Tensor]) -> Operator:
    """The operator with weights that `fn` has moved, on their device; `fn` moves its degrees too."""
    known = held.current()
    degree = None if known.degree is None else fn(known.degree)
    return replace(known, pattern=known.pattern.to(weights.device), weights=weights, degree=degree).prepare()


def reweighted_operator(held: Operator, weights: Tensor) -> Operator:
    """An operator with the weights that it has now: others than the first ones are free; where L = D - A, D is theirs.

    >>> from rdgraph import generators
    >>> ring = generators.ring(3).operator("row")
    >>> reweighted_operator(ring, ring.weights) is ring, reweighted_operator(ring, 2 * ring.weights).normalisation
    (True, 'free')
    """
    has_degrees = held.record.has_degrees
    follows = has_degrees and held.degree is not None and held.degree.requires_grad
    if held.weights is weights and not follows:
        return held.current()
    kind, degree = (held.normalisation, None) if has_degrees else ("free", held.degree)
    return held.with_weights(weights, kind, degree)


def read_operators(
    given: Mapping[str, Any], declared: FurtherOperators, operator: Operator, batch: tuple[int, ...]
) -> HeldOperators:
    """The given operators besides A, checked; raises if a declared one is missing or one is unknown."""
    for name in given:
        if name not in declared.names:
            raise UnknownName("operator of this system", name, declared.names)
    missing = [name for name in declared.names if name not in given]
    if missing:
        raise InvalidArgument(
            f"expected a value for every operator, got none for {', '.join(missing)}; pass "
            f"operators={{{missing[0]!r}: ...}}"
        )
    matrices = {}
    for name, value in given.items():
        held = _operator(name, value).to(device=operator.device, dtype=operator.dtype)
        if held.num_nodes != operator.num_nodes:
            raise InvalidArgument(f"expected {name} on {operator.num_nodes} nodes, as A is, got {held.num_nodes}")
        if held.batch not in ((), batch):
            raise InvalidArgument(f"expected weights of {name} without a batch or for {batch}, got {held.batch}")
        _check_facts(name, held, declared.facts(name))
        matrices[name] = held.prepare()
    return HeldOperators(matrices)


def _operator(name: str, value: Any) -> Operator:
    if isinstance(value, Operator):
        return value
    if scipy.sparse.issparse(value) or (isinstance(value, np.ndarray | Tensor) and value.ndim == 2):
        rows = scipy.sparse.csr_array(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)
        rows.sort_indices()
        return Operator.from_csr(rows.indptr, rows.indices, torch.as_tensor(rows.data, dtype=torch.float64))
    raise InvalidArgument(
        f"expected {name} as an Operator, a scipy sparse or a dense matrix, got {type(value).__name__}; make one with "
        "graph.operator(...)"
    )


def _check_facts(name: str, held: Operator, facts: tuple[str, ...]) -> None:
    """Raise unless the weights have the properties the equation declares; without any, nothing is computed."""
    claimed = [fact for fact in facts if fact in WEIGHT_FACTS]
    if not claimed:
        return
    weights = torch.atleast_2d(held.weights.detach()).flatten(0, -2).cpu().double().numpy()
    rows, columns = held.pattern.rows.cpu().numpy(), held.pattern.indices.cpu().numpy()
    size = np.abs(weights).max(initial=1.0) * TOLERANCE.get(held.dtype, 1e-2)
    for member in weights:
        matrix = scipy.sparse.csr_array((member, (rows, columns)), shape=(held.num_nodes, held.num_nodes))
        for fact in claimed:
            if not WEIGHT_FACTS[fact](matrix, size):
                raise InvalidArgument(f"expected {name} to be {fact}, as the equation says, got weights that are not")


def _is_stochastic(matrix: Any, size: float) -> bool:
    sums = np.abs(matrix.sum(1) - 1).max()
    return bool(matrix.data.min(initial=0.0) >= -size and sums <= size * matrix.shape[0])


#: Properties of operator weights that an equation may declare, each with its test of a matrix, up to rounding.
WEIGHT_FACTS: dict[str, Callable[[Any, float], bool]] = {
    "symmetric": lambda matrix, size: bool(abs(matrix - matrix.T).max() <= size),
    "antisymmetric": lambda matrix, size: bool(abs(matrix + matrix.T).max() <= size),
    "stochastic": _is_stochastic,
}


# ---------------------------------------------------------------------- state checks
# Checks of the states and times passed to a field.


def check_state(H: Any, operator: Operator, batch: tuple[int, ...]) -> None:
    """Raise unless a state has the nodes, precision and device of an operator, and the batch of its field."""
    wanted = (*batch, operator.num_nodes)
    if not isinstance(H, Tensor) or H.ndim < 2 or (H.shape[:-1] if batch else H.shape[-2:-1]) != wanted:
        got = tuple(H.shape) if hasattr(H, "shape") else type(H).__name__
        lead = "" if batch else "..., "
        raise InvalidArgument(
            f"expected a state tensor of shape ({lead}{', '.join(map(str, wanted))}, channels), got "
            f"{type(H).__name__} {got}; a batch of different weights or coefficients is declared by "
            "lower(..., batch=(...))"
        )
    if H.dtype != operator.dtype or H.device != operator.device:
        raise InvalidArgument(
            f"expected a state of {operator.dtype} on {operator.device}, got {H.dtype} on {H.device}; "
            "convert it with .to(...), or lower with dtype= and device="
        )


def check_channels(
    channels: int, shapes: Mapping[str, CoefficientShape | LearnedShape], values: Mapping[str, Tensor]
) -> None:
    """Raise unless coefficients that vary along channels have as many as every field of a state."""
    for name, value in values.items():
        shape = shapes[name]
        width = shape.channels(value)
        if width not in (None, channels):
            what = f"{shape.kind} coefficient" if isinstance(shape, CoefficientShape) else "learned function"
            raise InvalidArgument(
                f"expected {width} channels, as many as the {what} {name} has, got {channels}; give every "
                f"field {width}, or lower with another {name}"
            )


def read_time(t: Any, H: Tensor, equation: str) -> Tensor:
    """The time as it broadcasts against a state: () or (*batch, 1, 1), in the precision of coefficients."""
    if t is None:
        raise InvalidArgument(f"expected a time, since {equation} depends on it, got None; call field(t, H)")
    time = torch.as_tensor(t, dtype=coefficient_dtype(H.dtype), device=H.device)
    if time.ndim not in (0, H.ndim - 2, H.ndim):
        raise InvalidArgument(
            f"expected a time () or {tuple(H.shape[:-2])}, got {tuple(time.shape)}; give one, or one for each member"
        )
    return time[..., None, None] if 0 < time.ndim < H.ndim else time


# ---------------------------------------------------------------------- vector field
class VectorField(nn.Module):
    """dH/dt = f(t, H) on one operator, with H of shape (*batch, nodes, channels).

    The states of several fields lie side by side along the channels, in the order of `system.fields`; `blocks` packs
    and cuts them.

    A field without a batch takes states with any axes in front: all of them share its weights and coefficients.
    Made by `lower`. `plan` lists the sparse products, `source` is the torch code that runs. Parameters
    among the coefficients (and the edge weights) are parameters of the module; other tensors keep their gradients.
    """

    _weights: Tensor

    def __init__(
        self,
        system: System,
        operator: Operator,
        coefficients: Mapping[str, Tensor],
        batch: tuple[int, ...],
        *,
        further: HeldOperators | None = None,
    ) -> None:
        super().__init__()
        self.system, self.batch = system, batch
        self.blocks = FieldBlocks(system.fields)
        self.further = further or HeldOperators()
        self._stages = lowered(system, operator.degree is not None, operator.normalisation)
        self._route = KernelRoute.of(self._stages)
        self._operator = operator.prepare()
        self._shapes = coefficient_shapes(system, operator.num_nodes, batch)
        self._hold("_weights", operator.weights)
        for name, value in coefficients.items():
            self._hold(f"coefficient_{name}", value)
        self._initial: Tensor | None = None
        self._prepared: dict[tuple[str, int], tuple[Tensor, ...]] | None = None
        self._transposed: HeldTranspose | None = None
        self._constants: dict[tuple[float, torch.dtype, torch.device], Tensor] = {}

    def _hold(self, name: str, value: Tensor) -> None:
        if isinstance(value, nn.Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value, persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> VectorField:
        held = self._operator.current()
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._operator = moved_operator(held, self._weights, fn)
        self._initial = None if self._initial is None else fn(self._initial)
        self.further = self.further.moved(fn)
        self._prepared = self._transposed = None
        return self

    # ------------------------------------------------------------------ what it is
    @property
    def operator(self) -> Operator:
        """A with its present weights. Replaced weights are free; where L = D - A, D is recomputed from them."""
        return reweighted_operator(self._operator, self._weights)

    @property
    def dtype(self) -> torch.dtype:
        return self._weights.dtype

    @property
    def device(self) -> torch.device:
        return self._weights.device

    @property
    def plan(self) -> ProductPlan:
        """The operator plan: steps, and the number of sparse products of one evaluation."""
        function = self._stages.field
        return ProductPlan(self.system.text, function.steps, function.products, function.mixes)

    @property
    def noise_products(self) -> int:
        """The sparse products of one evaluation of the factor of noise."""
        return 0 if self._stages.noise is None else self._stages.noise.products

    @property
    def source(self) -> str:
        """The generated torch module as text; it runs without rdgraph, with `plain(matrix)` as operator."""
        return self._stages.source

    @property
    def is_autonomous(self) -> bool:
        """Whether the time does not occur, so that f(None, H) is enough."""
        return self.system.is_autonomous

    @property
    def uses_initial(self) -> bool:
        """Whether a start such as H0 occurs, so that the field must be bound to one."""
        return any(start_of(state) in self.system.letters for state in self.system.fields)

    @property
    def coefficients(self) -> dict[str, Tensor]:
        """The coefficients by name, shaped to broadcast against (*batch, nodes, channels)."""
        held = self._held
        return {name: self._shapes[name].view(held[name]) for name in valued_letters(self.system)}

    @property
    def _held(self) -> dict[str, Tensor]:
        """The coefficients and the control values of learned functions by name, as they were given."""
        return {name: getattr(self, f"coefficient_{name}") for name in self._shapes}

    def extra_repr(self) -> str:
        batch = f", batch {self.batch}" if self.batch else ""
        return f"{self.system.text}, {self.operator!r}{batch}, {self.plan.products} products"

    # ------------------------------------------------------------------ evaluation
    def forward(self, t: Any, H: Tensor) -> Tensor:
        """dH/dt at H and t; an autonomous equation ignores the time. t is a number, () or (*batch)."""
        fused = self.fused(t, H)
        return self.evaluate(self._stages.field, self._stages.code, t, H) if fused is None else fused.slope(H)

    def fused(self, t: Any, H: Tensor) -> FusedField | None:
        """The field at a time by generated kernels, for states like H; None where torch's operations are taken."""
        if (route := self._route) is None or not route.is_open(H, self.start):
            return None
        self.check_state(H)
        values = self._current_values(self._stages.field, self._stages.code, t, H)
        (stack,) = (self._prepared or {}).get(("stack", 0), (None,))
        one, leaves = self._constant(1.0), self.tensors()
        return route.field(self.operator, values, one, H, self.start, leaves, stack, self._transposed)

    def diffusion(self, t: Any, H: Tensor) -> Tensor:
        """The factor of white noise at H and t, (*batch, nodes, channels); zero in the blocks of fields without noise.

        >>> import torch, rdgraph as rd
        >>> field = rd.lower("u' = -L@u + sigma*u*xi", rd.generators.path(2).operator("row"), {"sigma": 0.5})
        >>> field.diffusion(None, torch.tensor([[2.0], [4.0]])).ravel()
        tensor([1., 2.])
        """
        if self._stages.noise is None:
            raise NotApplicable(f"expected a system with noise, got {self.system.text}; add a term such as sigma*xi")
        return self.evaluate(self._stages.noise, self._stages.code, t, H)

    def evaluate(self, function: GeneratedFunction, code: Code, t: Any, H: Tensor) -> Tensor:
        """The value of a function that was generated for this system, shaped like H; `code` is its module."""
        self.check_state(H)
        values = self._current_values(function, code, t, H)
        time = [t] if function.name == "field" and TIME_LETTER not in function.arguments else []
        out = code[function.name](*time, *self._arguments(function, H, t), *values)
        return out if out.shape == H.shape and out.dtype == H.dtype else out.to(H.dtype).expand(H.shape)

    def bind(self, H0: Tensor) -> VectorField:
        """The field of trajectories that start at H0 (for equations in which H0 occurs)."""
        self.check_state(H0)
        bound = self.spread(tuple(H0.shape[:-2]))._copy()
        bound._initial = H0
        return bound

    def start(self) -> Tensor:
        """The start that the field is bound to; raises where it is not."""
        if self._initial is None:
            raise InvalidArgument(
                f"expected a bound field, since the start of {self.system.text} is needed, got one without; call "
                "field.bind(H0) first"
            )
        return self._initial

    def spread(self, batch: tuple[int, ...]) -> VectorField:
        """The field for a batch of states that share its weights and coefficients; itself where it has that batch.

        >>> import torch, rdgraph as rd
        >>> field = rd.lower("diffusion", rd.generators.path(3).operator("row"), {"alpha": 1.0})
        >>> field.spread((5,)).batch
        (5,)
        """
        if batch == self.batch:
            return self
        if self.batch:
            raise InvalidArgument(
                f"expected the batch {self.batch} that this field was lowered with, got {batch}; lower it with "
                f"batch={batch}"
            )
        wider = self._copy()
        wider.batch = batch
        wider._shapes = coefficient_shapes(self.system, self._operator.num_nodes, batch)
        return wider

    def with_system(self, system: System) -> VectorField:
        """The field of another system with the operators and coefficients of this one."""
        held = self._held
        values = {name: held[name] for name in (*valued_letters(system), *system.learned)}
        return VectorField(system, self.operator, values, self.batch, further=self.further)

    def prepared(self) -> VectorField:
        """The field with its coefficients computed once, for many evaluations between two backward passes."""
        ready = self._copy()
        ready._prepared, ready._transposed = {}, HeldTranspose()
        if len(self.system.fields) == 1 and self.system.is_autonomous:  # with several the width of a state is needed
            values = ready._prepared["field", 0] = self._values(self._stages.field, self._stages.code)
            one, route = self._constant(1.0), self._route
            if route is not None and (stack := route.stacked(values, one, self.batch, self.device)) is not None:
                ready._prepared["stack", 0] = (stack,)
        return ready

    def value(self, expression: sp.Expr | float) -> Tensor:
        """A scalar or channel expression in the coefficients, shaped to broadcast against (*batch, nodes, channels)."""
        if not isinstance(expression, sp.Expr):
            return self._constant(float(expression))
        renamed = expression.xreplace({s: coefficient_symbol(s.name) for s in expression.free_symbols})
        known = self.coefficients
        if unknown := {s.name for s in renamed.free_symbols} - set(known):
            raise UnknownName("coefficient of this field", min(unknown), known)
        value = evaluated(coefficient_code(renamed), known)
        return value if isinstance(value, Tensor) else self._constant(float(value))

    def forcing(self) -> Tensor | None:
        """The sum of all terms free of H, (*batch, nodes, channels), or None if there are none."""
        if not self._stages.has_forcing:
            return None
        self.system.require_autonomous("a constant forcing")
        start, function = self.start(), self._stages.forcing
        values = self._values(function, self._stages.code, self.blocks.width(start))
        forcing = self._stages.code["forcing"](*self._arguments(function, start), *values)
        return forcing.to(start.dtype).expand(start.shape)

    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors of the field that need a gradient: coefficients, edge weights, the start."""
        start = () if self._initial is None else (self._initial,)
        every = (self._weights, *self.further.weights, *self._held.values(), *start)
        return tuple(x for x in every if x.requires_grad)

    def rebatched(self, index: int) -> VectorField:
        """The field of one member, counted through the flattened batch."""
        if not self.batch:
            raise InvalidArgument("expected a batched field, got one without a batch; use the field itself")
        position = tuple(int(i) for i in torch.unravel_index(torch.tensor(index), self.batch))
        values = {name: self._shapes[name].member(value, position) for name, value in self._held.items()}
        single = VectorField(
            self.system, self.operator.member(position), values, (), further=self.further.member(position)
        )
        single._initial = None if self._initial is None else self._initial[position]
        return single

    def members(self, index: Tensor) -> VectorField:
        """The field of some members, counted by `index` (m,) through the flattened batch; its batch is (m,).

        A field without a batch has one member.
        """
        values = {name: self._shapes[name].members(value, index) for name, value in self._held.items()}
        operator, further = self.operator.members(index), self.further.members(index)
        some = VectorField(self.system, operator, values, (len(index),), further=further)
        if self._initial is not None:
            some._initial = self._initial.reshape(-1, *self._initial.shape[-2:]).index_select(0, index)
        return some

    # ------------------------------------------------------------------ checks and parts
    def check_state(self, H: Any) -> None:
        """Raise unless a state fits this field."""
        check_state(H, self._operator, self.batch)
        check_channels(self.blocks.width(H), self._shapes, self._held)

    def _arguments(self, function: GeneratedFunction, H: Tensor, t: Any = None) -> list[Any]:
        return [self._argument(name, H, t) for name in function.arguments]

    def _argument(self, name: str, H: Tensor, t: Any) -> Any:
        match name:
            case "t":
                return read_time(t, H, self.system.text)
            case "H" | PACKED.name:
                return H
            case "H0" | PACKED_START.name:
                return self.start()
            case "A":
                return application(self.operator, self.dtype)
            case "L":
                return laplacian_application(self.operator, self._constant(1.0), self.dtype)
        if name in self.further:
            return self.further.application(name, self.dtype)
        cache = {} if self._prepared is None else self._prepared
        if (name, 0) not in cache:
            cache[name, 0] = (self._shapes[name].view(getattr(self, f"coefficient_{name}")),)
        return cache[name, 0][0].to(H.dtype) if self.system.letters.get(name) is Kind.MATRIX else cache[name, 0][0]

    def operator_on(self, letter: str, x: Tensor) -> Tensor:
        """A@x or L@x, L being D - A where the operator has degrees."""
        applied: Tensor = self._argument(letter, x, None)(x)
        return applied

    def _current_values(self, function: GeneratedFunction, code: Code, t: Any, H: Tensor) -> tuple[Tensor, ...]:
        """The coefficients at a time, for a state of a width; computed once where the field is prepared."""
        if not self.system.is_autonomous:
            return self._values(function, code, self.blocks.width(H), read_time(t, H, self.system.text))
        width = self.blocks.width(H) if len(self.system.fields) > 1 else 0
        if self._prepared is None:
            return self._values(function, code, width)
        key = (function.name, width)
        if key not in self._prepared:
            self._prepared[key] = self._values(function, code, width)
        return self._prepared[key]

    def _values(
        self, function: GeneratedFunction, code: Code, width: int = 0, t: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The coefficients that the generated function takes, from the ones the user gave."""
        given = {**self.coefficients, TIME_LETTER: t}
        lead = [self._constant(1.0), width] if len(self.system.fields) > 1 else []
        values = code[function.coefficient_function](*lead, *(given[n] for n in self._stages.names))
        return tuple(x if isinstance(x, Tensor) else self._constant(float(x)) for x in values)

    def _constant(self, number: float) -> Tensor:
        """A number as a tensor, made once: filled on the device, since a copy from the host cannot be recorded."""
        dtype = coefficient_dtype(self.dtype)
        key = (number, dtype, self.device)
        if key not in self._constants:
            self._constants[key] = torch.full((), number, dtype=dtype, device=self.device)
        return self._constants[key]

    def _copy(self) -> VectorField:
        """A second view of the same tensors."""
        twin = copy.copy(self)
        twin._parameters = dict(self._parameters)
        twin._buffers = dict(self._buffers)
        return twin


def lower(
    system: System | str,
    operator: Operator | Any,
    values: Mapping[str, Any] | None = None,
    *,
    batch: tuple[int, ...] = (),
    operators: Mapping[str, Any] | None = None,
    dtype: torch.dtype | None = None,
    device: Any = None,
) -> VectorField:
    """The vector field dH/dt = f(t, H) of a system on an operator: a torch module, callable as f(t, H).

    Args:
        system: a system, or a text or name that `parse` reads.
        operator: the A of a graph, from `graph.operator(...)`.
        values: numbers, tensors or parameters by name: a scalar (), a channel vector (d,), a node vector (n,), a
            mixing matrix (d, d), each with or without the batch shape in front; for a learned function its control
            values (K,), or (d, K) per channel, `LearnedValues`, or a function of numpy that it shall be near.
        batch: the shape of a batch whose members differ in edge weights or coefficients; states that share all of
            them need none.
        operators: the operators besides A that the equations name, as `Operator`, scipy sparse or dense matrices.
        dtype: of the field; by default the operator's.
        device: of the field; by default the operator's.

    Returns:
        The field; `f.plan` says which sparse products are taken, `f.source` is the torch code that runs.

    Raises:
        InvalidArgument: coefficients are missing or have the wrong shape.
        NotApplicable: the equation cannot be lowered.

    >>> import torch, rdgraph as rd
    >>> op = rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]]).operator("row", dtype=torch.float64)
    >>> f = rd.lower("BS", op, {"alpha": 1.0, "beta": 0.5})
    >>> f.plan.products
    2
    >>> f(0.0, torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64)).ravel()
    tensor([-1.2500,  0.7500, -0.2500], dtype=torch.float64)
    """
    system = system if isinstance(system, System) else parse(system)
    if not isinstance(operator, Operator):
        raise InvalidArgument(
            f"expected an Operator, got {type(operator).__name__}; make one with graph.operator('symmetric')"
        )
    operator = operator.to(device=device, dtype=dtype) if device is not None or dtype is not None else operator
    if operator.batch and operator.batch != tuple(batch):
        raise InvalidArgument(
            f"expected edge weights of batch {tuple(batch)}, got {operator.batch}; pass batch={operator.batch}"
        )
    shapes = coefficient_shapes(system, operator.num_nodes, tuple(batch))
    tensors = read_coefficients(values or {}, shapes, system, operator)
    further = read_operators(operators or {}, system.operators, operator, tuple(batch))
    return VectorField(system, operator, tensors, tuple(batch), further=further)
