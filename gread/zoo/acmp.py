"""ACMP: Wang et al., "ACMP: Allen-Cahn Message Passing for Graph Neural Networks", ICLR 2023."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gread.settings.line_settings import LineSettings
from gread.settings.model_records import ModelRecord
from gread.zoo.line_model import LineModel

#: The equation of the released code: B is 1 on every edge, b the repulsion, beta their optional source.
LINE = "alpha*(A@H - b*(B@H) - H) + delta*H*(1 - H**2) + beta*H0 where alpha channel, delta channel, B operator"


@dataclass(frozen=True, kw_only=True)
class AcmpSettings(LineSettings):
    """Settings of ACMP: dH/dt = alpha (S H - b B H - H) + delta H (1 - H^2) + beta H0, B = 1 on every edge.

    Attraction S and repulsion b, which is a number and not trained, pull and push along the edges; the Allen-Cahn term
    holds the states near -1 and 1. alpha and delta have a value per channel in (0, 1); delta starts at sigmoid(-10), so
    that the reaction is almost off, and beta, where it is trained, is free and starts at zero. H0 is held without a
    gradient. `adjacency` soft is their attention from H(0), original their constant block. These are the authors' own
    terms; the paper scales -H by the row sums of S - b B instead.

    Their integrators are rk4 with a step of 0.1, and dopri5 with a loose tolerance, for which rk4 stands here.
    Their search for the best time of integration on the validation nodes is left out.
    """

    model: ClassVar[str] = "acmp"
    usual_starts: ClassVar[dict[str, float]] = {"alpha": 0.0, "delta": -10.0, "beta": 0.0}
    usual_links: ClassVar[dict[str, str]] = {"delta": "sigmoid"}

    reaction: str = LINE
    alpha: str = "channel"
    beta: str = "scalar"
    beta_link: str = "free"
    values: str = "b=0, beta=0"
    adjacency: str = "soft"
    method: str = "rk4"
    step: float | None = 0.2
    source_term: str = "detached"


RECORDS = (
    ModelRecord(
        "acmp", "ACMP", "continuous", source="Wang et al., ICLR 2023",
        rule="dH/dt = alpha (S - b B - I) H + delta H (1 - H^2)",
        settings=AcmpSettings, network=LineModel, published="ACMP",
    ),
)  # fmt: skip
