"""The published settings for the studies of linear flows, each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gread.settings.presets import Preset, presets

#: The paper's abbreviations for scalar and vector coefficients.
KINDS = {"scalar": "SC", "channel": "VC"}


@dataclass(frozen=True)
class PublishedSetting:
    """The paper's choice for one reaction on one data set; alpha and beta are kinds (SC, VC), not values."""

    reaction: str
    dataset: str
    adjacency: str
    alpha: str
    beta: str
    step: float
    time: float
    solver: str
    source: str


@cache
def best_settings() -> tuple[PublishedSetting, ...]:
    """The paper's best settings: seven reactions on nine data sets.

    >>> s = best_settings()[0]
    >>> s.reaction, s.dataset, s.step, s.time, s.solver
    ('BS', 'texas', 1.0, 1.46, 'euler')
    """
    return tuple(_setting(preset) for preset in presets() if preset.name.startswith("paper/"))


def _setting(preset: Preset) -> PublishedSetting:
    model = preset.config.gread
    return PublishedSetting(
        preset.reaction,
        preset.dataset.removesuffix("_old"),
        {"original": "OA", "soft": "SA"}[model.adjacency],
        KINDS[model.alpha],
        KINDS[model.beta],
        float(model.step or 0),
        model.time,
        model.method,
        preset.source.partition(";")[0],
    )
