"""Data sets, the GREAD classifier, the compared networks and training.

data sets:   load_dataset, Variant, digits, karate, csbm, synthetic_cora, synthetic_cora_levels
your own:    NodeData, Masks, stratified_splits, register_dataset, RemoteFile
classifier:  GREADClassifier, GNNClassifier, GREADConv, exportable, GREAD, Network
networks:    find_model, register_model, ModelRecord, ModelSettings, BatchedModel, Place
training:    train, train_decoupled, Config, Trial, make_trials, Ensemble, find_preset
search:      search, discover
formulas:    distil_network, DistilledNetwork

Names are loaded when they are first asked for.
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from gread.classifier.estimators import GNNClassifier, GREADClassifier
    from gread.datasets.embedded import digits, karate
    from gread.datasets.loading import load_dataset
    from gread.datasets.node_data import NodeData
    from gread.datasets.sources import RemoteFile, register_dataset
    from gread.datasets.splits import Masks, stratified_splits
    from gread.datasets.synthetic import csbm, synthetic_cora, synthetic_cora_levels
    from gread.datasets.variants import Variant
    from gread.discovery.discovering import discover
    from gread.formulas.distilled_network import DistilledNetwork, distil_network
    from gread.layers.conv import GREADConv
    from gread.layers.exporting import exportable
    from gread.models.batched_model import BatchedModel
    from gread.models.gread_model import GREAD
    from gread.models.place import Place
    from gread.models.trained_network import Network
    from gread.settings.config import Config
    from gread.settings.model_records import ModelRecord, ModelSettings, find_model, register_model
    from gread.settings.presets import find_preset
    from gread.settings.trials import Trial, make_trials
    from gread.training.decoupled import train_decoupled
    from gread.training.ensemble import Ensemble
    from gread.training.trainer import train
    from gread.tuning.searching import search

__all__ = [
    "GREAD",
    "BatchedModel",
    "Config",
    "DistilledNetwork",
    "Ensemble",
    "GNNClassifier",
    "GREADClassifier",
    "GREADConv",
    "Masks",
    "ModelRecord",
    "ModelSettings",
    "Network",
    "NodeData",
    "Place",
    "RemoteFile",
    "Trial",
    "Variant",
    "csbm",
    "digits",
    "discover",
    "distil_network",
    "exportable",
    "find_model",
    "find_preset",
    "karate",
    "load_dataset",
    "make_trials",
    "register_dataset",
    "register_model",
    "search",
    "stratified_splits",
    "synthetic_cora",
    "synthetic_cora_levels",
    "train",
    "train_decoupled",
]

#: Where the names come from.
_ON_USE = {
    "BatchedModel": "gread.models.batched_model",
    "Config": "gread.settings.config",
    "DistilledNetwork": "gread.formulas.distilled_network",
    "Ensemble": "gread.training.ensemble",
    "GNNClassifier": "gread.classifier.estimators",
    "GREAD": "gread.models.gread_model",
    "GREADClassifier": "gread.classifier.estimators",
    "GREADConv": "gread.layers.conv",
    "Masks": "gread.datasets.splits",
    "ModelRecord": "gread.settings.model_records",
    "ModelSettings": "gread.settings.model_records",
    "Network": "gread.models.trained_network",
    "NodeData": "gread.datasets.node_data",
    "Place": "gread.models.place",
    "RemoteFile": "gread.datasets.sources",
    "Trial": "gread.settings.trials",
    "Variant": "gread.datasets.variants",
    "csbm": "gread.datasets.synthetic",
    "digits": "gread.datasets.embedded",
    "discover": "gread.discovery.discovering",
    "distil_network": "gread.formulas.distilled_network",
    "exportable": "gread.layers.exporting",
    "find_model": "gread.settings.model_records",
    "find_preset": "gread.settings.presets",
    "karate": "gread.datasets.embedded",
    "load_dataset": "gread.datasets.loading",
    "make_trials": "gread.settings.trials",
    "register_dataset": "gread.datasets.sources",
    "register_model": "gread.settings.model_records",
    "search": "gread.tuning.searching",
    "stratified_splits": "gread.datasets.splits",
    "synthetic_cora": "gread.datasets.synthetic",
    "synthetic_cora_levels": "gread.datasets.synthetic",
    "train": "gread.training.trainer",
    "train_decoupled": "gread.training.decoupled",
}

__getattr__, __dir__ = lazy_door(__name__, _ON_USE)
