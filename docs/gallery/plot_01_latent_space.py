"""
Ten classes in two dimensions, beside PCA, LDA and UMAP
=======================================================

Four maps of ten digits to the plane, fitted to the same training rows. The figure shows test rows, and the error of a
nearest-neighbour classifier on them. UMAP and LDA use the labels too. ``ClassPlane`` gives each class a corner of a
polygon, and places a row by the scores of a classifier with nine latent dimensions. The closer a row is to a corner,
the clearer its class; a row between two corners may be of either class. ``ClassPlane`` places a new row in
microseconds, while UMAP takes milliseconds.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from ldsvm import ClassPlane, LDSVMClassifier

warnings.simplefilter("ignore")  # of UMAP, about threads and its own dependencies
from umap import UMAP  # noqa: E402

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.4, stratify=y, random_state=0)
maps = {
    "ClassPlane": ClassPlane(LDSVMClassifier(map="adaptive_rbf", random_state=0), sharpness=2),
    "PCA": PCA(2),
    "LDA": LinearDiscriminantAnalysis(n_components=2),
    "UMAP with labels": UMAP(random_state=0),
}

fig, axes = plt.subplots(2, 2, figsize=(9, 9), layout="constrained")
for ax, (name, fitted) in zip(axes.flat, maps.items(), strict=True):
    Z_train = fitted.fit(X_train, y_train).transform(X_train)
    Z_test = fitted.transform(X_test)
    error = 100 - 100 * KNeighborsClassifier(1).fit(Z_train, y_train).score(Z_test, y_test)
    ax.scatter(*Z_test.T, c=y_test, cmap="tab10", s=8)
    for digit in range(10):
        ax.annotate(
            str(digit), Z_test[y_test == digit].mean(axis=0), fontsize=14, weight="bold", ha="center", va="center"
        )
    ax.set(title=f"{name}: nearest neighbour {error:.1f} % error", xticks=[], yticks=[])
plt.show()
