"""Devices by name: those that torch can use here, and the error for others."""

from __future__ import annotations

import re
from typing import Any

from rdgraph.errors import InvalidArgument


def read_device(device: Any) -> str:
    """The name of a device that torch can use here: cpu, cuda, cuda:N, or a `torch.device` of these.

    Raises:
        InvalidArgument: For another one.

    >>> read_device("cpu")
    'cpu'
    """
    name = device
    if not isinstance(device, str):
        import torch

        name = str(device) if isinstance(device, torch.device) else ""
    parts = re.fullmatch("(cpu|cuda)(?::([0-9]+))?", name)
    if parts is None:
        raise InvalidArgument(f"expected the device cpu, cuda or cuda:N, got {device!r:.60}")
    if parts[1] == "cuda":
        import torch

        if int(parts[2] or 0) >= torch.cuda.device_count():
            raise InvalidArgument(
                f"expected a CUDA device torch can use, got {name!r} and {torch.cuda.device_count()} such devices; "
                "choose cpu"
            )
    return name
