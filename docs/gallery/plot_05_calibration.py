"""
Are the probabilities right?
============================

Of all test rows to which a model gives a class with probability 70 %, about 70 % should be of that class.
``predict_proba`` needs no second fit, while scikit-learn's ``CalibratedClassifierCV`` fits the model five times. The
labels here are noisy, so no answer is certain. scikit-learn's five fits have the lower log loss, and take about five
times as long.
"""

import time

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from ldsvm import LDSVMClassifier

X, y = make_classification(6000, 10, n_informative=6, flip_y=0.2, class_sep=0.8, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.6, random_state=0)
models = {
    "ldsvm": LDSVMClassifier(random_state=0),
    "five more fits, sigmoid": CalibratedClassifierCV(
        LDSVMClassifier(calibration=None, random_state=0), method="sigmoid"
    ),
}
LDSVMClassifier(random_state=0).fit(X_train, y_train)  # compiles the kernels, before the clock runs

fig, ax = plt.subplots(figsize=(6, 6), layout="constrained")
for name, model in models.items():
    start = time.perf_counter()
    model.fit(X_train, y_train)
    seconds = time.perf_counter() - start
    P = model.predict_proba(X_test)
    label = f"{name}: log loss {log_loss(y_test, P):.3f}, {seconds:.1f} s"
    CalibrationDisplay.from_predictions(y_test, P[:, 1], n_bins=10, strategy="quantile", ax=ax, name=label)
ax.set(title="Calibration on test rows", xlabel="probability", ylabel="share of the class")
ax.legend(loc="upper left")
plt.show()
