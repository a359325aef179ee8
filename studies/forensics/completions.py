"""What the paper leaves open, and the ways to complete it: changes of the printed settings, and rules for the epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gread.settings.config import Config
from gread.settings.presets import AuthorsCell
from gread.training.ensemble import METRICS
from gread.training.trainer import Trained
from studies.cells.cell import Cell, Origins, Variation, file_name, shrunk, training_rows
from studies.cells.nine_sets import BOUNDED, published_config, released_reaction
from studies.runs.tables import MutableRow

#: The printed settings, with what they leave open from the released settings of the same set.
PRINTED = "as printed"
#: Rules that need no training of their own, and what each is.
RULES = {
    "last epoch": "the accuracy of the last epoch",
    "selection on test": "the best accuracy on the test nodes over all epochs, which no honest protocol takes",
}
#: Completions that are trained, and what each is.
TRAINED = {
    "sigmoid beta": "a vector beta passes through the sigmoid",
    "free beta": "a scalar beta does not pass through the sigmoid",
    "tanh": "the reaction stands inside tanh",
    "released reaction": "FB and FB* as the authors' code computes them",
    "self-loops": "every node has a self-loop",
    "no self-loops": "no node has a self-loop",
    "encoder layers": "two residual layers follow the encoder",
    "decoder layer": "the decoder has a hidden layer",
    "no hidden layers": "neither encoder nor decoder has more than one layer",
    "ReLU": "a ReLU follows the flow",
    "no ReLU": "no ReLU follows the flow",
    "row features": "the features of every node are divided by their sum",
    "least loss": "the epoch with the least validation loss is taken",
}
#: All reactions inside tanh, an option of the authors' code.
INSIDE_TANH = {
    **BOUNDED,
    "BS": "-alpha*L@H + beta*tanh(A@H - A@A@H)",
    "ST": "-alpha*L@H + beta*tanh(H0)",
    "FB": "-alpha*L@H + beta*tanh(L@H)",
    "FB*": "-alpha*L@H + beta*tanh(L@H + H)",
}


def completed(config: Config, reaction: str, completion: str) -> Config:
    """The settings with one thing completed otherwise; the same ones where they have it already.

    >>> config = published_config("paper", "F", "texas")
    >>> completed(config, "F", "tanh").gread.reaction
    '-alpha*L@H + beta*tanh(H*(1 - H))'
    >>> completed(config, "F", "released reaction") == config
    True
    """
    is_scalar = config.gread.beta == "scalar"
    changes: Mapping[str, Mapping[str, Any]] = {
        "sigmoid beta": {} if is_scalar else {"beta_link": "sigmoid"},
        "free beta": {"beta_link": "free"} if is_scalar else {},
        "tanh": {"reaction": INSIDE_TANH[reaction]},
        "released reaction": {"reaction": released_reaction(reaction, config.gread.beta)}
        if reaction.startswith("FB")
        else {},
        "self-loops": {"self_loops": 1.0},
        "no self-loops": {"self_loops": 0.0},
        "encoder layers": {"encoder_mlp": True},
        "decoder layer": {"decoder_mlp": True},
        "no hidden layers": {"encoder_mlp": False, "decoder_mlp": False},
        "ReLU": {"relu": True},
        "no ReLU": {"relu": False},
        "row features": {"row_features": True},
        "least loss": {"select": "loss"},
    }
    return config.updated(changes[completion])


def printed_cells(s: Mapping[str, Any]) -> list[Cell]:
    """The printed settings of every reaction on every set."""
    return [_cell(PRINTED, reaction, dataset, _base(reaction, dataset, s), s) for reaction, dataset in _places(s)]


def completion_cells(s: Mapping[str, Any], reactions: list[str]) -> list[Cell]:
    """Every completion of some reactions that changes something; the others have the numbers of the printed ones."""
    found = []
    for reaction, dataset in _places({**s, "reactions": reactions}):
        base = _base(reaction, dataset, s)
        for completion in s["completions"]:
            config = completed(base, reaction, completion)
            if config != base:
                found.append(_cell(completion, reaction, dataset, config, s))
    return found


def _places(s: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return ((str(reaction), str(dataset)) for dataset in s["sets"] for reaction in s["reactions"])


def _base(reaction: str, dataset: str, s: Mapping[str, Any]) -> Config:
    return shrunk(published_config("paper", reaction, dataset), s["epochs"], s["hidden"])


def _cell(completion: str, reaction: str, dataset: str, config: Config, s: Mapping[str, Any]) -> Cell:
    one = Variation({"completion": completion, "reaction": reaction}, config)
    name = file_name(completion.replace(" ", "_"), reaction, dataset)
    return Cell(name, (dataset,), (one,), s["splits"], s["seeds"])


def ruled_rows(origins: Origins, done: Trained) -> list[MutableRow]:
    """The rows of trainings; those of the printed settings again for every rule, from their learning curves."""
    rows = training_rows(origins, done)
    curves = done.history[:, :, METRICS.index("test_accuracy")]
    again: list[MutableRow] = []
    for row, curve in zip(rows, curves, strict=True):
        if row["completion"] == PRINTED:
            known = curve[np.isfinite(curve)]
            values = {"last epoch": known[-1:], "selection on test": known}
            again += [
                {**row, "completion": rule, "test_accuracy": float(found.max()) if found.size else 0.0}
                for rule, found in values.items()
            ]
    return [*rows, *again]


# ---------------------------------------------------------------------- the authors' code
def authors_config(cell: AuthorsCell) -> Config:
    """The settings of a run of the authors' code; FB in the form of that code.

    >>> from gread.settings.presets import authors_cells
    >>> found = authors_config(authors_cells()[1]).gread
    >>> found.beta_link, found.reaction
    ('free', '-alpha*L@H + beta*tanh(H*(1 - H**2))')
    """
    config = published_config("paper", cell.reaction, cell.dataset)
    if cell.reaction.startswith("FB"):
        config = completed(config, cell.reaction, "released reaction")
    if cell.tanh:
        config = completed(config, cell.reaction, "tanh")
    link = {} if config.gread.beta == "scalar" else {"beta_link": cell.beta}
    return config.updated({**link, "row_features": cell.row_features})


def authors_name(cell: AuthorsCell) -> str:
    """A name for the files of a cell."""
    words = [cell.beta, *(["row"] if cell.row_features else []), *(["tanh"] if cell.tanh else [])]
    return file_name("authors", cell.reaction, cell.dataset, *words)


def authors_part(cells: tuple[AuthorsCell, ...], s: Mapping[str, Any]) -> list[Cell]:
    """The same trainings with our code: the same first splits, one seed."""
    return [
        Cell(
            authors_name(cell), (cell.dataset,),
            (Variation({"completion": authors_name(cell), "reaction": cell.reaction},
                       shrunk(authors_config(cell), s["epochs"], s["hidden"])),),
            len(cell.splits),
        )
        for cell in cells
        if cell.dataset in s["authors_sets"]
    ]  # fmt: skip
