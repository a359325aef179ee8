"""Networks in batches, and the one of GREAD: features, flow, norms, label propagation, and the result of a training.

networks: GREAD, BatchedModel, Place
records:  ModelRecord, ModelSettings, find_model
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from gread.models.batched_model import BatchedModel as BatchedModel
    from gread.models.gread_model import GREAD as GREAD
    from gread.models.place import Place as Place
    from gread.settings.model_records import ModelRecord as ModelRecord
    from gread.settings.model_records import ModelSettings as ModelSettings
    from gread.settings.model_records import find_model as find_model

__all__, __getattr__, __dir__ = lazy_door(__name__)
