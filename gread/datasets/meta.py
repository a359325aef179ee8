"""`Meta`: where a data set comes from and what was done to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Meta:
    """Where a data set comes from and what was done to it.

    `sources` are pairs (file or work, its sha256 or reference), `variant` pairs (step, choice), `classes` the names of
    the labels 0, 1, ..., empty where unknown, `notes` sentences on what a user ought to know.
    """

    name: str
    title: str = ""
    sources: tuple[tuple[str, str], ...] = ()
    variant: tuple[tuple[str, str], ...] = ()
    split: str = ""
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
