"""
What is confused with what
==========================

The confusion matrix of test rows, and the wrong answers with the highest probabilities.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

from ldsvm import LDSVMClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0)
model = LDSVMClassifier(n_basis=100, random_state=0).fit(X_train, y_train)
said, sure = model.predict(X_test), model.predict_proba(X_test).max(axis=1)

fig = plt.figure(figsize=(11, 5.5), layout="constrained")
left, right = fig.subfigures(1, 2)
ax = left.subplots()
ConfusionMatrixDisplay.from_predictions(y_test, said, ax=ax, cmap="Blues", colorbar=False)
ax.set_title(f"{np.sum(said != y_test)} of {len(y_test)} test digits are wrong")
wrong = np.flatnonzero(said != y_test)
wrong = wrong[np.argsort(-sure[wrong])][:12]
for ax in (cells := right.subplots(3, 4)).flat:
    ax.axis("off")
for ax, i in zip(cells.flat, wrong, strict=False):
    ax.imshow(X_test[i].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{y_test[i]}, said {said[i]} ({100 * sure[i]:.0f} %)", fontsize=9)
plt.show()
