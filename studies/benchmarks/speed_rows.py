"""One measurement beside its peer and its target, and the machine it was taken on."""

from __future__ import annotations

import platform
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class SpeedRow:
    """One measurement, its peer in the same run, and the target: ratio <= or >= `target`."""

    topic: str
    what: str
    seconds: float
    peer: str
    ratio: float
    target: str = ""
    met: bool | None = None

    @classmethod
    def against(cls, topic: str, what: str, seconds: float, peer: str, ratio: float, target: str = "") -> SpeedRow:
        met = None
        if target:
            sign, number = target.split()
            met = ratio <= float(number) if sign == "<=" else ratio >= float(number)
        return cls(topic, what, seconds, peer, ratio, target, met)


def environment(device: str) -> dict[str, str]:
    found = {"python": platform.python_version(), "torch": torch.__version__, "device": platform.processor() or "cpu"}
    if device == "cuda":
        import triton

        found |= {"device": torch.cuda.get_device_name(), "triton": triton.__version__}
    return found
