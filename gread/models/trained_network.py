"""`Network`: one trained network, independent of its ensemble; predicts, returns its states, can be saved."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gread.datasets.node_data import NodeData
from gread.datasets.preparation import Preparation
from gread.models.batched_model import BatchedModel
from gread.models.bundle import load_bundle, save_bundle
from gread.models.features import Features
from gread.models.gread_model import GREAD, TRUSTED_NODES, Stack
from gread.models.network_bounds import NetworkBounds, network_bounds
from gread.models.place import Place
from gread.models.problem import make_features
from gread.models.randomness import Dropper
from gread.settings.config import NAME, Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.model_records import ModelSettings, find_model
from rdgraph import Graph
from rdgraph.errors import FileError, InvalidArgument, NotApplicable, RdgraphError
from rdgraph.graphs.operator import Operator
from rdgraph.systems.system import System
from rdgraph.vocabulary.learned_functions import LearnedValues

FORMAT, WHAT = "gread network 3", "a saved network"
MANIFEST = "network.json"
_OTHER_GRAPH = (
    "expected the graph of {} nodes that this network was trained on, since it has parameters per node, got {} nodes"
)
#: The largest factor by which the parameters of a network may be fewer than its channels suggest.
PARTS = 16


@dataclass(frozen=True, eq=False)
class Network:
    """One trained network: its settings and parameters; predicts, returns H(t), and can be saved.

    Args:
        config: The settings, with the method that was used.
        parameters: Tensors by name, each with a member axis of length 1.
        features: Columns of the features.
        classes: Columns of the logits.
        reason: Why the method was chosen, if it was chosen from the equation.
        class_names: The names of the classes, if they have names.
        preparation: How the columns of a file became the features, if they came from a file;
            `NodeData.from_files(..., preparation=network.preparation)` prepares other files in the same way.

    A network is called as a function, `network(data)` or `network(x, graph)`, and returns the logits.

    Raises:
        InvalidArgument: From its methods, for features or graphs of other sizes.

    >>> import gread
    >>> data = gread.karate()
    >>> config = gread.Config().updated({"hidden": 8, "epochs": 3})
    >>> net = gread.train(data, [gread.Trial(config)], device="cpu").network(0)
    >>> net.logits(data.x, data.graph).shape, net.states(data.x, data.graph, [0.0, 0.5, 1.0]).shape
    (torch.Size([34, 2]), torch.Size([3, 34, 8]))
    """

    config: ModelSettings
    parameters: Mapping[str, Tensor]
    features: int
    classes: int
    reason: str = ""
    class_names: tuple[str, ...] = ()
    preparation: Preparation | None = None

    def __post_init__(self) -> None:
        if self.class_names and len(self.class_names) != self.classes:
            raise InvalidArgument(f"expected a name for each of {self.classes} classes, got {len(self.class_names)}")

    def __repr__(self) -> str:
        numbers = sum(value.numel() for value in self.parameters.values())
        names = [self.config.model, getattr(self.config, "reaction", "")]
        what = " ".join(name for name in names if name)
        return f"Network({what}, {self.features} features, {self.classes} classes, {numbers:,} parameters)"

    def __call__(self, x: Any, graph: Graph | None = None) -> Tensor:
        """Logits (n, classes) of a `NodeData`, of PyTorch Geometric data, or of features (n, f) on a graph."""
        if graph is not None:
            return self.logits(x, graph)
        data = x if isinstance(x, NodeData) else NodeData.from_pyg(x) if hasattr(x, "edge_index") else None
        if data is None:
            raise InvalidArgument(
                f"expected a data set, or features and their graph, got only {type(x).__name__}; pass the graph as well"
            )
        return self.logits(data.x, data.graph)

    @property
    def system(self) -> System:
        """The equation of the network; an error for networks without one."""
        return self.gread.system

    @property
    def gread(self) -> GreadSettings:
        """The settings of a network around an equation; an error for other networks."""
        return Config(self.config).gread

    def model(self, graph: Graph, trusted: Tensor | None = None) -> BatchedModel:
        """The network on a graph, as a torch module with one member, on the device of its parameters."""
        model = self._fresh(graph, trusted)
        for name, part in model.parts.items():
            value = self.parameters[name]
            if value.shape != part.shape and graph.num_nodes in part.shape:
                nodes = value.shape[part.shape.index(graph.num_nodes)] if value.ndim == part.ndim else 0
                raise InvalidArgument(_OTHER_GRAPH.format(nodes, graph.num_nodes))
        model.load_members(self.parameters)
        return model.requires_grad_(False)

    def _fresh(self, graph: Graph, trusted: Tensor | None = None) -> BatchedModel:
        """A new network with these settings on a graph, with initial parameters."""
        some = next(iter(self.parameters.values()))
        known = self.parameters.get(TRUSTED_NODES) if trusted is None else trusted
        if known is not None and known.shape[-1] != graph.num_nodes:
            raise InvalidArgument(_OTHER_GRAPH.format(known.shape[-1], graph.num_nodes))
        place = Place.of(graph, device=some.device, dtype=some.dtype, trusted=known)
        network: BatchedModel = find_model(self.config.model).network(
            self.config, place, features=self.features, classes=self.classes, seeds=[0]
        )
        return network

    def _flow_model(self, graph: Graph) -> GREAD:
        model = self.model(graph)
        if not isinstance(model, GREAD):
            raise InvalidArgument(f"expected a network around an equation, got {self.config.model}, which has none")
        return model

    def _flow_of_block(self, graph: Graph, block: int | None) -> GREAD:
        """The part of the model with the coefficients and the adjacency of a block, counted from 1."""
        model = self._flow_model(graph)
        if not isinstance(model, Stack):
            return model
        if block is None and model.config.blocks == 1:
            block = 1
        if block is None or not 1 <= block <= model.config.blocks:
            got = "none" if block is None else str(block)
            raise InvalidArgument(f"expected block=1 to {model.config.blocks} of this network, got {got}")
        return model.block(block - 1)

    def _check_features(self, x: Any, graph: Graph) -> None:
        if x.shape[0] != graph.num_nodes or x.shape[1] != self.features:
            raise InvalidArgument(
                f"expected features ({graph.num_nodes}, {self.features}), one row per node, got {tuple(x.shape)}"
            )

    def _features(self, x: Any, graph: Graph) -> Features:
        self._check_features(x, graph)
        some = next(iter(self.parameters.values()))
        return make_features(x, self.config, some.device, some.dtype)

    @torch.no_grad()
    def logits(self, x: Any, graph: Graph) -> Tensor:
        """Logits (n, classes) for features (n, f), dense or sparse."""
        features = self._features(x, graph)
        return self.model(graph)(features)[0]

    def probabilities(self, x: Any, graph: Graph) -> Tensor:
        """Class probabilities (n, classes)."""
        return torch.softmax(self.logits(x, graph), -1)

    @torch.no_grad()
    def states(self, x: Any, graph: Graph, times: Sequence[float], field: str | None = None) -> Tensor:
        """States H(t) of the flow (K, n, d) at increasing times between 0 and T, by the method of the network.

        For several fields those of `field`, or all `system.fields` concatenated if it is None. A network in blocks has
        one flow per block and raises NotApplicable; see `layers`.
        """
        features, model = self._features(x, graph), self._flow_model(graph)
        if isinstance(model, Stack):
            raise NotApplicable(
                "expected a network with one flow for its states over time, got blocks with a flow each; "
                "layers(x, graph) returns the states before the first block and after every block"
            )
        c, H0 = model.config, model.encode(features)
        wanted = torch.tensor(list(times), dtype=torch.float64, device=H0.device)
        if not len(wanted) or not (wanted[0] >= 0 and wanted[-1] <= c.time + 1e-9 and bool((wanted.diff() >= 0).all())):
            given = ", ".join(map(str, times)) or "none"
            raise InvalidArgument(f"expected rising times between 0 and {c.time:g}, got {given}")
        added = model.additions(H0, Dropper())
        states = model.flow(H0).states(model.field, H0, max(c.time, float(wanted[-1])), wanted, added)[:, 0]
        return states if field is None else model.layout.block(states, field)

    @torch.no_grad()
    def layers(self, x: Any, graph: Graph) -> list[Tensor]:
        """The states (n, d_k) of the network layer by layer, block by block, or at the steps of its flow."""
        features = self._features(x, graph)
        return [state[0] for state in self.model(graph).states(features, Dropper())]

    def coefficients(self, block: int | None = None) -> dict[str, Tensor]:
        """The trained coefficients, (), (d,), (n,) or (d, d), and the control values of learned functions.

        Those of one block, counted from 1, if the network has several.
        """
        flow = self._flow_of_block(self._blank_graph(), block)
        return {name: value[0] for name, value in flow.coefficients().items()}

    def functions(self, block: int | None = None) -> dict[str, LearnedValues]:
        """The trained functions of the equation, by name; a function per channel has values (d, K)."""
        trained = self.coefficients(block)
        return {
            name: LearnedValues(declared, trained[name].detach().cpu().double().numpy())
            for name, declared in self.system.learned.items()
        }

    def bounds(self) -> NetworkBounds:
        """A Lipschitz constant from the features to the logits on every graph, its factors, and what does not compose.

        >>> import gread
        >>> fixed = {"hidden": 4, "epochs": 3, "adjacency": "original", "blocks": 2, "mixing": True, "norm": "batch"}
        >>> config = gread.Config().updated(fixed)
        >>> bounds = gread.train(gread.karate(), [gread.Trial(config)], device="cpu").network(0).bounds()
        >>> str(bounds.lipschitz.status), [factor.part for factor in bounds.factors][:3]
        ('bounded', ['encoder', 'block 1', 'block 1, batch norm'])
        >>> str(bounds.training.status)
        'refused'
        """
        return network_bounds(self.gread, self._flow_model(self._blank_graph()))

    def _blank_graph(self) -> Graph:
        """A graph without edges, with the number of nodes of the parameters."""
        settings = self.gread  # raises for a network without an equation
        network: type[GREAD] = find_model(self.config.model).network  # type: ignore[assignment]
        return Graph.from_edges([[], []], num_nodes=network.nodes_of(settings, self.parameters))

    @torch.no_grad()
    def operator(self, x: Any, graph: Graph) -> Operator:
        """The operator A for these features, including attention, without the member axis; that of the first block."""
        features, model = self._features(x, graph), self._flow_model(graph)
        operator = model.couple(model.opening(model.encode(features)))
        return dataclasses.replace(operator, weights=operator.weights[0]) if operator.batch else operator

    def check(self, graph: Graph | None = None) -> None:
        """Raise if the parameters do not belong to a network with these settings on that graph.

        Without a graph, networks around an equation are compared with those on a graph without edges; for others only
        the type of the parameters is checked.
        """
        for name, value in self.parameters.items():
            if not value.is_floating_point() or value.ndim < 1 or len(value) != 1:
                raise InvalidArgument(f"expected numbers (1, ...) for {name}, got {value.dtype} {tuple(value.shape)}")
        if graph is None and not isinstance(self.config, GreadSettings):
            return
        if isinstance(self.config, GreadSettings):
            self._check_size(self.config)
        needed = self._fresh(self._blank_graph() if graph is None else graph).parts
        if different := (set(needed) ^ set(self.parameters)) - {TRUSTED_NODES}:
            raise InvalidArgument(f"expected the parameters {', '.join(needed)}, got a difference in {min(different)}")
        for name, part in needed.items():
            if part.shape != self.parameters[name].shape:
                got = tuple(self.parameters[name].shape)
                raise InvalidArgument(f"expected {name} of shape {tuple(part.shape)}, got {got}")

    def _check_size(self, config: GreadSettings) -> None:
        """Raise for settings of a network with many more parameters than given, before memory is allocated for it.

        Some networks encode only a part of their channels.
        """
        soft = config.adjacency != "original"
        needed = config.hidden * max(self.features, self.classes, config.attention_dim * soft)
        if needed > PARTS * (there := sum(value.numel() for value in self.parameters.values())):
            raise InvalidArgument(f"expected about {needed} numbers for these settings, got {there}")

    # ------------------------------------------------------------------ files
    def save(self, folder: str | Path) -> None:
        """Write network.json and its file of tensors."""
        words = {
            "features": self.features, "classes": self.classes, "reason": self.reason,
            "model": {NAME: self.config.model, **dataclasses.asdict(self.config)},
            "class_names": list(self.class_names),
            "preparation": None if self.preparation is None else self.preparation.to_words(),
        }  # fmt: skip
        save_bundle(Path(folder) / MANIFEST, FORMAT, words, self.parameters)

    @classmethod
    def load(cls, folder: str | Path) -> Network:
        """Read and verify a network written by `save`; nothing is unpickled."""
        bundle = load_bundle(Path(folder) / MANIFEST, FORMAT, WHAT)
        try:
            model = Config.from_sections({"model": bundle.words["model"]}).model
            features, classes = (int(bundle.words[name]) for name in ("features", "classes"))
            prepared = bundle.words.get("preparation")
            network = cls(
                model, bundle.numbers, features, classes, str(bundle.words.get("reason", "")),
                tuple(map(str, bundle.words.get("class_names", ()))),
                None if prepared is None else Preparation.from_words(prepared),
            )  # fmt: skip
            network.check()
        except (LookupError, RuntimeError, TypeError, ValueError, AttributeError, OverflowError, RdgraphError) as error:
            raise FileError(
                f"{folder} does not describe {WHAT} ({type(error).__name__}: {error}); save it again"
            ) from None
        return network
