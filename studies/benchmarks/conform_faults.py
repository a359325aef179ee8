"""Seeded faults and correct variants: `python -m studies.benchmarks.conform_faults --out docs/conform_faults.json`.

Every single fault of twelve layers is put to `rd.conform` with the equation of the layer without it: is it caught, and
does one of the first three hints name its kind? As many correct variants, with other numbers, other ways to write the
same and other widths, must conform. Faults that change no output are left out. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

import rdgraph as rd
from rdgraph.conformance.probe_graphs import probe_graphs
from rdgraph.files import write_text
from studies.benchmarks.faulty_layers import RECIPES, Fault, Recipe, faults, made_layer, options
from studies.benchmarks.speed_rows import command, environment
from studies.runs.boundary import run_program

#: Channels of a layer with a fault, and hints among which its kind must be.
CHANNELS, FIRST = 2, 3
#: Correct variants of every recipe.
VARIANTS = 18


def seeded_faults(seed: int = 0) -> Iterator[tuple[Recipe, Fault]]:
    """The faults of all recipes that change an output."""
    for recipe in RECIPES:
        for fault in faults(recipe):
            if changes_something(recipe, fault, seed):
                yield recipe, fault


def changes_something(recipe: Recipe, fault: Fault, seed: int) -> bool:
    """Whether a fault changes an output on some graph, and leaves a layer: one row for each node."""
    values = recipe.values(seed, CHANNELS)
    sound = made_layer(recipe, ast.parse(recipe.source, mode="eval").body, values)
    faulty = made_layer(fault.recipe, fault.tree, values)
    generator = torch.Generator().manual_seed(1)
    for graph in probe_graphs():
        x, start = (
            torch.randn((graph.num_nodes, CHANNELS), generator=generator, dtype=torch.float64) for _ in range(2)
        )
        weight = torch.tensor(graph.edge_weight)
        states = (x, start) if recipe.has_start else (x,)
        first, second = (layer(*states, torch.tensor(graph.edge_index), weight) for layer in (sound, faulty))
        if first.shape != second.shape:
            return False
        if float((first - second).abs().max()) > 1e-6:
            return True
    return False


def fault_row(recipe: Recipe, fault: Fault, seed: int = 0) -> dict[str, Any]:
    """What `rd.conform` says of one fault."""
    values = recipe.values(seed, CHANNELS)
    began = time.process_time()
    found = rd.conform(
        made_layer(fault.recipe, fault.tree, values), recipe.equation, **options(recipe, values), channels=CHANNELS
    )
    kinds = [hint.kind for hint in found.hints]
    return {
        "layer": recipe.name, "kind": fault.kind, "fault": fault.text, "caught": not found.conforms,
        "named": fault.kind in kinds[:FIRST], "hints": [str(hint) for hint in found.hints[:FIRST]],
        "seconds": round(time.process_time() - began, 2),
    }  # fmt: skip


def correct_variants() -> Iterator[tuple[Recipe, str, int, int, bool]]:
    """A recipe, an expression of it, a seed, a width, and whether its letters are given."""
    for recipe in RECIPES:
        ways = (recipe.source, *recipe.variants)
        for k in range(VARIANTS):
            yield replace(recipe, is_dense=bool(k % 2)), ways[k % len(ways)], 100 + k, 1 + k % 3, k % 3 != 2


def variant_row(recipe: Recipe, source: str, seed: int, channels: int, given: bool) -> dict[str, Any]:
    """What `rd.conform` says of one correct variant."""
    values = recipe.values(seed, channels)
    layer = made_layer(recipe, ast.parse(source, mode="eval").body, values)
    began = time.process_time()
    found = rd.conform(layer, recipe.equation, **options(recipe, values if given else None), channels=channels)
    return {
        "layer": recipe.name, "source": source, "seed": seed, "channels": channels, "given": given,
        "conforms": found.conforms, "proof": bool(found.certificate is not None and found.certificate.is_proof),
        "hints": [str(hint) for hint in found.hints[:FIRST]], "seconds": round(time.process_time() - began, 2),
    }  # fmt: skip


def summary(found: Sequence[dict[str, Any]], sound: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts and times."""
    kinds = Counter(row["kind"] for row in found)
    named = Counter(row["kind"] for row in found if row["named"] and row["caught"])
    seconds = [row["seconds"] for row in (*found, *sound)]
    return {
        "layers": len({row["layer"] for row in found}), "faults": len(found),
        "caught": sum(row["caught"] for row in found), "named": sum(named.values()),
        "by_kind": {kind: {"faults": count, "named": named[kind]} for kind, count in sorted(kinds.items())},
        "variants": len(sound), "false_alarms": sum(not row["conforms"] for row in sound),
        "proofs": sum(row["proof"] for row in sound),
        "median_seconds": round(median(seconds), 2), "most_seconds": max(seconds),
    }  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/conform_faults.json"))
    parser.add_argument("--every", type=int, default=1, help="take every so manieth fault and variant")
    given = parser.parse_args(words)
    found, sound = [], []
    for recipe, fault in list(seeded_faults())[:: given.every]:
        found.append(row := fault_row(recipe, fault))
        if not (row["caught"] and row["named"]):
            print(f"{row['layer']}: {row['kind']}, {row['fault']}: caught {row['caught']}, {row['hints']}", flush=True)
    for variant in list(correct_variants())[:: given.every]:
        sound.append(row := variant_row(*variant))
        if not row["conforms"]:
            print(f"false alarm: {row}", flush=True)
    line = command("studies.benchmarks.conform_faults", sys.argv[1:] if words is None else words)
    told = summary(found, sound)
    print(json.dumps(told, indent=1))
    kept = {"command": line, "environment": environment("cpu"), "summary": told, "faults": found, "variants": sound}
    write_text(given.out, json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    run_program(main)
