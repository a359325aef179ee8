"""Data sets, the GREAD classifier, the compared networks and training.

data sets:  load_dataset, karate, digits
extending:  NodeData, Masks, register_dataset, register_model
classifier: GREADClassifier, GNNClassifier, GREADConv, exportable, Network
training:   train, train_decoupled, Config, Trial, make_trials, find_preset
search:     search, discover
formulas:   distil_network
modules:    datasets, layers, models, training

Further names are in the modules: `gread.datasets.csbm`, `gread.layers.GREADBlock`, `gread.models.find_model`,
`gread.training.Ensemble`. Every name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from gread import datasets as datasets
    from gread import layers as layers
    from gread import models as models
    from gread import training as training
    from gread.classifier.estimators import GNNClassifier as GNNClassifier
    from gread.classifier.estimators import GREADClassifier as GREADClassifier
    from gread.datasets.embedded import digits as digits
    from gread.datasets.embedded import karate as karate
    from gread.datasets.loading import load_dataset as load_dataset
    from gread.datasets.node_data import NodeData as NodeData
    from gread.datasets.sources import register_dataset as register_dataset
    from gread.datasets.splits import Masks as Masks
    from gread.discovery.discovering import discover as discover
    from gread.formulas.distilled_network import distil_network as distil_network
    from gread.layers.conv import GREADConv as GREADConv
    from gread.layers.exporting import exportable as exportable
    from gread.models.trained_network import Network as Network
    from gread.settings.config import Config as Config
    from gread.settings.model_records import register_model as register_model
    from gread.settings.presets import find_preset as find_preset
    from gread.settings.trials import Trial as Trial
    from gread.settings.trials import make_trials as make_trials
    from gread.training.decoupled import train_decoupled as train_decoupled
    from gread.training.trainer import train as train
    from gread.tuning.searching import search as search

__all__, __getattr__, __dir__ = lazy_door(__name__)
