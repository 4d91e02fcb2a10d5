"""
Decision regions for more and more basis functions
==================================================

M basis functions bend the boundary between two classes. A few are enough for two moons; two spirals need more. Crosses
mark the centres, and each title has the error on the training rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from ldsvm import LDSVMClassifier


def two_spirals(n, noise, random):
    t = np.sqrt(random.uniform(0.05, 1, n)) * 3.5 * np.pi
    arm = random.integers(0, 2, n)
    points = np.c_[t * np.cos(t + np.pi * arm), t * np.sin(t + np.pi * arm)] / 6
    return points + noise * random.normal(size=points.shape), arm


sizes = [4, 10, 40, 150]
data = {
    "moons": (make_moons(400, noise=0.15, random_state=0), 1.0),
    "spirals": (two_spirals(600, 0.04, np.random.default_rng(0)), 5.0),
}
fig, axes = plt.subplots(2, 4, figsize=(12, 6.2), layout="constrained")
for row, (name, ((X, y), gamma)) in zip(axes, data.items(), strict=True):
    for ax, M in zip(row, sizes, strict=True):
        model = LDSVMClassifier(n_basis=M, gamma=gamma, alpha=1e-4, C=10, random_state=0).fit(X, y)
        DecisionBoundaryDisplay.from_estimator(model, X, ax=ax, alpha=0.3, cmap="coolwarm", response_method="predict")
        ax.scatter(*X.T, c=y, cmap="coolwarm", s=5)
        ax.plot(*model.centers_.T, "kx", markersize=4)
        error = 100 - 100 * model.score(X, y)
        ax.set(title=f"{name}, M = {M}: {error:.1f} % error", xticks=[], yticks=[], xlabel="", ylabel="")
plt.show()
