"""
Accuracy against homophily
==========================

On block models of 200 nodes: a network that averages neighbours (GCN), one that does not see the graph (MLP),
blurring-sharpening, and label propagation, which has nothing to learn. All splits of a network are trained as one
program.
"""

import numpy as np
from matplotlib.figure import Figure

from gread import Config, make_trials, train
from gread.datasets import csbm
from gread.models.label_propagation import accuracies, best_propagation

levels, splits = (0.1, 0.5, 0.9), range(2)
networks = {
    "GCN": Config.of("gcn", hidden=16, epochs=30, learning_rate=0.03),
    "MLP": Config.of("mlp", hidden=16, epochs=30, learning_rate=0.03),
    "GREAD-BS": Config().updated(
        {
            "reaction": "BS",
            "beta": "channel",
            "time": 2.0,
            "adjacency": "original",
            "hidden": 16,
            "epochs": 30,
            "method": "exact",
            "learning_rate": 0.03,
        }
    ),
}
means = {name: [] for name in (*networks, "label propagation")}
for level in levels:
    data = csbm(0, n=200, homophily=level, degree=10.0).stratified(2)
    for name, config in networks.items():
        means[name].append(train(data, make_trials(config, splits=splits), device="cpu").mean)
    found = [accuracies(data, split, best_propagation(data, split=split).scores).test for split in splits]
    means["label propagation"].append(100 * np.mean(found))

figure = Figure(figsize=(6.5, 4.2), layout="constrained")
panel = figure.subplots()
for (name, values), marker in zip(means.items(), "os^D", strict=True):
    panel.plot(levels, values, marker=marker, label=name)
panel.set(xlabel="homophily: share of edges within a class", ylabel="test accuracy in %, mean of two splits")
panel.legend()
