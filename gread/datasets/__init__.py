"""Data sets: public, embedded and synthetic ones, and your own graph.

public:     sources (catalogue), download, raw, planetoid, npz, ogb_sets, variants, loading
yours:      node_data, splits, checks, node_tables, array_files, interchange
others:     embedded, synthetic
about them: facts, published_comparison

names:      Variant, RemoteFile, stratified_splits, csbm, synthetic_cora, synthetic_cora_levels

`load_dataset` and other common functions are in `gread`.
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from gread.datasets.sources import RemoteFile as RemoteFile
    from gread.datasets.splits import stratified_splits as stratified_splits
    from gread.datasets.synthetic import csbm as csbm
    from gread.datasets.synthetic import synthetic_cora as synthetic_cora
    from gread.datasets.synthetic import synthetic_cora_levels as synthetic_cora_levels
    from gread.datasets.variants import Variant as Variant

__all__, __getattr__, __dir__ = lazy_door(__name__)
