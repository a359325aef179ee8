"""Graphs: `graph` and its `edges`, `generators`, `graph_files`, and the `operator` on a device; `kernels/` the sparse
product.

operators: Operator, stack
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from rdgraph.graphs.operator import Operator as Operator
    from rdgraph.graphs.operator import stack as stack

__all__, __getattr__, __dir__ = lazy_door(__name__)
