"""
Learned filters of a trained network
====================================

The same network is trained on graphs whose neighbours mostly agree and on graphs whose neighbours mostly differ. With a
coefficient for every channel each channel has its own filter; where neighbours differ, more of them let the high
frequencies pass.
"""

import numpy as np
from matplotlib.figure import Figure

import analysis
from gread import Config, make_trials, train
from gread.datasets import csbm

config = Config().updated(
    {
        "reaction": "BS",
        "beta": "channel",
        "adjacency": "original",
        "hidden": 8,
        "epochs": 60,
        "time": 2.0,
        "method": "exact",
    }
)
lam = np.linspace(0, 2, 101)
figure = Figure(figsize=(9, 3.4), layout="constrained")
for panel, homophily in zip(figure.subplots(1, 2, sharey=True), (0.9, 0.1), strict=True):
    data = csbm(0, n=300, homophily=homophily, degree=12.0).stratified(1)
    done = train(data, make_trials(config, splits=range(1)), device="cpu")
    values = done.network(0).coefficients()
    for beta in values["beta"].detach().tolist():
        coefficients = {"alpha": float(values["alpha"]), "beta": beta}
        panel.plot(lam, analysis.gain_at("BS", lam, T=2.0, values=coefficients), color="#0072B2", alpha=0.7)
    panel.set(title=f"homophily {homophily:g}: {done.mean:.0f} % right", xlabel="λ, eigenvalue of L")
figure.axes[0].set(ylabel="gain after T", yscale="log")
