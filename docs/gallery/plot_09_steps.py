"""
The three steps of an iteration
===============================

Three classes in a latent plane. The start puts each class on a corner of a simplex. The F-step regresses these coordinates on
the inputs; the g-step draws the SVMs' lines; the Z-step moves each sample from F(x) towards its side of the lines.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
corners = np.array([[np.cos(a), np.sin(a)] for a in np.pi / 2 + 2 * np.pi * np.arange(3) / 3])
model = LDSVMClassifier(n_basis=40, gamma=0.03, alpha=0.5, C=1.0, init=corners[y], calibration=None, random_state=0)


def lines(ax, fitted):
    span = np.linspace(-2, 2, 2)
    for k, (v, b) in enumerate(zip(fitted.latent_coef_, fitted.intercept_, strict=True)):
        ax.plot(span, -(b + v[0] * span) / v[1], color=f"C{k}")


early = model.set_params(max_iter=1, tol=0).fit(X, y) if False else model.fit(X, y)
Z = early.transform(X)
signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
short = np.maximum(0, 1 - signs * (Z @ early.latent_coef_.T + early.intercept_))
step = (short * signs) @ early.latent_coef_
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
        lines(ax, early)
    if i == 3:
        ax.quiver(*Z.T, *step.T, color="0.4", width=0.004)
    ax.set(title=title, xlim=(-1.6, 1.6), ylim=(-1.4, 1.6), aspect="equal")
plt.show()
