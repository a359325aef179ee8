"""`compile_field`: a vector field on a CPU as compiled C, for evaluations and Runge-Kutta steps without a gradient."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.kernels.c_compiler import find_compiler, load_library
from rdgraph.graphs.kernels.row_order import RowRuns, row_runs
from rdgraph.graphs.operator import Operator
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.c_expressions import Layout
from rdgraph.run.lowering.compiled_source import compiled_source
from rdgraph.run.lowering.torch_source import coefficient_code, evaluated, matrix_code
from rdgraph.run.lowering.vector_field import VectorField
from rdgraph.systems.system import System

# ---------------------------------------------------------------------- compiled arrays
# The inputs of a compiled field: arrays of coefficients, matrices, operators and starts, with strides of members.


class HandedArray(NamedTuple):
    """An array that is kept alive, with the stride between its members; 0 where they share it."""

    values: Any
    stride: int

    @property
    def address(self) -> int:
        values = self.values
        return int(values.data_ptr() if isinstance(values, Tensor) else values.ctypes.data)


_NOTHING = HandedArray(np.zeros(1), 0)


@dataclass(frozen=True, eq=False)
class FieldParts:
    """The parts of a compiled field: operators by name, and coefficients that broadcast against (*batch, n, d)."""

    system: System
    operators: Mapping[str, Operator]
    coefficients: Mapping[str, Tensor]
    batch: tuple[int, ...]
    start: Tensor | None

    @property
    def nodes(self) -> int:
        return self.operators["A"].num_nodes

    @property
    def dtype(self) -> torch.dtype:
        return self.operators["A"].dtype

    def axes(self) -> tuple[tuple[str, tuple[bool, bool]], ...]:
        """For each given coefficient, whether it varies along the nodes and along the channels."""
        axes = []
        for name, value in self.coefficients.items():
            if self.system.letters[name] is not Kind.MATRIX:
                rows, columns = (*(1, 1), *value.shape)[-2:]
                axes.append((name, (rows > 1, columns > 1)))
        return tuple(axes)

    def coefficient_array(self, expression: sp.Expr, axes: tuple[bool, bool], channels: int) -> HandedArray:
        """A coefficient with the axes that its source reads."""
        value = self._evaluated(coefficient_code(expression))
        value = value.reshape(*(1,) * (2 - value.ndim), *value.shape)
        shape = (self.nodes if axes[0] else 1, channels if axes[1] else 1)
        return self._with_members(value.expand(*value.shape[:-2], *shape))

    def matrix_array(self, matrix: sp.Expr) -> HandedArray:
        """A mixing matrix (d, d), computed from the given ones."""
        return self._with_members(self._evaluated(matrix_code(matrix)))

    def _evaluated(self, code: str) -> Tensor:
        known = {name: value.detach() for name, value in self.coefficients.items()}
        return torch.as_tensor(evaluated(code, known), dtype=self.dtype)

    def _with_members(self, value: Tensor) -> HandedArray:
        """A value (n, d), or one for every member (*batch, n, d), contiguous."""
        if value.ndim == 2:
            return HandedArray(value.contiguous(), 0)
        shape = value.shape[-2:]
        return HandedArray(value.expand(*self.batch, *shape).contiguous(), shape.numel())


def start_array(start: Tensor | None) -> HandedArray:
    """The start of trajectories, (*batch, n, d); an empty array where none is known."""
    if start is None:
        return _NOTHING
    flat = start.detach().contiguous()
    return HandedArray(flat, flat.shape[-2:].numel() if flat.ndim > 2 else 0)


def operator_arrays(operator: Operator, runs: RowRuns | None) -> list[HandedArray]:
    """The rows of an operator, compressed or in runs."""
    if runs is None:
        weights = operator.weights.detach()
        stride = operator.num_edges if operator.batch else 0
        arrays = [HandedArray(operator.pattern.indptr, 0), HandedArray(operator.pattern.indices, 0)]
        arrays.append(HandedArray(weights.contiguous(), stride))
    else:
        count = np.array([runs.count], dtype=np.int64)
        parts = (count, runs.starts, runs.entries, runs.offsets, runs.degrees, runs.weights)
        arrays = [HandedArray(np.ascontiguousarray(part), 0) for part in parts]
    return arrays


def degree_array(operator: Operator) -> HandedArray:
    """The degrees (n, 1) or (*batch, n, 1) of an operator with L = D - A."""
    assert operator.degree is not None
    degree = operator.degree.detach().to(operator.dtype).contiguous()
    return HandedArray(degree, operator.num_nodes if degree.ndim > 2 else 0)


_runs: WeakKeyDictionary[Operator, tuple[int | None, RowRuns | None]] = WeakKeyDictionary()


def runs_of(operator: Operator) -> RowRuns | None:
    """The runs of an operator's rows if they pay, computed once; its members must share their weights."""
    changes = None if operator.weights.is_inference() else operator.weights._version
    known = _runs.get(operator)
    if known is None or changes is None or known[0] != changes:
        pattern, weights = operator.pattern, operator.weights.detach().numpy()
        runs = row_runs(pattern.indptr.numpy(), pattern.indices.numpy(), weights)
        known = _runs[operator] = changes, runs if runs.pays else None
    return known[1]


# ---------------------------------------------------------------------- compiled field
#: Entries of a state, over all members, from which a second thread pays.
THREADED_ENTRIES = 1 << 15
#: The most channels: the sums of a row are on the stack.
MAX_CHANNELS = 1024

_REAL = {torch.float64: "double", torch.float32: "float"}
_POINTER, _WHOLE, _SHORT, _DOUBLE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_double
_HEAD_TYPES: list[Any] = [_POINTER, _POINTER, _WHOLE, _WHOLE, _SHORT]
_FIELD_TYPES: list[Any] = [*_HEAD_TYPES, _POINTER, _WHOLE, _POINTER, _POINTER, _POINTER]
_MARCH_TYPES: list[Any] = [
    *_HEAD_TYPES, _POINTER, _POINTER, _SHORT, _POINTER, _POINTER, _POINTER, _WHOLE, _WHOLE, _WHOLE, _POINTER, _POINTER,
    _POINTER, _DOUBLE, _SHORT, _POINTER, _POINTER, _POINTER,
]  # fmt: skip
_INDEX = {torch.int32: "int32_t", torch.int64: "int64_t"}


def why_not_compiled(field: VectorField, *tensors: Tensor) -> str:
    """Why a field cannot run compiled with the given states and times; empty if it can.

    >>> import torch, rdgraph as rd
    >>> op = rd.generators.path(3).operator("row", dtype=torch.float64)
    >>> field = rd.lower("diffusion", op, {"alpha": torch.tensor(1.0, dtype=torch.float64, requires_grad=True)})
    >>> why_not_compiled(field)
    'a gradient is needed'
    """
    if not is_lowered(field):
        return f"a {type(field).__name__} is not a field made by lower"
    if field.system.learned:
        return f"{', '.join(field.system.learned)} is learned, which runs in torch"
    if field.device.type != "cpu":
        return f"the field is on {field.device}"
    if field.dtype not in _REAL:
        return f"its numbers are {field.dtype}"
    if torch.is_grad_enabled() and any(x.requires_grad for x in (*field.tensors(), *tensors)):
        return "a gradient is needed"
    if torch.compiler.is_compiling() or not all(map(_is_plain, tensors)) or _is_watched():
        return "calls are traced or transformed by torch"
    return "" if find_compiler() is not None else "there is no C compiler"


def is_lowered(field: object) -> bool:
    """Whether a field is exactly a `VectorField`, not a subclass that computes something else."""
    return type(field) is VectorField


def _is_plain(x: Tensor) -> bool:
    return type(x) in (Tensor, torch.nn.Parameter) and not torch._C._functorch.is_functorch_wrapped_tensor(x)


def _is_watched() -> bool:
    """Whether torch dispatch modes or forward-mode derivatives are active."""
    return torch._C._len_torch_dispatch_stack() > 0 or torch.autograd.forward_ad._current_level >= 0


def compile_field(field: VectorField, channels: int = 1) -> CompiledField:
    """A field on a CPU as compiled C, with its present weights and coefficients.

    Args:
        field: made by `lower`; where its start occurs in the equation, bound by `field.bind(H0)`.
        channels: d of the states (*batch, n, fields*d) that it will be given; other states raise InvalidArgument.

    Returns:
        A function f(t, H) like the field, without gradients; `f.source` is the C code that runs.

    Raises:
        MissingDependency: there is no C compiler.
        InvalidArgument: the field is not on a CPU, or not in single or double precision, or a gradient is needed, or
            there are fewer than one or too many channels.

    >>> import torch, rdgraph as rd
    >>> ring = rd.generators.ring(4).operator("row", dtype=torch.float64)
    >>> f = rd.run.compile_field(rd.lower("-alpha*L@H + beta*H*(1 - H)", ring, {"alpha": 1.0, "beta": 2.0}))
    >>> f(0.0, torch.tensor([[1.0], [0.0], [0.0], [0.0]], dtype=torch.float64)).ravel()
    tensor([-1.0000,  0.5000,  0.0000,  0.5000], dtype=torch.float64)
    """
    reason = why_not_compiled(field)
    if reason and find_compiler() is not None:
        raise InvalidArgument(f"this field cannot be compiled: {reason}; evaluate the field itself")
    if field.uses_initial:
        field.start()  # raises where there is none
    return CompiledField(parts_of(field), channels)


def parts_of(field: VectorField) -> FieldParts:
    """The current operators, coefficients and start of a field, for its compiled form."""
    operators = {"A": field.operator, **field.further.entries}
    return FieldParts(field.system, operators, field.coefficients, field.batch, field._initial)


@dataclass(frozen=True, eq=False)
class StepNumbers:
    """A tableau as the library reads it: the rows of its stages one after the other, weights, and times of stages."""

    stages: int
    rows: np.ndarray
    weights: np.ndarray
    times: np.ndarray

    @classmethod
    def make(cls, rows: Sequence[Sequence[float]], weights: Sequence[float]) -> StepNumbers:
        """The tableau from the rows below the diagonal; the first row is empty."""
        flat = np.array([a for row in rows for a in row] or [0.0])
        return cls(len(weights), flat, np.array(weights), np.array([sum(row) for row in rows], dtype=float))


class CompiledField:
    """dH/dt = f(t, H) in C, for states (*batch, nodes, fields*channels); made by `compile_field`."""

    def __init__(self, parts: FieldParts, channels: int) -> None:
        if not 1 <= channels <= MAX_CHANNELS:
            raise InvalidArgument(f"expected 1 to {MAX_CHANNELS} channels, got {channels}; evaluate the field itself")
        self.parts, self.channels = parts, channels
        self._is_autonomous, self._no_time = parts.system.is_autonomous, torch.zeros(1, dtype=torch.float64)
        (first, *further) = parts.operators.values()
        runs = None if further or first.batch else runs_of(first)  # none where members have different edge weights
        layout = Layout(
            real=_REAL[parts.dtype],
            channels=channels,
            operators=tuple((name, _INDEX[op.pattern.indptr.dtype]) for name, op in parts.operators.items()),
            has_degree=first.degree is not None,
            run_degrees=None if runs is None else tuple(np.unique(runs.degrees).tolist()),
            axes=parts.axes(),
        )
        source = _source_of(parts.system, layout)
        self.source = source.text
        handed = [start_array(parts.start)]
        handed += [parts.coefficient_array(c, layout.axes_of(c), channels) for c in source.coefficients]
        handed += [parts.matrix_array(matrix) for matrix in source.matrices]
        for operator in parts.operators.values():
            handed += operator_arrays(operator, runs)
        if first.degree is not None:
            handed.append(degree_array(first))
        self._handed, self._stored = handed, len(source.stored)
        self._shape, self._dtype = torch.Size((parts.nodes, channels * len(parts.system.fields))), parts.dtype
        #: The last checked shape, and its number of members.
        self._seen: tuple[torch.Size | None, int] = None, 0
        self._addresses = np.array([x.address for x in handed], dtype=np.int64)
        self._strides = np.array([x.stride for x in handed], dtype=np.int64)
        library = load_library(self.source)
        self._field, self._march = library.field, library.march
        self._field.argtypes, self._march.argtypes = _FIELD_TYPES, _MARCH_TYPES
        self._field.restype = self._march.restype = None
        self._head = self._addresses.ctypes.data, self._strides.ctypes.data, parts.nodes

    def __call__(self, t: Any, H: Tensor, out: Tensor | None = None) -> Tensor:
        """dH/dt at H, into `out` if given: a contiguous tensor like H."""
        seen, members = self._seen
        if H.shape != seen or H.dtype is not self._dtype or not H.is_cpu or not H.is_contiguous():
            H = self._checked(H)
            members = self._count(H)
            self._seen = H.shape, members
        if out is None:
            out = torch.empty_like(H)
        elif out.shape != H.shape or out.dtype != H.dtype or out.device != H.device or not out.is_contiguous():
            raise InvalidArgument(f"expected out like the state, {tuple(H.shape)} in one piece, got {tuple(out.shape)}")
        threads = self._threads(members)
        work = self._room(H, threads, 0) if self._stored else H
        times, stride = (self._no_time, 0) if self._is_autonomous else self._times(t, members)
        ends = H.data_ptr(), out.data_ptr(), work.data_ptr()
        self._field(*self._head, members, threads, times.data_ptr(), stride, *ends)
        return out

    def march(
        self,
        H: Tensor,
        numbers: StepNumbers,
        times: np.ndarray,
        lengths: np.ndarray,
        *,
        active: np.ndarray | None = None,
        bound: float | None = None,
        alive: np.ndarray,
        survived: np.ndarray,
    ) -> tuple[Tensor, Tensor]:
        """Runge-Kutta steps of all members: the states after them, and the first slopes of the last one.

        Times and lengths (N,) or (N, B) are float64, active (N, B) and alive (B,) uint8, survived (B,) int64; a member
        that leaves the bound stays where it was, is not alive any more, and survives no further step.
        """
        states = self._checked(H).clone()
        first = torch.empty_like(states)
        members = self._count(states)
        threads = self._threads(members)
        scratch = self._room(states, threads, numbers.stages + 2)
        step_stride, member_stride = (1, 0) if lengths.ndim == 1 else (lengths.shape[1], 1)
        arrays = (numbers.rows, numbers.weights, numbers.times)
        self._march(
            *self._head, members, threads, states.data_ptr(), scratch.data_ptr(),
            numbers.stages, *map(_address, arrays), len(lengths), step_stride, member_stride,
            _address(times), _address(lengths), None if active is None else _address(active),
            0.0 if bound is None else bound, int(bound is not None), _address(alive), _address(survived),
            first.data_ptr(),
        )  # fmt: skip
        return states, first

    # ------------------------------------------------------------------ parts
    def _checked(self, H: Tensor) -> Tensor:
        """A contiguous state that fits the library, which does no checks."""
        is_fit = H.shape[-2:] == self._shape and H.dtype is self._dtype and H.device.type == "cpu"
        if not is_fit or (self.parts.batch and H.shape[:-2] != self.parts.batch):
            lead = ", ".join(map(str, self.parts.batch)) or "..."
            raise InvalidArgument(
                f"expected a state of shape ({lead}, {self._shape[0]}, {self._shape[1]}) in {self.parts.dtype} on the "
                f"cpu, for which this was compiled, got {tuple(H.shape)} in {H.dtype} on {H.device}; compile it again "
                "with channels="
            )
        return H if H.is_contiguous() else H.contiguous()

    def _times(self, t: Any, members: int) -> tuple[Tensor, int]:
        """The time of every member in double precision, and the stride between members."""
        if t is None:
            raise InvalidArgument(f"expected a time, since {self.parts.system.text} depends on it, got None")
        times = torch.as_tensor(t, dtype=torch.float64).detach().reshape(-1).contiguous()
        if len(times) not in (1, members):
            raise InvalidArgument(f"expected one time, or one for each of {members} members, got {len(times)}")
        return times, int(len(times) > 1)

    def _count(self, H: Tensor) -> int:
        return H.numel() // self._shape.numel()

    def _threads(self, members: int) -> int:
        """The number of threads that pays."""
        return torch.get_num_threads() if members * self._shape.numel() >= THREADED_ENTRIES else 1

    def _room(self, H: Tensor, threads: int, states: int) -> Tensor:
        """Workspace for every thread: some states and the intermediate arrays."""
        return H.new_empty(threads * (states * self._shape[1] + self._stored * self.channels) * self._shape[0])


_source_of = lru_cache(maxsize=256)(compiled_source)


def _address(values: np.ndarray) -> int:
    return int(values.ctypes.data)
