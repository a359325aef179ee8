"""How generated functions apply operators: B(x, scale, (factor, value), ...) = scale*(B@x) + sum of factor*value."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.operator import Operator

Application = Callable[..., Tensor]


def application(operator: Operator, dtype: torch.dtype) -> Application:
    """That of A, or of another operator, to states that are brought to a precision.

    >>> from rdgraph import generators
    >>> swap = application(generators.path(2).operator("row"), torch.float32)
    >>> swap(torch.tensor([[1.0], [2.0]]), torch.tensor(10.0)).ravel()
    tensor([20., 10.])
    """

    def apply(x: Tensor, scale: Tensor | None = None, *terms: tuple[Tensor, Tensor]) -> Tensor:
        return operator.product(x.to(dtype), scale, [(k, y.to(dtype)) for k, y in terms])

    return apply


def laplacian_application(operator: Operator, one: Tensor, dtype: torch.dtype) -> Application:
    """That of L = D - A, for operators that are not normalised; `one` is 1 as a tensor beside them.

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
