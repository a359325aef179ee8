"""GRAND++: Thorpe et al., "GRAND++: Graph Neural Diffusion with a Source Term", ICLR 2022."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gread.settings.line_settings import LineSettings
from gread.settings.model_records import ModelRecord
from gread.zoo.line_model import LineModel


@dataclass(frozen=True, kw_only=True)
class GrandPlusSettings(LineSettings):
    """Settings of GRAND++: dH/dt = -L H + M (H0 - m), m the mean of H0 over the trusted nodes.

    M marks the nodes whose labels are known in training: no label is used, but which nodes have one is. The sources sum
    to zero, so that the mean of H stays where it is on a doubly stochastic A. `adjacency` soft is attention from H(0)
    that stays, live is attention from H(t).

    The authors' code is not public; the rule is the paper's. The code of the GREAD paper adds the source to the initial
    state instead.
    """

    model: ClassVar[str] = "grand-pp"

    reaction: str = "GRAND++"
    adjacency: str = "soft"
    source_term: str = "centred"


RECORDS = (
    ModelRecord(
        "grand-pp", "GRAND++", "continuous", source="Thorpe et al., ICLR 2022",
        rule="dH/dt = (S - I) H + M (H0 - mean H0)",
        settings=GrandPlusSettings, network=LineModel, published="GRAND++",
    ),
)  # fmt: skip
