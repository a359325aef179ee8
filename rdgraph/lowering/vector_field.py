"""`lower`: a system, an operator and coefficients become a batched torch vector field f(t, H)."""

from __future__ import annotations

import copy
import itertools
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp
import torch
from torch import Tensor, nn

from rdgraph.algebra.factored_form import factored_form
from rdgraph.algebra.normal_form import H0, LAPLACIAN, Algebra, H, State
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.graphs.operator import Operator
from rdgraph.lowering.coefficients import STORAGE_ONLY, coefficient_shapes, read_coefficients, valued_letters
from rdgraph.lowering.field_blocks import FieldBlocks
from rdgraph.lowering.further_operators import HeldOperators, read_operators
from rdgraph.lowering.generated_function import GeneratedFunction
from rdgraph.lowering.packed_form import PACKED, PACKED_START
from rdgraph.lowering.product_plan import ProductPlan, schedule
from rdgraph.lowering.torch_source import coefficient_code, module_source, safe_name
from rdgraph.syntax.reader import TIME_LETTER, start_of
from rdgraph.syntax.tree import Kind
from rdgraph.syntax.unfolding import lowerable
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Lowered:
    """The stages of one lowering: normal forms by state, their parts free of states, functions, source, callables."""

    forms: dict[str, sp.Expr]
    free: dict[str, sp.Expr]
    field: GeneratedFunction
    forcing: GeneratedFunction
    names: tuple[str, ...]
    source: str
    code: dict[str, Callable[..., Any]]

    @property
    def has_forcing(self) -> bool:
        """Whether some term is free of the states."""
        return any(form != 0 for form in self.free.values())


def coefficient_symbol(name: str) -> sp.Symbol:
    """The symbol of a coefficient in lowered expressions: real, of any sign."""
    return sp.Symbol(name, real=True)


def lowering_algebra(system: System, keeps_laplacian: bool = False) -> Algebra:
    """The rules of a system's normal form for numbers of any sign; L stays a letter where it is D - A."""
    symbols: dict[str, sp.Symbol] = {name: coefficient_symbol(name) for name in system.letters}
    states = [*system.fields, *map(start_of, system.fields)]
    symbols |= {name: State(name) for name in states} | {"H": H, "H0": H0}
    kinds = {**system.letters, **dict.fromkeys(states, Kind.FIELD)}
    return Algebra(symbols, kinds, {} if keeps_laplacian else LAPLACIAN)


@lru_cache(maxsize=256)
def _lowered(system: System, keeps_laplacian: bool, normalisation: str) -> Lowered:
    """Stages that depend on the equation and on the meaning of L alone."""
    kinds = dict(system.letters)
    algebra = lowering_algebra(system, keeps_laplacian)
    forms = {state: factored_form(lowerable(tree), algebra) for state, tree in system.flow.items()}
    states = {"H": H} if len(forms) == 1 else {state: State(state) for state in forms}
    if len(forms) == 1:
        ((name, form),) = forms.items()
        forms = {"H": form.xreplace({State(name): H, State(start_of(name)): H0})}
    free = {i: sp.Add(*(t for t in sp.Add.make_args(f) if not t.has(*states.values()))) for i, f in forms.items()}
    functions = [schedule("field", forms, kinds), schedule("forcing", free, kinds)]
    names = (*valued_letters(system), *(() if system.is_autonomous else (TIME_LETTER,)))
    shapes = (
        "H (..., nodes, channels)" if len(forms) == 1 else f"state (..., nodes, {len(forms)}*d), {', '.join(forms)}"
    )
    note = f"Operator: {normalisation}, L = {'D' if keeps_laplacian else 'I'} - A. Shapes: {shapes}."
    kept = functions if any(free.values()) else functions[:1]
    source = module_source(system.text, note, list(names), kept, is_packed=len(forms) > 1)
    filename = f"<rdgraph field {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "rdgraph_generated"}
    exec(compile(source, filename, "exec"), namespace)
    return Lowered(forms, free, functions[0], functions[1], names, source, namespace)


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
        self._stages = _lowered(system, operator.degree is not None, operator.normalisation)
        self._operator = operator.prepare()
        self._shapes = coefficient_shapes(system, operator.num_nodes, batch)
        self._hold("_weights", operator.weights)
        for name, value in coefficients.items():
            self._hold(f"coefficient_{name}", value)
        self._initial: Tensor | None = None
        self._prepared: dict[int, tuple[Tensor, ...]] | None = None
        self._constants: dict[tuple[float, torch.dtype, torch.device], Tensor] = {}

    def _hold(self, name: str, value: Tensor) -> None:
        if isinstance(value, nn.Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value, persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> VectorField:
        held = self._operator.current()
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        degree = None if held.degree is None else fn(held.degree)
        moved = held.pattern.to(self._weights.device)
        self._operator = Operator(moved, self._weights, held.normalisation, held.self_loops, degree).prepare()
        self._initial = None if self._initial is None else fn(self._initial)
        self.further = self.further.moved(fn)
        self._prepared = None
        return self

    # ------------------------------------------------------------------ what it is
    @property
    def operator(self) -> Operator:
        """A as it is now. Weights put in the place of the first ones are free; where L = D - A, D is theirs."""
        held = self._operator
        has_degrees = held.record.has_degrees
        follows = has_degrees and held.degree is not None and held.degree.requires_grad
        if held.weights is self._weights and not follows:
            return held.current()
        kind, degree = (held.normalisation, None) if has_degrees else ("free", held.degree)
        return held.with_weights(self._weights, kind, degree)

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
        return {name: shape.view(getattr(self, f"coefficient_{name}")) for name, shape in self._shapes.items()}

    def extra_repr(self) -> str:
        batch = f", batch {self.batch}" if self.batch else ""
        return f"{self.system.text}, {self.operator!r}{batch}, {self.plan.products} products"

    # ------------------------------------------------------------------ evaluation
    def forward(self, t: Any, H: Tensor) -> Tensor:
        """dH/dt at H and t; an autonomous equation does not look at the time. t is a number, () or (*batch)."""
        self.check_state(H)
        function = self._stages.field
        values = self._current_values(t, H)
        time = [] if TIME_LETTER in function.arguments else [t]
        out = self._stages.code["field"](*time, *self._arguments(function, H, t), *values)
        return out if out.shape == H.shape and out.dtype == H.dtype else out.to(H.dtype).expand(H.shape)

    def bind(self, H0: Tensor) -> VectorField:
        """The field of trajectories that start at H0 (for equations in which H0 occurs)."""
        self.check_state(H0)
        bound = self.spread(tuple(H0.shape[:-2]))._copy()
        bound._initial = H0
        return bound

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

    def prepared(self) -> VectorField:
        """The field with its coefficients computed once, for many evaluations between two backward passes."""
        ready = self._copy()
        ready._prepared = {}
        if len(self.system.fields) == 1 and self.system.is_autonomous:  # with several the width of a state is needed
            ready._prepared[0] = self._values(self._stages.field)
        return ready

    def value(self, expression: sp.Expr | float) -> Tensor:
        """A scalar or channel expression in the coefficients, shaped to broadcast against (*batch, nodes, channels)."""
        if not isinstance(expression, sp.Expr):
            return self._constant(float(expression))
        renamed = expression.xreplace({s: coefficient_symbol(s.name) for s in expression.free_symbols})
        names = {safe_name(n): v for n, v in self.coefficients.items()}
        unknown = {s.name for s in renamed.free_symbols} - set(self.coefficients)
        if unknown:
            raise UnknownName("coefficient of this field", min(unknown), self.coefficients)
        found = eval(compile(coefficient_code(renamed), "<coefficient>", "eval"), {"torch": torch, **names})
        return found if isinstance(found, Tensor) else self._constant(float(found))

    def forcing(self) -> Tensor | None:
        """The sum of all terms free of H, (*batch, nodes, channels), or None where there are none."""
        if not self._stages.has_forcing:
            return None
        self.system.require_autonomous("a constant forcing")
        if self._initial is None:
            raise InvalidArgument("expected a bound field, got one without a start; call field.bind(H0) first")
        function = self._stages.forcing
        values = self._values(function, "forcing_coefficients", self.blocks.width(self._initial))
        found = self._stages.code["forcing"](*self._arguments(function, self._initial), *values)
        return found.to(self._initial.dtype).expand(self._initial.shape)

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor behind the field that wants a gradient: coefficients, edge weights, the start."""
        start = () if self._initial is None else (self._initial,)
        held = (getattr(self, f"coefficient_{name}") for name in self._shapes)
        return tuple(x for x in (self._weights, *self.further.weights, *held, *start) if x.requires_grad)

    def rebatched(self, index: int) -> VectorField:
        """The field of one member, counted through the flattened batch."""
        if not self.batch:
            raise InvalidArgument("expected a batched field, got one without a batch; use the field itself")
        place = tuple(int(i) for i in torch.unravel_index(torch.tensor(index), self.batch))
        values = {n: s.member(getattr(self, f"coefficient_{n}"), place) for n, s in self._shapes.items()}
        held = self.operator
        weights = held.weights[place] if held.batch else held.weights
        degree = held.degree[place] if held.degree is not None and held.degree.ndim > 2 else held.degree
        operator = Operator(held.pattern, weights, held.normalisation, held.self_loops, degree)
        single = VectorField(self.system, operator, values, (), self.further.member(place))
        single._initial = None if self._initial is None else self._initial[place]
        return single

    def members(self, index: Tensor) -> VectorField:
        """The field of some members, counted by `index` (m,) through the flattened batch; its batch is (m,).

        A field without a batch has one member.
        """
        values = {n: s.members(getattr(self, f"coefficient_{n}"), index) for n, s in self._shapes.items()}
        held = self.operator
        weights = held.weights.reshape(-1, held.num_edges).index_select(0, index) if held.batch else held.weights
        degree = held.degree
        if degree is not None and degree.ndim > 2:
            degree = degree.reshape(-1, *degree.shape[-2:]).index_select(0, index)
        operator = Operator(held.pattern, weights, held.normalisation, held.self_loops, degree)
        some = VectorField(self.system, operator, values, (len(index),), self.further.members(index))
        if self._initial is not None:
            some._initial = self._initial.reshape(-1, *self._initial.shape[-2:]).index_select(0, index)
        return some

    # ------------------------------------------------------------------ checks and parts
    def check_state(self, H: Any) -> None:
        """Whether a state fits this field; raises with what was expected."""
        wanted = (*self.batch, self._operator.num_nodes)
        if not isinstance(H, Tensor) or H.ndim < 2 or (H.shape[:-1] if self.batch else H.shape[-2:-1]) != wanted:
            got = tuple(H.shape) if hasattr(H, "shape") else type(H).__name__
            lead = "" if self.batch else "..., "
            raise InvalidArgument(
                f"expected a state tensor of shape ({lead}{', '.join(map(str, wanted))}, channels), got "
                f"{type(H).__name__} {got}; a batch with weights or coefficients of its own is declared by "
                "lower(..., batch=(...))"
            )
        if H.dtype != self.dtype or H.device != self._weights.device:
            raise InvalidArgument(
                f"expected a state of {self.dtype} on {self._weights.device}, got {H.dtype} on {H.device}; "
                "convert it with .to(...), or lower with dtype= and device="
            )
        channels = self.blocks.width(H)
        for name, shape in self._shapes.items():
            held = getattr(self, f"coefficient_{name}")
            width = held.shape[-1] if held.ndim and shape.kind in (Kind.CHANNEL, Kind.MATRIX) else channels
            if width != channels:
                raise InvalidArgument(
                    f"expected {width} channels, as many as the {shape.kind} coefficient {name} has, got {channels}"
                )

    def _arguments(self, function: GeneratedFunction, H: Tensor, t: Any = None) -> list[Any]:
        return [self._argument(name, H, t) for name in function.arguments]

    def _argument(self, name: str, H: Tensor, t: Any) -> Any:
        match name:
            case "t":
                return self._time(t, H)
            case "H" | PACKED.name:
                return H
            case "H0" | PACKED_START.name:
                if self._initial is None:
                    raise InvalidArgument(
                        f"expected a bound field, since {self.system.text} has a start in it; call field.bind(H0) first"
                    )
                return self._initial
            case "A":
                return self._apply_adjacency
            case "L":
                return self._apply_laplacian
        if name in self.further:
            return self.further.application(name, self.dtype)
        value = self.coefficients[name]
        return value.to(H.dtype) if self._shapes[name].kind is Kind.MATRIX else value

    def _apply_adjacency(self, x: Tensor, scale: Tensor | None = None, *terms: tuple[Tensor, Tensor]) -> Tensor:
        return self.operator.product(x.to(self.dtype), scale, [(k, y.to(self.dtype)) for k, y in terms])

    def _apply_laplacian(self, x: Tensor, scale: Tensor | None = None, *terms: tuple[Tensor, Tensor]) -> Tensor:
        """scale*(D*x - A@x) + terms, for operators that are not normalised."""
        operator = self.operator
        if operator.degree is None:
            raise InvalidArgument(f"expected an operator with degrees for L, got {operator!r}; make it with 'none'")
        factor = self._constant(1.0) if scale is None else scale
        x = x.to(self.dtype)
        others = [(k, y.to(self.dtype)) for k, y in terms]
        return operator.product(x, -factor, [(factor * operator.degree, x), *others])

    def _current_values(self, t: Any, H: Tensor) -> tuple[Tensor, ...]:
        """The coefficients at a time, for a state of a width; computed once where the field is prepared."""
        if not self.system.is_autonomous:
            return self._values(self._stages.field, width=self.blocks.width(H), t=self._time(t, H))
        width = self.blocks.width(H) if len(self.system.fields) > 1 else 0
        if self._prepared is None:
            return self._values(self._stages.field, width=width)
        if width not in self._prepared:
            self._prepared[width] = self._values(self._stages.field, width=width)
        return self._prepared[width]

    def _time(self, t: Any, H: Tensor) -> Tensor:
        """The time as it broadcasts against a state: () or (*batch, 1, 1)."""
        if t is None:
            raise InvalidArgument(
                f"expected a time, since {self.system.text} depends on it, got None; call field(t, H)"
            )
        dtype = torch.float32 if self.dtype in STORAGE_ONLY else self.dtype
        time = torch.as_tensor(t, dtype=dtype, device=self.device)
        if time.ndim not in (0, H.ndim - 2, H.ndim):
            raise InvalidArgument(f"expected a time () or {tuple(H.shape[:-2])}, got {tuple(time.shape)}")
        return time[..., None, None] if 0 < time.ndim < H.ndim else time

    def _values(
        self, function: GeneratedFunction, name: str = "coefficients", width: int = 0, t: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The coefficients that the generated function takes, from the ones the user gave."""
        given = {**self.coefficients, TIME_LETTER: t}
        lead = [self._constant(1.0), width] if len(self.system.fields) > 1 else []
        found = self._stages.code[name](*lead, *(given[n] for n in self._stages.names))
        return tuple(x if isinstance(x, Tensor) else self._constant(float(x)) for x in found)

    def _constant(self, number: float) -> Tensor:
        """A number as a tensor, made once: filled on the device, since a copy from the host cannot be recorded."""
        dtype = torch.float32 if self.dtype in STORAGE_ONLY else self.dtype
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
            mixing matrix (d, d), each with or without the batch shape in front.
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
