"""
Which columns the model looks at
================================

``feature_importances_`` is the mean squared slope of the scores along each input, times the variance of the input. On
the right is the accuracy that is lost on test rows when a column is permuted. An input that others can replace may have
a large share on the left, and yet cost no accuracy when it is permuted.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = make_pipeline(StandardScaler(), LDSVMClassifier(random_state=0)).fit(X_train, y_train)
shares = model[-1].feature_importances_
cost = permutation_importance(model, X_test, y_test, n_repeats=20, random_state=0).importances_mean
order = np.argsort(shares)[-12:]

fig, (left, right) = plt.subplots(1, 2, sharey=True, figsize=(9, 5), layout="constrained")
left.barh(X.columns[order], 100 * shares[order])
left.set(xlabel="share of the slopes (%)", title="feature_importances_")
right.barh(X.columns[order], 100 * cost[order], color="tab:orange")
right.set(xlabel="accuracy lost (points)", title="permutation, test rows")
plt.show()
