"""
The three steps of an iteration
===============================

Three classes in a latent plane. At the start, each class is at a corner of a simplex. The F-step regresses these
coordinates on the inputs. The g-step fits the SVMs, whose boundaries are the lines. The Z-step moves a sample from F(x)
towards the right side of the lines, if this lowers the hinge loss by more than the penalty for moving it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier
from ldsvm.solvers.box_qp import solve

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
corners = np.array([[np.cos(a), np.sin(a)] for a in np.pi / 2 + 2 * np.pi * np.arange(3) / 3])
model = LDSVMClassifier(n_basis=40, gamma=0.03, alpha=0.5, C=0.3, init=corners[y], calibration=None, random_state=0)


def lines(ax):
    span = np.linspace(-3, 3, 2)
    for k, (v, b) in enumerate(zip(model.latent_coef_, model.intercept_, strict=True)):
        ax.plot(span, -(b + v[0] * span) / v[1], color=f"C{k}")


model.fit(X, y)
Z = model.transform(X)
V, b = model.latent_coef_, model.intercept_
signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
moved, _ = solve(Z, V, b, signs, np.full(signs.shape, 2 * model.C / model.mu))  # the exact Z-step
pictures = [
    "start: corners of a simplex",
    "F-step: ridge regression on the inputs",
    "g-step: linear SVMs",
    "Z-step: towards the right side",
]

fig, axes = plt.subplots(1, 4, figsize=(14, 3.8), sharex=True, sharey=True, layout="constrained")
for i, (ax, title) in enumerate(zip(axes, pictures, strict=True)):
    shown = corners[y] if i == 0 else Z
    ax.scatter(*shown.T, c=[f"C{k}" for k in y], s=10)
    if i >= 2:
        lines(ax)
    if i == 3:
        ax.quiver(*Z.T, *(moved - Z).T, color="0.4", width=0.004, angles="xy", scale_units="xy", scale=1)
    ax.set(title=title, xlim=(-2.2, 2.2), ylim=(-1.9, 2.2), aspect="equal")
plt.show()
