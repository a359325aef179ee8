"""GRAFF: Di Giovanni et al., "Understanding convolution on graphs via energies", TMLR 2023; a gradient flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gread.settings.line_settings import LineSettings
from gread.settings.model_records import ModelRecord
from gread.zoo.equation_networks import LineModel


@dataclass(frozen=True, kw_only=True)
class GraffSettings(LineSettings):
    """Settings of GRAFF: dH/dt = A H W - H Omega + beta H0 by Euler steps, W symmetric and shared by all steps.

    `reaction` GRAFF-diagonal has a diagonal W; GRAFF has a whole one, made symmetric as `matrices` says, by default
    dominant, W_ii = t_i sum_j |W_ij| + r_i. relu(...) around the line gives their nonlinear form. A is symmetric and,
    as in their runs, without self-loops; beta is one free number that starts at zero, and H0 is held without a
    gradient.

    `step_norm` is their batch norm of the slope (squirrel). Their code keeps the norms of the layers in a plain list:
    weights and shifts are not trained, prediction uses the means of the current nodes too, and all layers share the
    first norm. The same is done here. The last of T/tau steps is shortened, as theirs is.
    """

    model: ClassVar[str] = "graff"
    usual_starts: ClassVar[dict[str, float]] = {"beta": 0.0}

    reaction: str = "GRAFF-diagonal"
    beta: str = "scalar"
    beta_link: str = "free"
    adjacency: str = "original"
    self_loops: float = 0.0
    time: float = 3.0
    method: str = "euler"
    step: float | None = 1.0
    matrices: str = "dominant"
    source_term: str = "detached"


RECORDS = (
    ModelRecord(
        "graff", "GRAFF", "continuous", source="Di Giovanni et al., TMLR 2023",
        rule="dH/dt = A H W - H Omega + beta H0, W = W'",
        settings=GraffSettings, network=LineModel, published="GRAFF",
    ),
)  # fmt: skip
