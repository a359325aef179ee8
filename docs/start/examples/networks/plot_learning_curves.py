"""
Learning curves of four splits
==============================

Handwritten digits, 1,797 nodes of a graph of neighbours. Four networks, one for each split, are trained side by side in
one batch; every curve is what that network would do alone, to rounding.
"""

from matplotlib.figure import Figure

from gread import Config, digits, make_trials, train

config = Config().updated({"reaction": "BS", "adjacency": "original", "hidden": 16, "epochs": 25, "method": "exact"})
done = train(digits(), make_trials(config, splits=range(4)), device="cpu")
print(f"test accuracy {done.mean:.1f} % ± {done.std:.1f} over {len(done.trials)} splits")

# %%

figure = Figure(figsize=(9, 3.4), layout="constrained")
names = ("loss", "training accuracy", "validation accuracy", "test accuracy")
for panel, column in zip(figure.subplots(1, 2), (0, 2), strict=True):
    for curve in done.history[:, :, column]:
        panel.plot(range(1, len(curve) + 1), curve, color="#0072B2", alpha=0.6)
    panel.set(xlabel="epoch", ylabel=names[column])
figure.axes[0].set_yscale("log")
