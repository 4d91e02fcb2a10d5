"""
A fit over blocks of rows
=========================

The same fit in memory, over ten Parquet files one after the other, and over the files in two threads. The penalised
objective is the same at every iteration, although the fits over files read their rows block by block.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_digits

from ldsvm import LDSVMClassifier, RowBlocks, Serial, Threads

X, y = load_digits(return_X_y=True)
X = X / 16
model = LDSVMClassifier(
    n_basis=150, gamma=0.1, alpha=1e-3, mu_max=20.0, max_iter=12, tol=0.0, calibration=None, random_state=0
)
histories = {}
with TemporaryDirectory() as folder:
    for i, part in enumerate(np.array_split(np.arange(len(y)), 10)):
        columns = {f"pixel{d}": X[part, d] for d in range(64)} | {"digit": y[part]}
        pq.write_table(pa.table(columns), Path(folder) / f"{i}.parquet")
    histories["in memory"] = model.fit(X, y).history_
    for name, executor in (("ten files, one by one", Serial()), ("ten files, two threads", Threads(2))):
        rows = RowBlocks.parquet(f"{folder}/*.parquet", label="digit")
        histories[name] = model.fit(rows, executor=executor).history_

fig, ax = plt.subplots(layout="constrained")
for (name, history), style in zip(histories.items(), ("o-", "s--", "x:"), strict=True):
    ax.plot([line["penalised"] / len(y) for line in history], style, label=name, markersize=8, fillstyle="none")
ax.set(xlabel="iteration", ylabel="penalised objective / N", title="One fit, three executors")
ax.legend()
plt.show()
