"""Names of parametrised cases that are the same in every process."""

from __future__ import annotations

from typing import Any

import sympy as sp


def shown(value: Any) -> str | None:
    """A formula or a text by itself; None, for a number in order, where the text would hold an address or a set."""
    return str(value) if isinstance(value, str | int | float | sp.Basic) else None
