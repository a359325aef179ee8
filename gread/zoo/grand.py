"""GRAND: Chamberlain et al., "GRAND: Graph Neural Diffusion", ICML 2021; diffusion, and nothing else, as a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gread.models.gread_model import GREAD
from gread.settings.gread_settings import GreadSettings
from gread.settings.model_records import ModelRecord


@dataclass(frozen=True)
class GrandSettings(GreadSettings):
    """Settings of GRAND: those of GREAD with diffusion for the equation.

    `adjacency` soft is the authors' GRAND-l, attention from H(0) that stays; live is GRAND-nl, attention from H(t).
    """

    model: ClassVar[str] = "grand"

    reaction: str = "diffusion"
    adjacency: str = "soft"


RECORDS = (
    ModelRecord(
        "grand", "GRAND", "continuous", source="Chamberlain et al., ICML 2021", rule="dH/dt = sigmoid(alpha) (S - I) H",
        settings=GrandSettings, network=GREAD, published="GRAND",
    ),
)  # fmt: skip
