"""
The dial: error against size
============================

``ldsvm.size_path`` fits models of several sizes. For the same error, learned centres need far fewer basis functions
than k-means centres. For a Gaussian SVM you cannot choose the size: it has as many support vectors as it needs.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import ldsvm

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.4, stratify=y, random_state=0)
X_fit, X_valid, y_fit, y_valid = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
sizes = [10, 20, 40, 80, 160]
models = {
    "learned centres": ldsvm.LDSVMClassifier(
        map="adaptive_rbf", gamma=0.05, alpha=1e-2, center_steps=1500, random_state=0
    ),
    "k-means centres": ldsvm.LDSVMClassifier(random_state=0),
}

fig, ax = plt.subplots(layout="constrained")
for (label, model), mark in zip(models.items(), "os", strict=True):
    path = ldsvm.size_path(model, X_fit, y_fit, sizes, eval_set=(X_valid, y_valid))
    ax.plot([m.n_basis_ for m in path], [100 - 100 * m.score(X_test, y_test) for m in path], mark + "-", label=label)
svm = SVC(C=10, gamma=0.2).fit(X_fit, y_fit)
ax.plot(len(svm.support_), 100 - 100 * svm.score(X_test, y_test), "D", label="Gaussian SVM")
ax.set(
    xscale="log", yscale="log", xlabel="basis functions", ylabel="test error (%)", title="Digits: error against size"
)
ax.legend()
plt.show()
