"""CGNN: Xhonneux, Qu, Tang, "Continuous Graph Neural Networks", ICML 2020."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gread.settings.line_settings import LineSettings
from gread.settings.model_records import ModelRecord
from gread.zoo.line_model import LineModel


@dataclass(frozen=True, kw_only=True)
class CgnnSettings(LineSettings):
    """Settings of CGNN: dH/dt = a/2 (A H - H) + H W - H + H0, a = sigmoid of a number per node.

    W = U diag(clamp(w, 0, 1)) U' with U near orthogonal; `reaction` CGNN-unweighted has no W. The second half of the
    `hidden` channels starts at zero and is not read out, so that 32 stands for the 16 of the authors' settings; H0 is
    held without a gradient; the weight of the self-loops in A is tuned. The line is that of the released code, and not
    the one that the GREAD paper prints, which has no decay.

    U <- 3/2 U - 1/2 U U' U is done at the beginning of the next training pass, and not after the step. w starts at
    0.999 and not at 1, from where a clamp has no way up. RMSprop, which two of their three settings have, is Adam here,
    and dopri5 is rk4 with a fixed step.
    """

    model: ClassVar[str] = "cgnn"
    usual_starts: ClassVar[dict[str, float]] = {"a": 1.0}
    usual_links: ClassVar[dict[str, str]] = {"a": "sigmoid"}

    hidden: int = 32
    reaction: str = "CGNN-authors"
    adjacency: str = "original"
    method: str = "rk4"
    step: float | None = 1.0
    matrices: str = "orthogonal"
    source_term: str = "detached"
    augmented: bool = True


RECORDS = (
    ModelRecord(
        "cgnn", "CGNN", "continuous", source="Xhonneux et al., ICML 2020",
        rule="dH/dt = a/2 (A - I) H + H (W - I) + H0",
        settings=CgnnSettings, network=LineModel, published="CGNN",
    ),
)  # fmt: skip
