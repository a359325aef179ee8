"""The settings of the study of energies in trained networks on two smaller graphs, for its tests."""

from __future__ import annotations

from studies.trained_energy import study as trained_energy
from studies.trained_energy.networks import make_subjects

#: The study's own settings on two smaller graphs.
TINY = {**trained_energy.settings(True), "graphs": 2, "sizes": [10, 10], "time": 3.0, "epochs": 2, "rounds": 2}
SUBJECTS = make_subjects(TINY)
REACTIONS = TINY["reactions"]
