"""`Network`: one trained network, apart from the ensemble it was trained in; predicts, shows its states, is saved."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gread.models.bundle import load_bundle, save_bundle
from gread.models.features import Features
from gread.models.gread_model import GREAD
from gread.models.problem import make_operator
from gread.models.state_layout import StateLayout
from gread.settings.config import Config, Model
from rdgraph import Graph
from rdgraph.errors import FileError, InvalidArgument, RdgraphError
from rdgraph.graphs.operator import Operator
from rdgraph.systems.system import System

FORMAT, WHAT = "gread network 2", "a saved network"
MANIFEST = "network.json"
#: The name under which the training nodes of a system with trusted sources are kept.
TRUSTED_NODES = "trusted"


@dataclass(frozen=True, eq=False)
class Network:
    """One trained network: its settings and parameters, which predict, show H(t), and are saved.

    Args:
        config: The settings, with the method that was used.
        parameters: Tensors by name, each with a member axis of length 1.
        features: Columns of the features.
        classes: Columns of the logits.
        reason: Why the method was taken, where it was chosen from the equation.

    Raises:
        InvalidArgument: From its methods, for features or graphs that it was not made for.

    >>> from gread.datasets.embedded import karate
    >>> from gread.training.trainer import train
    >>> from gread.settings.trials import Trial
    >>> data = karate()
    >>> net = train(data, [Trial(Config().updated({"hidden": 8, "epochs": 3}))], device="cpu").network(0)
    >>> net.logits(data.x, data.graph).shape, net.states(data.x, data.graph, [0.0, 0.5, 1.0]).shape
    (torch.Size([34, 2]), torch.Size([3, 34, 8]))
    """

    config: Model
    parameters: Mapping[str, Tensor]
    features: int
    classes: int
    reason: str = ""

    @property
    def system(self) -> System:
        """The equation."""
        return self.config.system

    def model(self, graph: Graph, trusted: Tensor | None = None) -> GREAD:
        """The network on a graph, as a torch module with one member, on the device of its parameters."""
        some = next(iter(self.parameters.values()))
        nodes = {len(p[0]) for name, p in self.parameters.items() if self._is_node_wise(name)}
        if nodes and nodes != {graph.num_nodes}:
            raise InvalidArgument(
                f"expected the graph of {nodes.pop()} nodes that this network was trained on, since it has one "
                f"number per node, got {graph.num_nodes} nodes"
            )
        operator = make_operator(graph, self.config, str(some.device), some.dtype)
        model = GREAD(self.config, operator, features=self.features, classes=self.classes, seeds=[0])
        model.load_members(self.parameters)
        model.trusted = self.parameters.get(TRUSTED_NODES) if trusted is None else trusted
        return model.requires_grad_(False)

    def _is_node_wise(self, name: str) -> bool:
        if name == TRUSTED_NODES:
            return True
        kinds = self.system.coefficients
        return kinds.get(name.removeprefix("coefficient_"), "") == "node" and name.startswith("coefficient_")

    def _start(self, x: Any, graph: Graph) -> tuple[GREAD, Features]:
        if x.shape[0] != graph.num_nodes or x.shape[1] != self.features:
            raise InvalidArgument(
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
    def states(self, x: Any, graph: Graph, times: Sequence[float], field: str | None = None) -> Tensor:
        """States H(t) of the flow (K, n, d) at rising times between 0 and T, by the network's own method.

        Of several fields those of `field`, or of all `system.fields` side by side where none is named.
        """
        model, features = self._start(x, graph)
        c, H0 = model.config, model.encode(features)
        asked = torch.tensor(list(times), dtype=torch.float64, device=H0.device)
        if not len(asked) or not (asked[0] >= 0 and asked[-1] <= c.time + 1e-9 and bool((asked.diff() >= 0).all())):
            raise InvalidArgument(f"expected rising times between 0 and {c.time:g}, got {list(times)}")
        found = model.flow(H0).states(model.field, H0, max(c.time, float(asked[-1])), asked)[:, 0]
        return found if field is None else model.layout.block(found, field)

    def coefficients(self) -> dict[str, Tensor]:
        """The coefficients of the equation as trained: (), (d,), (n,) or (d, d)."""
        return {name: value[0] for name, value in self.model(self._blank_graph()).coefficients().items()}

    def _blank_graph(self) -> Graph:
        """As many nodes as the parameters ask for, without edges."""
        nodes = next((len(p[0]) for name, p in self.parameters.items() if self._is_node_wise(name)), 1)
        return Graph.from_edges([[], []], num_nodes=nodes)

    @torch.no_grad()
    def operator(self, x: Any, graph: Graph) -> Operator:
        """A as the flow of these features uses it; attention included, without the member axis."""
        model, features = self._start(x, graph)
        operator = model.couple(model.encode(features))
        return dataclasses.replace(operator, weights=operator.weights[0]) if operator.batch else operator

    def check(self, graph: Graph) -> None:
        """Refuse parameters that are not those of a network of this configuration on that graph."""
        for name, value in self.parameters.items():
            if not value.is_floating_point() or value.ndim < 1 or len(value) != 1:
                raise InvalidArgument(f"expected numbers (1, ...) for {name}, got {value.dtype} {tuple(value.shape)}")
        encoder = self.parameters["encoder_weight"]
        columns = StateLayout.of(self.config).encoded_width
        if encoder.shape != (1, self.features, columns):
            raise InvalidArgument(f"expected an encoder (1, {self.features}, {columns}), got {tuple(encoder.shape)}")
        needed = dict(self.model(graph).named_parameters())
        if different := (set(needed) ^ set(self.parameters)) - {TRUSTED_NODES}:
            raise InvalidArgument(f"expected the parameters {', '.join(needed)}, got a difference in {min(different)}")
        for name, parameter in needed.items():
            if parameter.shape != self.parameters[name].shape:
                raise InvalidArgument(f"expected {name} of shape {tuple(parameter.shape)}, got another")

    # ------------------------------------------------------------------ files
    def save(self, folder: str | Path) -> None:
        """Write network.json and the file of numbers that it names."""
        words = {
            "features": self.features, "classes": self.classes, "model": dataclasses.asdict(self.config),
            "reason": self.reason,
        }  # fmt: skip
        save_bundle(Path(folder) / MANIFEST, FORMAT, words, self.parameters)

    @classmethod
    def load(cls, folder: str | Path) -> Network:
        """Read what `save` wrote, verified; nothing is unpickled."""
        bundle = load_bundle(Path(folder) / MANIFEST, FORMAT, WHAT)
        try:
            model = Config().updated(bundle.words["model"]).model
            features, classes = (int(bundle.words[name]) for name in ("features", "classes"))
            network = cls(model, bundle.numbers, features, classes, str(bundle.words.get("reason", "")))
            network.check(network._blank_graph())
        except (LookupError, RuntimeError, TypeError, ValueError, AttributeError, OverflowError, RdgraphError) as error:
            raise FileError(
                f"expected {WHAT} in {folder}, got words and numbers that make none ({type(error).__name__}: {error}); "
                "save it again"
            ) from None
        return network
