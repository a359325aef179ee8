"""Trainings of a moment, for the tests of the trainer."""

from __future__ import annotations

from gread.settings.config import Config


def config(**values: object) -> Config:
    base = {"hidden": 8, "epochs": 6, "attention_dim": 8, "method": "euler", "step": 0.5}
    return Config().updated(base | values)
