"""`StackedSettings`: the settings of a network that is a stack of layers."""

from __future__ import annotations

from dataclasses import dataclass

from gread.settings.model_settings import ModelSettings


@dataclass(frozen=True, kw_only=True)
class StackedSettings(ModelSettings):
    """Settings of a stack of `layers` layers, the last of which gives the logits."""

    layers: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_at_least(1, "layers")

    def widths(self, features: int, classes: int) -> list[int]:
        """Columns before and after every layer: `layers` + 1 numbers."""
        return [features, *(self.layers - 1) * [self.hidden], classes]
