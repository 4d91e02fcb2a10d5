"""
What each parameter does
========================

In each row one parameter goes from small to large (``alpha`` from large to small), while all others have moderate
values. The first four rows have two classes in the plane, the last one six.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.inspection import DecisionBoundaryDisplay

from ldsvm import LDSVMClassifier

warnings.simplefilter("ignore", ConvergenceWarning)
moons, blobs = make_moons(200, noise=0.25, random_state=1), make_blobs(300, centers=6, random_state=3)
moderate = {"n_basis": 40, "gamma": 2.0, "alpha": 1e-2, "C": 1.0}
rows = {
    "n_basis": (moons, [2, 5, 20, 100]),
    "gamma": (moons, [0.05, 0.5, 5.0, 100.0]),
    "alpha": (moons, [100.0, 1.0, 1e-2, 1e-5]),
    "C": (moons, [1e-3, 0.1, 10.0, 1000.0]),
    "n_components": (blobs, [1, 2, 3, 5]),
}

fig, axes = plt.subplots(len(rows), 4, figsize=(11, 13.5), layout="constrained")
for line, (name, ((X, y), values)) in zip(axes, rows.items(), strict=True):
    for ax, value in zip(line, values, strict=True):
        chosen = moderate | ({"gamma": 0.1} if name == "n_components" else {}) | {name: value}
        model = LDSVMClassifier(**chosen, max_iter=30, random_state=0).fit(X, y)
        colours = "coolwarm" if len(set(y)) == 2 else "Set2"
        DecisionBoundaryDisplay.from_estimator(model, X, ax=ax, alpha=0.35, cmap=colours, response_method="predict")
        ax.scatter(*X.T, c=y, cmap=colours, s=6, edgecolors="0.3", linewidths=0.3)
        ax.set(title=f"{name} = {value:g}", xticks=[], yticks=[], xlabel="", ylabel="")
plt.show()
