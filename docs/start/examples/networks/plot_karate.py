"""
Zachary's karate club over time
===============================

Half of the thirty-four members of Zachary's karate club have a known side. A network around blurring-sharpening is
trained on them, and its state is followed over the time of the equation: the two sides drift apart.
"""

import numpy as np
from matplotlib.figure import Figure

from gread import GREADClassifier, karate

data = karate()
classifier = GREADClassifier(reaction="BS", hidden=8, epochs=60, learning_rate=0.05)
classifier.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])
print("test accuracy:", classifier.score(None, data.y, mask=data.masks.test[0]))

# %%
# The states of all members at four times, on the two directions in which the last one spreads most:

times = [share * classifier.network_.config.time for share in (0.0, 0.25, 0.5, 1.0)]
states = classifier.network_.states(data.x, data.graph, times).detach().numpy()
axes = np.linalg.svd(states[-1] - states[-1].mean(0), full_matrices=False)[2][:2].T
figure = Figure(figsize=(10, 2.8), layout="constrained")
for panel, time, state in zip(figure.subplots(1, 4, sharex=True, sharey=True), times, states, strict=True):
    points = (state - states[-1].mean(0)) @ axes
    for side, colour in enumerate(("#0072B2", "#D55E00")):
        panel.scatter(*points[data.y == side].T, s=18, color=colour)
    panel.set(title=f"t = {time:.2f}", xticks=[], yticks=[])
