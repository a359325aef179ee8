"""`lower`: a system, an operator and coefficients become a batched torch vector field f(t, H)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import sympy as sp
import torch
from torch import Tensor, nn

from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.graphs.operator import Operator
from rdgraph.lowering.coefficients import coefficient_dtype, coefficient_shapes, read_coefficients, valued_letters
from rdgraph.lowering.field_blocks import FieldBlocks
from rdgraph.lowering.further_operators import HeldOperators, moved_operator, read_operators, reweighted_operator
from rdgraph.lowering.fused_slope import FusedField, HeldTranspose
from rdgraph.lowering.generated_function import GeneratedFunction
from rdgraph.lowering.kernel_route import KernelRoute
from rdgraph.lowering.lowering_stages import Code, coefficient_symbol, lowered
from rdgraph.lowering.operator_application import application, laplacian_application
from rdgraph.lowering.packed_form import PACKED, PACKED_START
from rdgraph.lowering.product_plan import ProductPlan
from rdgraph.lowering.state_checks import check_channels, check_state, read_time
from rdgraph.lowering.torch_source import coefficient_code, evaluated
from rdgraph.syntax.reader import TIME_LETTER, start_of
from rdgraph.syntax.tree import Kind
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System


class VectorField(nn.Module):
    """dH/dt = f(t, H) on one operator, with H of shape (*batch, nodes, channels).

    The states of several fields lie side by side along the channels, in the order of `system.fields`; `blocks` packs
    and cuts them.

    A field without a batch takes states with any axes in front: all of them share its weights and coefficients.
    Made by `lower`. `plan` says which sparse products are taken, `source` is the torch code that runs. Parameters
    among the coefficients (and the edge weights) are parameters of the module; other tensors keep their gradients.
    """

    _weights: Tensor

    def __init__(
        self,
        system: System,
        operator: Operator,
        coefficients: Mapping[str, Tensor],
        batch: tuple[int, ...],
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
        """A as it is now. Weights put in the place of the first ones are free; where L = D - A, D is theirs."""
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
        """The generated torch module as text; it runs on its own, with `plain(matrix)` as operator."""
        return self._stages.source

    @property
    def is_autonomous(self) -> bool:
        """Whether the time does not occur, so that f(None, H) is enough."""
        return self.system.is_autonomous

    @property
    def uses_initial(self) -> bool:
        """Whether a start such as H0 occurs, so that the field has to know where it started."""
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
        """dH/dt at H and t; an autonomous equation does not look at the time. t is a number, () or (*batch)."""
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
        """The field of another system in the same letters: its operators and coefficients are those of this one."""
        held = self._held
        values = {name: held[name] for name in (*valued_letters(system), *system.learned)}
        return VectorField(system, self.operator, values, self.batch, self.further)

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
        found = evaluated(coefficient_code(renamed), known)
        return found if isinstance(found, Tensor) else self._constant(float(found))

    def forcing(self) -> Tensor | None:
        """The sum of all terms free of H, (*batch, nodes, channels), or None where there are none."""
        if not self._stages.has_forcing:
            return None
        self.system.require_autonomous("a constant forcing")
        start, function = self.start(), self._stages.forcing
        values = self._values(function, self._stages.code, self.blocks.width(start))
        found = self._stages.code["forcing"](*self._arguments(function, start), *values)
        return found.to(start.dtype).expand(start.shape)

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor behind the field that wants a gradient: coefficients, edge weights, the start."""
        start = () if self._initial is None else (self._initial,)
        every = (self._weights, *self.further.weights, *self._held.values(), *start)
        return tuple(x for x in every if x.requires_grad)

    def rebatched(self, index: int) -> VectorField:
        """The field of one member, counted through the flattened batch."""
        if not self.batch:
            raise InvalidArgument("expected a batched field, got one without a batch; use the field itself")
        place = tuple(int(i) for i in torch.unravel_index(torch.tensor(index), self.batch))
        values = {name: self._shapes[name].member(value, place) for name, value in self._held.items()}
        single = VectorField(self.system, self.operator.member(place), values, (), self.further.member(place))
        single._initial = None if self._initial is None else self._initial[place]
        return single

    def members(self, index: Tensor) -> VectorField:
        """The field of some members, counted by `index` (m,) through the flattened batch; its batch is (m,).

        A field without a batch has one member.
        """
        values = {name: self._shapes[name].members(value, index) for name, value in self._held.items()}
        operator, further = self.operator.members(index), self.further.members(index)
        some = VectorField(self.system, operator, values, (len(index),), further)
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
        kept = {} if self._prepared is None else self._prepared
        if (name, 0) not in kept:
            kept[name, 0] = (self._shapes[name].view(getattr(self, f"coefficient_{name}")),)
        return kept[name, 0][0].to(H.dtype) if self.system.letters.get(name) is Kind.MATRIX else kept[name, 0][0]

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
        found = code[function.coefficient_function](*lead, *(given[n] for n in self._stages.names))
        return tuple(x if isinstance(x, Tensor) else self._constant(float(x)) for x in found)

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
    coefficients: Mapping[str, Any] | None = None,
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
        coefficients: numbers, tensors or parameters by name: a scalar (), a channel vector (d,), a node vector (n,), a
            mixing matrix (d, d), each with or without the batch shape in front; for a learned function its control
            values (K,), or (d, K) per channel, `LearnedValues`, or a function of numpy that it shall be near.
        batch: the shape of the members that have edge weights or coefficients of their own; states that share all of
            them need none.
        operators: the operators beside A that the equations name, as `Operator`, scipy sparse or dense matrices.
        dtype: of the field; by default the operator's.
        device: of the field; by default the operator's.

    Returns:
        The field; `f.plan` says which sparse products are taken, `f.source` is the torch code that runs.

    Raises:
        InvalidArgument: coefficients are missing or have the wrong shape.
        NotApplicable: the equation cannot be lowered.

    >>> import torch, rdgraph as rd
    >>> op = rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]]).operator("row", dtype=torch.float64)
    >>> f = lower("BS", op, {"alpha": 1.0, "beta": 0.5})
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
    values = read_coefficients(coefficients or {}, shapes, system, operator)
    further = read_operators(operators or {}, system.operators, operator, tuple(batch))
    return VectorField(system, operator, values, tuple(batch), further)
