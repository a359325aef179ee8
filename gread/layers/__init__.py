"""Layers for your own networks: `conv`, a `block` around it, and `exporting` for torch.export and ONNX.

layers: GREADBlock
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from gread.layers.block import GREADBlock as GREADBlock

__all__, __getattr__, __dir__ = lazy_door(__name__)
