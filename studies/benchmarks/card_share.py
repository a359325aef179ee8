"""A program with a share of a card's memory: `python -m studies.benchmarks.card_share SHARE MODULE [ARGUMENT ...]`.

What plans its memory, as trainings do, then plans with that share, and several programs fit side by side.
"""

from __future__ import annotations

import runpy
import sys

import torch

from studies.runs.boundary import run_program


def main() -> None:
    share, module = float(sys.argv[1]), sys.argv[2]
    if torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(share)
    del sys.argv[1:3]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run_program(main)
