"""`Network`: one trained network, apart from the ensemble it was trained in; predicts, shows its states, is saved."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gread.config import Config, Model
from gread.features import Features
from gread.flow import run_steps
from gread.model import GREAD, make_system
from gread.problem import make_operator
from rdgraph import Graph, solve
from rdgraph.errors import NotApplicable
from rdgraph.graphs.sparse import Operator
from rdgraph.integrators.solve import FIXED
from rdgraph.system import System

FORMAT = "gread network 1"


@dataclass(frozen=True, eq=False)
class Network:
    """Settings and parameters; every parameter has a member axis of length 1.

    >>> from gread.datasets.embedded import karate
    >>> from gread.train import train
    >>> from gread.trials import Trial
    >>> data = karate()
    >>> net = train(data, [Trial(Config().updated({"hidden": 8, "epochs": 3}))], device="cpu").network(0)
    >>> net.logits(data.x, data.graph).shape, net.states(data.x, data.graph, [0.0, 0.5, 1.0]).shape
    (torch.Size([34, 2]), torch.Size([3, 34, 8]))
    """

    config: Model
    parameters: Mapping[str, Tensor]
    features: int
    classes: int

    @property
    def system(self) -> System:
        """The equation."""
        return make_system(self.config)

    def model(self, graph: Graph, trusted: Tensor | None = None) -> GREAD:
        """The network on a graph, as a torch module with one member, on the device of its parameters."""
        some = next(iter(self.parameters.values()))
        nodes = {len(p[0]) for name, p in self.parameters.items() if self._is_node_wise(name)}
        if nodes and nodes != {graph.num_nodes}:
            raise NotApplicable(
                f"expected the graph of {nodes.pop()} nodes that this network was trained on, since it has one "
                f"number per node, got {graph.num_nodes} nodes"
            )
        operator = make_operator(graph, self.config, str(some.device), some.dtype)
        model = GREAD(self.config, operator, features=self.features, classes=self.classes, seeds=[0])
        model.load_members(self.parameters)
        model.trusted = self.parameters.get("trusted") if trusted is None else trusted
        return model.requires_grad_(False)

    def _is_node_wise(self, name: str) -> bool:
        if name == "trusted":
            return True
        kinds = self.system.coefficients
        return kinds.get(name.removeprefix("coefficient_"), "") == "node" and name.startswith("coefficient_")

    def _start(self, x: Any, graph: Graph) -> tuple[GREAD, Features]:
        if x.shape[0] != graph.num_nodes or x.shape[1] != self.features:
            raise NotApplicable(
                f"expected features ({graph.num_nodes}, {self.features}), one row per node, got {tuple(x.shape)}"
            )
        model = self.model(graph)
        return model, Features.make(x, model.operator.device, model.operator.dtype)

    @torch.no_grad()
    def logits(self, x: Any, graph: Graph) -> Tensor:
        """Logits (n, classes) for features (n, f), dense or sparse."""
        model, features = self._start(x, graph)
        return model(features)[0]

    def probabilities(self, x: Any, graph: Graph) -> Tensor:
        """Class probabilities (n, classes)."""
        return torch.softmax(self.logits(x, graph), -1)

    @torch.no_grad()
    def states(self, x: Any, graph: Graph, times: Sequence[float]) -> Tensor:
        """States H(t) of the flow (K, n, d) at rising times between 0 and T, by the network's own method."""
        model, features = self._start(x, graph)
        c, H0 = self.config, model.encode(features)
        asked = torch.tensor(list(times), dtype=torch.float64, device=H0.device)
        if not len(asked) or not (asked[0] >= 0 and asked[-1] <= c.time + 1e-9 and bool((asked.diff() >= 0).all())):
            raise NotApplicable(f"expected rising times between 0 and {c.time:g}, got {list(times)}")
        if c.adjacency == "live":
            route = model.route(H0)
            assert route.schedule is not None
            make = type(route.schedule).make
            found = [run_steps(model.field, H0, make(c.method, float(t), c.step), t.view(1), True) for t in asked]
            return torch.stack(found)[:, 0]
        step = c.step if c.method in FIXED or c.method == "strang" else None
        ends = [0.0, max(c.time, float(asked[-1]))]
        return solve(model.field(H0), H0, ends, c.method, step=step, save_at=asked).states[:, 0]

    def coefficients(self) -> dict[str, Tensor]:
        """The coefficients of the equation as trained: (), (d,), (n,) or (d, d)."""
        nodes = next((len(p[0]) for name, p in self.parameters.items() if self._is_node_wise(name)), 1)
        blank = Graph.from_edges([[], []], num_nodes=nodes)
        return {name: value[0] for name, value in self.model(blank).coefficients().items()}

    @torch.no_grad()
    def operator(self, x: Any, graph: Graph) -> Operator:
        """A as the flow of these features uses it; attention included, without the member axis."""
        model, features = self._start(x, graph)
        operator = model.couple(model.encode(features))
        return dataclasses.replace(operator, weights=operator.weights[0]) if operator.batch else operator

    # ------------------------------------------------------------------ files
    def save(self, folder: str | Path) -> None:
        """Write network.safetensors and network.json."""
        from safetensors.torch import save_file

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        save_file({k: v.detach().cpu().contiguous() for k, v in self.parameters.items()}, place / "network.safetensors")
        head = {"format": FORMAT, "features": self.features, "classes": self.classes}
        text = json.dumps(head | {"model": dataclasses.asdict(self.config)}, indent=2)
        (place / "network.json").write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Network:
        """Read what `save` wrote; nothing is unpickled."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        place = Path(folder)
        try:
            head = json.loads((place / "network.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise NotApplicable(f"expected a saved network in {place}, got {error}") from None
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise NotApplicable(f"expected a network.json of the format {FORMAT!r} in {place}, got another file")
        try:
            model = Config().updated(head["model"]).model
            found = cls(model, load_file(place / "network.safetensors"), int(head["features"]), int(head["classes"]))
            found.coefficients()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, SafetensorError) as error:
            raise NotApplicable(f"expected the files of one saved network in {place}, got {error}") from None
        return found
