"""What was learned, in tables: functions with the distribution of the states, and what is proved of a network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gread.settings.gread_settings import GreadSettings
from rdgraph.errors import Diverged, FileError
from rdgraph.files import replacing
from rdgraph.language.tree import Call, Kind, Name
from rdgraph.vocabulary.learned_functions import LearnedFunction, LearnedValues, knots_of
from rdgraph.wording import counted
from studies.runs.chart import Chart, Line, Panel
from studies.training.training_figures import Drawing, own_blocks

if TYPE_CHECKING:
    from gread.datasets.node_data import NodeData
    from gread.models.trained_network import Network
    from gread.training.trainer import Trained
    from rdgraph.systems.system import System
    from studies.runs.study_run import StudyRun
    from studies.runs.tables import Row

#: The file of a run folder, and its contents.
FILE = "functions.json"
CAPTION = "the learned functions of every trial: declaration, control values, and the density of the states"
#: Points of a curve, bars of a density, trials and times that contribute states, and the share of states drawn.
POINTS, BARS, MOST_TRIALS, TIMES, SHARE = 241, 60, 10, 5, 0.99


def functions_of(done: Trained, sound: Sequence[int]) -> dict[str, list[LearnedValues]]:
    """Learned functions by name, for every trial that did not diverge; of several blocks, such as phi[2]."""
    if not sound or not isinstance(done.trials[sound[0]].config.model, GreadSettings):
        return {}
    networks = [done.network(k) for k in sound]
    blocks = own_blocks(networks[0])
    result: dict[str, list[LearnedValues]] = {}
    for block in blocks:
        each = [network.functions(block) for network in networks]
        suffix = f"[{block}]" if len(blocks) > 1 else ""
        result |= {name + suffix: [group[name] for group in each] for name in each[0]}
    return result


def states_seen(done: Trained, sound: Sequence[int], name: str) -> np.ndarray:
    """Entries of the states to which a function is applied, at even times of the flows of some trials.

    Empty if the argument of the function is no state, as in phi(A@H), and for blocks, each of which has a flow.
    """
    if done.network(sound[0]).gread.is_stacked:
        return np.zeros(0)
    fields = taken_of(done.network(sound[0]).system, name)
    result = []
    for k in sound[:MOST_TRIALS]:
        network, data = done.network(k), done.data_of(k)
        times = np.linspace(0.0, network.gread.time, TIMES).tolist()
        result += [network.states(data.x, data.graph, times, field).double().numpy().ravel() for field in fields]
    entries = np.concatenate(result) if result else np.zeros(0)
    if not np.isfinite(entries).all():
        raise Diverged("no density because the states diverged")
    return entries


def taken_of(system: System, name: str) -> list[str]:
    """The fields to which a learned function is applied directly.

    >>> import rdgraph as rd
    >>> taken_of(rd.parse("u' = phi(u) + phi(A@v); v' = u - v"), "phi")
    ['u']
    """
    calls = [call for e in system.equations for call in e.expression.atoms(Call)]
    key = system.learned[name].key
    letters = {c.argument for c in calls if c.function == key and isinstance(c.argument, Name)}
    return [field for field in system.fields if Name(field, Kind.FIELD) in letters]


# ---------------------------------------------------------------------- figure
def function_curves(done: Trained, sound: Sequence[int]) -> Drawing | None:
    """Figure of every learned function: all trials, their mean with one standard deviation, knots, and the states.

    With one function per channel, a trial is drawn as the mean over its channels, and the deviation is over all of
    them. None if the equation has no learned function.
    """
    functions = functions_of(done, sound)
    if not functions:
        return None
    panels: list[Panel] = []
    rows: list[dict[str, Any]] = []
    for name, values in functions.items():
        entries = states_seen(done, sound, name)
        x = _places(values[0].declaration, entries)
        lines = np.stack([group(x) for group in values])
        per_trial = lines if lines.ndim == 2 else lines.mean(1)
        mean, spread = (of(lines.reshape(-1, x.size), axis=0) for of in (np.mean, np.std))
        knots = knots_of(values[0].declaration)
        drawn = [Line("mean", x, mean, low=mean - spread, high=mean + spread, look=0)]
        drawn += [Line("each trial", x, line, look=1) for line in per_trial] if len(per_trial) > 1 else []
        drawn.append(Line("knots", knots, np.interp(knots, x, mean), style="dots", look=6))
        panels.append(Panel(name, drawn, y_label=name))
        for k, line in zip(sound, per_trial, strict=True):
            trial = {"function": name, "split": done.trials[k].split, "seed": done.trials[k].seed}
            rows += [{**trial, "x": float(a), "value": float(b)} for a, b in zip(x, line, strict=True)]
        middle, density = density_of(entries)
        rows += [{"function": name, "x": float(a), "density": float(b)} for a, b in zip(middle, density, strict=True)]
        if density.size:
            panels.append(Panel(f"arguments of {name}", [Line("density", middle, density)], y_label="density"))
    declared = "; ".join(str(values[0].declaration) for values in functions.values())
    caption = (
        f"Learned functions at the best epochs ({declared}): their mean, with a band of one standard deviation, over "
        f"{counted(len(sound), 'trial')}; dots: the knots. Density of the arguments of the function at even times "
        "from 0 to T; outside their range the curve means little."
    )
    return Drawing("functions", Chart(panels, "entry of the state", columns=2), caption, rows)


def _places(declared: LearnedFunction, entries: np.ndarray) -> np.ndarray:
    """Points at which a function is drawn: its range and that of nearly all states."""
    ends = [float(end) for end in declared.range]
    if entries.size:
        rest = (1 - SHARE) / 2
        ends += [float(q) for q in np.quantile(entries, [rest, 1 - rest])]
    return np.linspace(min(ends), max(ends), POINTS)


def density_of(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The middles of even bars and the density of the entries in them, without outliers."""
    if not entries.size:
        return np.zeros(0), np.zeros(0)
    rest = (1 - SHARE) / 2
    lower, upper = np.quantile(entries, [rest, 1 - rest])
    density, edges = np.histogram(
        entries, bins=BARS, range=(lower, upper if upper > lower else lower + 1.0), density=True
    )
    return (edges[1:] + edges[:-1]) / 2, density


# ---------------------------------------------------------------------- file
def write_functions(folder: Path, done: Trained, sound: Sequence[int]) -> bool:
    """Write the learned functions of all trials; returns False if the equation has none."""
    functions = functions_of(done, sound)
    if not functions:
        return False
    contents = {}
    for name, values in functions.items():
        middle, density = density_of(states_seen(done, sound, name))
        trials = [
            {"split": done.trials[k].split, "seed": done.trials[k].seed, "controls": group.controls.tolist()}
            for k, group in zip(sound, values, strict=True)
        ]
        contents[name] = {
            "declaration": str(values[0].declaration),
            "trials": trials,
            "states": {"x": middle.tolist(), "density": density.tolist()},
        }
    with replacing(folder / FILE) as draft:
        draft.write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")
    return True


def read_functions(folder: Path) -> dict[str, list[LearnedValues]]:
    """The learned functions of the trials of a run folder, by name."""
    path = folder / FILE
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        return {
            name: [
                LearnedValues(LearnedFunction.read(group["declaration"]), np.array(trial["controls"]))
                for trial in group["trials"]
            ]
            for name, group in contents.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise FileError(
            f"{path} holds no learned functions ({problem}); train some, as in "
            "rdgraph train --reaction '-alpha*L@H + phi(H)'"
        ) from None


# ---------------------------------------------------------------------- the whole network
def add_bounds(run: StudyRun, network: Network, data: NodeData) -> None:
    """Add what is proved of a network as a whole, the constants of its parts, and the energy after every block."""
    from analysis.measures.energies import dirichlet_energy, normalised_energy

    bounds = network.bounds()
    answers = {"Lipschitz constant": bounds.lipschitz, "Training": bounds.training, "Dirichlet energy": bounds.energy}
    run.say("What is proved of the whole network", "\n\n".join(f"{name}: {one}." for name, one in answers.items()))
    if bounds.factors:
        rows: list[Row] = [{"part": one.part, "constant": one.value, "reason": one.reason} for one in bounds.factors]
        run.table(
            "constants", rows, "Lipschitz constants of the parts of the first network; their product is the whole."
        )
    if network.gread.is_stacked:
        plain = data.graph.operator("none")
        symmetric = (data.graph if data.graph.is_undirected else data.graph.undirected()).operator("symmetric")
        energies: list[Row] = [
            {
                "block": k,
                "energy": float(dirichlet_energy(H, plain)),
                "normalised": float(normalised_energy(H, symmetric)),
            }
            for k, H in enumerate(state.cpu().float() for state in network.layers(data.x, data.graph))
        ]
        run.table(
            "energies", energies, "Energy and normalised energy before the first block (0) and after every block."
        )
