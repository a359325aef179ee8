"""docs/performance.md and its figure from the measured numbers: `python -m studies.benchmarks.speed_page`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figures import PALETTE, plain
from gread.settings.presets import authors_runs
from studies.benchmarks.rate_tables import equations_part, large_part, printed_part, search_part
from studies.runs.boundary import run_program

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCS = Path(__file__).resolve().parents[2] / "docs"
SOURCE = DOCS / "performance.json"
TRAINING = DOCS / "training_speed.json"
COMPILED = DOCS / "compiled_speed.json"
PRINTED, SEARCHES, EQUATIONS, LARGE = (
    DOCS / f"{name}.json" for name in ("printed_speed", "search_speed", "discover_speed", "large_graphs")
)

TITLES = {
    "product": "The sparse product",
    "locality": "Locality",
    "field": "Fields and gradients",
    "ensemble": "Ensembles",
    "size": "As large as one card",
    "cpu product": "The sparse product on a CPU",
}
#: Epochs of one training.
EPOCHS = 200
TRAINING_TITLES = {
    "training": "Training on ten splits",
    "sweep": "Many configurations at once",
    "cpu training": "Training on a CPU",
}
NOTES = {
    "product": "The gather floor is what a product must move when nothing is found in a cache: one row of channels per "
    "entry, the result, and an index and a weight per entry, at the bandwidth of a plain copy in the same run. A ratio "
    "below 1 means that the L2 cache served part of it. For torch's CSR product and gather-scatter the ratio says how "
    "many times longer they take.",
    "locality": "`graph.permute(graph.local_order())` puts neighbours close together (reverse Cuthill-McKee), so that "
    "gathered rows are found in the caches.",
    "field": "Counted in products of the same size: two products and the sums are one kernel each. The gradient of the "
    "edge weights adds two sampled products.",
    "ensemble": "All members, each with its own weights, in one launch, replayed from a CUDA graph with warm caches.",
    "size": "Random rows of Poisson length. Rows of 16 channels are one or two sectors of memory, so the card waits "
    "for addresses rather than for bytes; that is why half the bytes take about the same time.",
    "cpu product": "Torch's embedding_bag, which is the fastest product torch has on a CPU in float32.",
    "training": "One epoch (training step, evaluation, book-keeping) of BS with the authors' settings, all ten splits "
    "as one CUDA graph, and how many times faster that is; the row of all sets is the GPU time of 200 epochs on each. "
    "The authors' code trains one split after the other; its times are those of the same card. Products: the degree of "
    "the polynomial that the flow is evaluated by; RK4 with eight steps on Cora would take 64.",
    "sweep": "Texas with different learning rates, decays, dropouts and times; whole trainings per second. "
    "At its time per epoch on Texas the authors' code reaches {rate:.2f}.",
    "cpu training": "The same network, one split, beside a plain program of gathers, scatters and torchdiffeq, taking "
    "turns in one run.",
}
EPOCH_NOTE = (
    "Shares of the time of all kernels, by torch's profiler. The floor is what the gathers of all products, the "
    "features and Adam must move, at the bandwidth of a plain copy as if nothing were found in a cache; an epoch below "
    "it lives in the L2 cache, one far above it waits for launches or for its longest row."
)
COMPILED_NOTE = (
    "One evaluation of a right-hand side of one channel on a periodic grid, as C that is generated from the equation, "
    "beside what py-pde compiles from the same one; both in turns in one run, the shortest time of each. The target is "
    "a ratio of at most 2, and a first call, compilation included, within 3 s."
)
AXES = {
    "edges": "entries (d = 16)",
    "channels": "channels",
    "members": "members (d = 16)",
    "products": "products per field (d = 16)",
}


def page(
    found: dict[str, Any],
    training: dict[str, Any],
    compiled: dict[str, Any],
    printed: dict[str, Any],
    searches: dict[str, Any],
    equations: list[dict[str, Any]],
    large: dict[str, Any],
) -> str:
    """The page as Markdown, from the numbers of products, training, compiled fields, the paper's table, searches,
    equations and graphs."""
    environment = ", ".join(f"{k} {v}" for k, v in found["environment"].items())
    lines = [
        "# Performance", "",
        f"Measured with `{found['command']}` on {environment}; numbers in [performance.json](performance.json), this "
        f"page by `python -m studies.benchmarks.speed_page`. Graphs with a name: {found['graphs']}. A plain copy moves "
        f"{found['copy_bandwidth'] / 1e12:.2f} TB/s, bytes read and written together. Medians after a warm-up, with "
        "cold caches unless said otherwise.", "",
    ]  # fmt: skip
    for topic, title in TITLES.items():
        rows = [r for r in found["rows"] if r["topic"] == topic]
        if rows:
            lines += [f"## {title}", "", NOTES[topic], "", *table(rows), ""]
    lines += ["## Scaling", "", "![Time over entries, channels, members and products](figures/scaling.png)", ""]
    lines += [slopes(found["scaling"]), ""]
    lines += [*training_part(training), *printed_part(printed), *search_part(searches)]
    lines += [*equations_part(equations), *large_part(large)]
    lines += compiled_part(compiled)
    return "\n".join(lines)


def training_part(training: dict[str, Any]) -> list[str]:
    """How long training takes, and where the time goes."""
    lines = []
    for topic, title in TRAINING_TITLES.items():
        for part in training.values():
            if rows := [r for r in part["rows"] if r["topic"] == topic]:
                where = ", ".join(f"{k} {v}" for k, v in part["environment"].items())
                rate = 1e3 / (authors_runs()["texas"].ms_per_epoch * EPOCHS)
                lines += [
                    f"## {title}",
                    "",
                    NOTES[topic].format(rate=rate),
                    "",
                    f"`{part['command']}` on {where}.",
                    "",
                    *table(rows),
                    "",
                ]
    lines += ["### Where the time of an epoch goes", "", EPOCH_NOTE, ""]
    return [*lines, *epoch_table(training["gpu"]["epochs"]), ""]


def compiled_part(found: dict[str, Any]) -> list[str]:
    """Compiled fields on periodic grids beside py-pde's."""
    where = ", ".join(f"{k} {v}" for k, v in found["environment"].items())
    lines = [
        "## Compiled fields on a CPU", "", COMPILED_NOTE, "", f"`{found['command']}` on {where}.", "",
        "| equation | grid | compiled | py-pde | ratio | torch | first call | py-pde's first call |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row in found["rows"]:
        times = [duration(row[name]) for name in ("seconds", "peer_seconds")]
        others = [duration(row[name]) for name in ("torch_seconds", "first", "peer_first")]
        cells = [row["problem"], f"{row['side']}²", *times, f"{row['seconds'] / row['peer_seconds']:.2f}", *others]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def epoch_table(epochs: dict[str, dict[str, Any]]) -> list[str]:
    """Shares of the kernels' time by what they do."""
    kinds = list(dict.fromkeys(kind for detail in epochs.values() for kind in detail["parts"]))
    lines = [
        f"| epoch of | time | launches | {' | '.join(kinds)} | floor |",
        "|---|---:|---:|" + "---:|" * (len(kinds) + 1),
    ]
    for name, detail in epochs.items():
        total = sum(detail["parts"].values())
        shares = [f"{detail['parts'].get(kind, 0.0) / total:.0%}" for kind in kinds]
        cells = [name, duration(detail["epoch"]), str(detail["launches"]), *shares, duration(detail["floor"])]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| what | time | against | ratio | target | met |", "|---|---:|---|---:|---|---|"]
    for r in rows:
        met = "" if r["met"] is None else "yes" if r["met"] else "no"
        cells = [
            r["what"],
            duration(r["seconds"]),
            r["peer"],
            f"{r['ratio']:.2f}",
            r["target"].replace("<", "&lt;"),
            met,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def duration(seconds: float) -> str:
    """A time with a unit that fits.

    >>> duration(0.00114), duration(0.00001966)
    ('1.14 ms', '19.7 us')
    """
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-4 else f"{seconds * 1e3:.3g} ms"


def slopes(scaling: dict[str, list[tuple[float, float]]]) -> str:
    """How time grows at the large end of each axis: the exponent of a power law through the upper half."""
    words = []
    for axis, points in scaling.items():
        upper = np.log(np.array(points[len(points) // 2 :]))
        words.append(f"{axis} {np.polyfit(upper[:, 0], upper[:, 1], 1)[0]:.2f}")
    return (
        f"Exponents over the upper half of each axis (1 is linear): {', '.join(words)}. Below, a launch costs what it "
        "costs; with few channels a gathered row is smaller than a sector of memory."
    )


def figure(found: dict[str, Any]) -> Figure:
    """Four panels, log-log, with a line of slope one through the last point."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10, 2.9), layout="constrained")
    panels = drawn.subplots(1, 4, sharey=False)
    for colour, panel, (axis, label) in zip(PALETTE, panels, AXES.items(), strict=False):
        size, seconds = np.array(found["scaling"][axis]).T
        panel.loglog(size, seconds * 1e3, "o-", color=colour, markersize=4)
        panel.loglog(size, seconds[-1] * 1e3 * size / size[-1], ":", color="0.5", linewidth=1)
        panel.set_xlabel(label)
        panel.xaxis.set_minor_formatter("")
        panel.yaxis.set_minor_formatter("")
        if axis == "products":
            panel.set_xticks(size, [f"{x:g}" for x in size])
        panel.grid(alpha=0.3, which="major")
    panels[0].set_ylabel("milliseconds")
    drawn.suptitle(f"Time of one evaluation on {plain(found['environment']['device'])}; dotted: linear", fontsize=10)
    return drawn


def sources() -> list[Any]:
    """The measured numbers, in the order that `page` takes them; none of what was not measured yet."""
    paths = (SOURCE, TRAINING, COMPILED, PRINTED, SEARCHES, EQUATIONS, LARGE)
    return [json.loads(path.read_text(encoding="utf-8")) if path.exists() else {} for path in paths]


def main() -> None:
    """Write the page and the figure."""
    found = sources()
    (DOCS / "performance.md").write_text(page(*found), encoding="utf-8")
    figure(found[0]).savefig(DOCS / "figures" / "scaling.png", dpi=150)
    print(f"wrote {DOCS / 'performance.md'}")


if __name__ == "__main__":
    run_program(main)
