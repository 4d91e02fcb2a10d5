"""
Drift over weeks, and what the gate did
=======================================

New digits arrive every week, and from the fourth week on they become dimmer and dimmer. Each week a challenger is
trained on old and new rows. It becomes the champion only if McNemar's test, on rows on which neither model was trained,
shows that it is better beyond chance. The k-th challenger of a champion is tested at the level 0.05 / (k (k + 1)), so
the probability that any of them is promoted by chance is at most 5 %.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binomtest
from sklearn.datasets import load_digits

from ldsvm import LDSVMClassifier

X, y = load_digits(return_X_y=True)
random = np.random.default_rng(0)
order = random.permutation(len(y))
X, y = X[order] / 16, y[order]
weeks, size, first = 10, 120, 500
rows, labels = X[:first], y[:first]
champion, tried = LDSVMClassifier(random_state=0).fit(rows, labels), 0

lines = {"champion": [], "challenger": [], "drift": [], "promoted": []}
for week in range(weeks):
    new = slice(first + week * size, first + (week + 1) * size)
    arrived = X[new] * (1 - 0.1 * max(0, week - 2)) + 0.02 * random.normal(size=(size, 64))
    train, judge = slice(0, size // 2), slice(size // 2, None)
    rows, labels = np.r_[rows, arrived[train]], np.r_[labels, y[new][train]]
    challenger = LDSVMClassifier(random_state=0).fit(rows, labels)
    right = [model.predict(arrived[judge]) == y[new][judge] for model in (champion, challenger)]
    lost, won = np.sum(right[0] & ~right[1]), np.sum(~right[0] & right[1])
    tried += 1
    level = 0.05 / (tried * (tried + 1))
    promote = won > lost and binomtest(won, won + lost, alternative="greater").pvalue <= level
    lines["drift"].append(np.abs(arrived.mean() - X[:first].mean()) / X[:first].std())
    for name, one in zip(("champion", "challenger"), right, strict=True):
        lines[name].append(100 - 100 * one.mean())
    if promote:
        champion, tried = challenger, 0
        lines["promoted"].append(week)

fig, (top, below) = plt.subplots(2, 1, sharex=True, figsize=(8, 6), height_ratios=(1, 2), layout="constrained")
top.plot(lines["drift"], "k.-")
top.set(ylabel="mean pixel moved\n(standard deviations)", title="Drift over weeks, and the gate")
for name, mark in (("champion", "o-"), ("challenger", "s--")):
    below.plot(lines[name], mark, label=name)
for week in lines["promoted"]:
    below.axvline(week, color="green", alpha=0.4, label="promoted" if week == lines["promoted"][0] else None)
below.set(xlabel="week", ylabel="error on the week's holdout (%)", xticks=range(weeks))
below.legend()
plt.show()
