"""docs/conform.md from the measured verdicts: `python -m studies.benchmarks.conform_page`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rdgraph.files import write_text
from studies.runs.boundary import run_program

DOCS = Path(__file__).resolve().parents[2] / "docs"
HEAD = """# Layers held against equations

Does this code compute that equation? The filter bank that the authors of GREAD released computes (I + A)H where their
paper prints L H. `rd.conform` asks a layer as a black box, on small graphs and in double precision, and says which.

```python
>>> import torch, rdgraph as rd
>>> def released(x, edge_index):
...     source, target = edge_index
...     ones = x.new_ones(len(source))
...     degree = x.new_zeros(len(x)).index_add(0, target, ones).clamp(min=1)[:, None]
...     around = torch.zeros_like(x).index_add(0, target, x[source]) / degree
...     return -0.5*(x - around) + 0.25*(x + around)
>>> found = rd.conform(released, "-alpha*L@H + beta*L@H", values={"alpha": 0.5, "beta": 0.25})
>>> found.conforms, found.equation, found.term
(False, '-alpha*L@H + beta*(I + A)@H', 'beta*L@H')
>>> print(found.hints[0])
operator: I + A stands where the equation has L
>>> print(found.witness)
2 nodes, edges 0-1; H = [(1, 0), (0, 0)]: the equation gives [(-0.25, 0), (0.25, 0)], the layer [(-0.25, 0), (0.75, 0)]
>>> rd.conform(released, "-alpha*L@H + beta*(H + A@H)").reading
'row normalisation without self-loops, alpha = 1/2, beta = 1/4'
>>> rd.recover(released).equation                      # the other way: which line does it compute?
'-0.25*H + 0.75*A@H'

```

On the command line, with a page that has both formulas side by side, the probes and the witness drawn:

```
rdgraph conform my_layers.py:layer "-alpha*L@H + beta*L@H" --set alpha=0.5 --report runs/conform
rdgraph conform my_layers.py:layer
```

## What a layer is

`f(x, edge_index)`, `f(x, edge_index, edge_weight)`, with `x_0` after `x` where there is a start, `f(x, adj)` with a
dense matrix, or `f(t, x)` with `graph=`; a function or an `nn.Module`. The names of the parameters say which; for any
other layer give `call=lambda layer, x, x_0, graph: ...`. A module is copied and asked in double precision, and its
parameters are looked up by their values, so that a reading can say `alpha = sigmoid(gate of the layer)`. A module with
a cache is copied for every question. Dropout that was left on, training mode that changes answers, inputs that are
changed in place, and graphs that the layer refuses are told.

## What is left open

| argument | what is open |
|---|---|
| `compared` | "field": f(H); "map": f, `count` times; "step": `count` Euler steps of `step`; "flow": to `T` |
| `normalisation`, `self_loops`, `transposed` | None tries all, with five rules for self-loops |
| `values` | letters that are not given are fitted, and taken for fractions where they are near one |
| `assume` | scalars are positive unless said otherwise, channels where it is said; the other sign is a difference |
| `functions={"phi": ("relu", "tanh")}` | a function of a list |
| `operators={"D": rule}` | operators beside A: (adjacency) or (adjacency, state) to a matrix |
| `input_map`, `output_map` | unknown affine maps before and after |
| `graphs` | "all"; "undirected"; "simple": neither loops nor weights either; or a list |

## What the answer is worth

Where the equation is a polynomial of degree m in the state, a graph with N entries of the state needs C(N + m, m)
independent states: every polynomial of that degree that agrees on them is the same one. `certificate` counts them, says
how far rounding is amplified, and calls the agreement a proof up to rounding, for all states on these graphs, **if the
layer is such a polynomial**; that it looks like one along a random line is measured. In all other cases (functions,
single precision, too many channels) it says "agrees on N probes". Nothing is said of graphs that were not probed, but
that the words I, A, ..., A^K are independent on those that were.

"differs" is said where no values of the letters agree, or a single fault explains the answers. Where letters enter in
another way than linearly and were not found, `status` is "undecided".

## In your own tests

`rdgraph.testing` has a fixture. It fails with the equation that the layer computes, the witness and the hints.

```py
# conftest.py
from rdgraph.testing import conforms  # noqa: F401
```

```py
# my_layers.py
import torch


def sharpen(x, edge_index):
    source, target = edge_index
    degree = x.new_zeros(len(x)).index_add(0, target, x.new_ones(len(source))).clamp(min=1)[:, None]
    around = torch.zeros_like(x).index_add(0, target, x[source]) / degree
    return 0.5 * (x - around)
```

```py
# test_my_layers.py
from my_layers import sharpen


def test_sharpen(conforms):
    conforms("0.5*L@H", normalisation="row", self_loops=False)(sharpen)
```
"""
FAULTS = """## Seeded faults

{layers} layers are written as expressions of torch and changed in one place: {faults} programs whose outputs differ
from the equation. All settings and letters are given. Caught: {caught}; the kind of the fault is among the first three
hints in {named}. {variants} correct variants (other numbers, other ways to write the same, dense and sparse, one to
three channels, letters given or fitted): {false_alarms} false alarms, {proofs} agreements that are proofs up to
rounding. A check takes {median_seconds} s of the processor at the median and {most_seconds} s at most.
`{command}`, numbers in [conform_faults.json](conform_faults.json).
"""


def page(table: dict[str, Any], campaign: dict[str, Any]) -> str:
    """The page as Markdown."""
    lines = [HEAD, "## Verdicts on published layers", ""]
    lines += [
        "Layers of torch-geometric, with all parameters drawn anew, against the formulas that its documentation "
        "prints, and layers of our own. A + I is read as printed: self-loops are added to every node. Simple graphs "
        "are undirected, without loops and weights; where a layer differs on other graphs only, the formula is silent "
        f"on them or the code follows another convention. `{table['command']}`, numbers in "
        "[conform.json](conform.json), this page by `python -m studies.benchmarks.conform_page`.",
        "", "| layer | printed | in the language | simple graphs | all graphs |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for row in table["rows"]:
        note = f" ({row['note']})" if row["note"] else ""
        first, *more = [_verdict(verdict) for verdict in row["verdicts"].values()]
        cells = [
            f"{row['layer']}{note}",
            row["formula"],
            f"`{row['equation']}`",
            first,
            more[0] if more else "one graph",
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    told = campaign["summary"]
    lines += ["", FAULTS.format(**told, command=campaign["command"])]
    lines += ["| kind of fault | faults | named in the first three hints |", "|---|---:|---:|"]
    lines += [f"| {kind} | {row['faults']} | {row['named']} |" for kind, row in told["by_kind"].items()]
    return "\n".join(lines) + "\n"


def _verdict(verdict: dict[str, Any]) -> str:
    if verdict["conforms"]:
        refuses = any(note.startswith("the layer refused") for note in verdict["notes"])
        worth = "proof up to rounding" if verdict["proof"] else "agrees on the probes"
        return f"conforms, {worth}{' (it refuses some graphs)' if refuses else ''}"
    if verdict["hints"]:
        return f"**differs**: {'; '.join(verdict['hints'][:2])}"
    computed = f"; it computes `{verdict['equation']}`" if verdict["equation"] else ""
    return f"**differs**{computed} ({verdict['reading']})"


def main() -> None:
    table, campaign = (
        json.loads((DOCS / name).read_text(encoding="utf-8")) for name in ("conform.json", "conform_faults.json")
    )
    write_text(DOCS / "conform.md", page(table, campaign))


if __name__ == "__main__":
    run_program(main)
