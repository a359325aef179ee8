"""One measurement beside its peer and its target, and the machine it was taken on."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """Versions and the device that a measurement was taken with."""
    found = {"python": platform.python_version(), "torch": torch.__version__, "device": platform.processor() or "cpu"}
    if device == "cuda":
        import triton

        found |= {"device": torch.cuda.get_device_name(), "triton": triton.__version__}
    return found


def command(module: str, words: Sequence[str]) -> str:
    """The line that a benchmark was called with, as it is written into its file: of absolute paths the names alone.

    >>> command("studies.benchmarks.accuracy", ["--device", "cuda", "--out", "/somewhere/accuracy.json"])
    'python -m studies.benchmarks.accuracy --device cuda --out accuracy.json'
    """
    return " ".join(["python -m", module, *(Path(w).name if Path(w).is_absolute() else w for w in words)])
