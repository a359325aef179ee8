"""Layers for your own networks: a flow, a block around one, and both for torch.export and ONNX.

layers:    GREADConv, GREADBlock
exporting: exportable
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from gread.layers.block import GREADBlock as GREADBlock
    from gread.layers.conv import GREADConv as GREADConv
    from gread.layers.exporting import exportable as exportable

__all__, __getattr__, __dir__ = lazy_door(__name__)
