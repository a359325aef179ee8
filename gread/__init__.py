"""Data sets, the GREAD classifier, baselines and training.

data sets:  load_dataset, Variant, digits, karate, csbm, synthetic_cora,
            synthetic_cora_levels
your own:   NodeData, Masks, stratified_splits

Names are loaded when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gread.datasets.embedded import digits, karate
    from gread.datasets.loading import load_dataset
    from gread.datasets.masks import Masks
    from gread.datasets.nodes import NodeData
    from gread.datasets.splits import stratified_splits
    from gread.datasets.synthetic import csbm, synthetic_cora, synthetic_cora_levels
    from gread.datasets.variants import Variant

__all__ = [
    "Masks",
    "NodeData",
    "Variant",
    "csbm",
    "digits",
    "karate",
    "load_dataset",
    "stratified_splits",
    "synthetic_cora",
    "synthetic_cora_levels",
]

#: Where the names come from.
_ON_USE = {
    "Masks": "gread.datasets.masks",
    "NodeData": "gread.datasets.nodes",
    "Variant": "gread.datasets.variants",
    "csbm": "gread.datasets.synthetic",
    "digits": "gread.datasets.embedded",
    "karate": "gread.datasets.embedded",
    "load_dataset": "gread.datasets.loading",
    "stratified_splits": "gread.datasets.splits",
    "synthetic_cora": "gread.datasets.synthetic",
    "synthetic_cora_levels": "gread.datasets.synthetic",
}


def __getattr__(name: str) -> object:
    if name not in _ON_USE:
        raise AttributeError(f"module 'gread' has no attribute {name!r}")
    value = getattr(import_module(_ON_USE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
