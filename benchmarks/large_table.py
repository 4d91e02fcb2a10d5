"""From `flows new` to the report on five million rows of a mixed table: memory of all processes, and the same model.

The parts: `stages` runs `new` and `pipeline` on a tenth of the rows and on all, and samples the memory that is of no
file (proportional shares of the process tree, twice a second); `csv` does so for `new` and `check` of one CSV file of
2,000,000 rows; `retrain` trains the first champion on 2,000,000 rows of a Parquet folder, adds 500,000 and retrains;
`same` fits the first 200,000 rows in memory and again from mapped files by blocks. The files take some 7 GB of the
folder of temporary files. On Linux only.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.customers import write, write_csv
from benchmarks.harness import ROOT, Bar, Result, progress
from ldsvm.datasets import large
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.prepared import prepare
from ldsvm.experiment.search.trial import Job, fit_point, training_data
from ldsvm.memory import GIB

ROWS, CSV_ROWS, RETRAINED, NEW, FIRST, SECONDS = 5_000_000, 2_000_000, 2_000_000, 500_000, 200_000, 0.5
# Every iteration takes the same memory. The file that `new` writes asks for 20.
SHORT = {"ours": "methods.ours.params.max_iter=3", "linear": "methods.linear.params.max_iter=3"}
PARTS = ("stages", "csv", "retrain", "same")


def run(quick: bool, parts: Collection[str] = PARTS) -> Result:
    rows, csv_rows, first = (200_000, 50_000, 5_000) if quick else (ROWS, CSV_ROWS, FIRST)
    retrained, new = (20_000, 5_000) if quick else (RETRAINED, NEW)
    result = Result(
        settings={
            "rows": rows,
            "rows of the CSV file": csv_rows,
            "rows of the first training": retrained,
            "new rows": new,
            "first rows": first,
            "columns": 30,
            "seconds between samples": SECONDS,
            "overrides": SHORT,
        }
    )
    sizes = ((rows,), (csv_rows,), (retrained, new), (first,))
    functions: tuple[Callable[..., None], ...] = (stages, csv, retrain, same)
    for name, part, size in zip(PARTS, functions, sizes, strict=True):
        if name in parts:
            with TemporaryDirectory() as folder:
                part(result, Path(folder), *size)
    keys = list(dict.fromkeys(key for row in result.rows for key in row))
    result.rows = [{key: row.get(key, "") for key in keys} for row in result.rows]
    return result


def stages(result: Result, place: Path, rows: int) -> None:
    """Peaks of `new` and of `pipeline` on a tenth of the rows, and on all."""
    peaks = [max(_measured(result, "", data, n, "pipeline")) for data, n in _written(place, rows, "customers", write)]
    _compare(result, peaks, "peak of all processes, GiB", "peak over that of a tenth of the rows")


def csv(result: Result, place: Path, rows: int) -> None:
    """Peaks of `new`, and of `check`, which prepares the data, on a CSV file of a tenth of the rows, and of all."""
    written = _written(place, rows, "customers.csv", write_csv)
    peaks = [max(_measured(result, " of a CSV file", data, n, "check")) for data, n in written]
    _compare(result, peaks, "CSV: peak of all processes, GiB", "CSV: peak over that of a tenth of the rows")


def retrain(result: Result, place: Path, rows: int, new: int) -> None:
    """Peaks of `new`, of the first training for production, and of the retraining that new rows call for."""
    data = place / "customers"
    write(data, rows)
    peaks = _measured(result, " for production", data, rows, "retrain")
    write(data, new, seed=1)
    peaks.append(_step(result, f"retrain, {rows + new:,} rows for production", "retrain", _words(data, "retrain")))
    result.bars.append(Bar("retrain: peak of all processes, GiB", max(peaks), "<=", 3.0))


def _written(place: Path, rows: int, name: str, write: Callable[[Path, int], None]) -> Iterator[tuple[Path, int]]:
    """Write a tenth of the rows, then all, and yield each file as soon as it is there."""
    for n in (rows // 10, rows):
        data = place / str(n) / name
        write(data, n)
        yield data, n


def _measured(result: Result, about: str, data: Path, rows: int, then: str) -> list[float]:
    """Return the peaks, in GiB, of `new` and of the command that follows it."""
    new = [str(data), "--label", "left", "--output", str(data.with_suffix(".yaml"))]
    return [
        _step(result, f"new, {rows:,} rows{about}", "new", new),
        _step(result, f"{then}, {rows:,} rows{about}", then, _words(data, then)),
    ]


def _words(data: Path, command: str) -> list[str]:
    """Return what follows the command, once `new` has written its file."""
    config, folder = data.with_suffix(".yaml"), data.parent
    words = [str(config), f"paths.runs={folder / 'runs'}", f"paths.cache={folder / 'cache'}", "judge.repeats=1"]
    if command != "check":
        words += [text for method, text in SHORT.items() if f"  {method}:" in config.read_text("utf-8")]
    return words


def _step(result: Result, what: str, command: str, words: list[str]) -> float:
    """Run a command of `flows`, note its peak and its time, and return the peak in GiB."""
    progress(f"large_table: {what}")
    begun = time.perf_counter()
    peak = _peak([sys.executable, "-m", "flows", command, *words]) / GIB
    result.rows.append({"what": what, "peak GiB": peak, "seconds": time.perf_counter() - begun})
    return peak


def _compare(result: Result, peaks: list[float], peak: str, ratio: str) -> None:
    result.bars.append(Bar(peak, peaks[1], "<=", 3.0))
    result.bars.append(Bar(ratio, peaks[1] / peaks[0], "<=", 2.0))


def same(result: Result, place: Path, rows: int) -> None:
    """The model of the same rows in memory, and of mapped files by blocks.

    Features that are computed anew in every pass, and sums of another order, differ in the last digits, which the
    iterations make larger: without any memory for features that is shown, and no bar. With few rows (`--quick`) a
    plain fit has its features in float64, so it differs more from all others than they do from each other.
    """
    write(place / "customers", rows)
    memory = _model(place, large.LARGE, None)
    ways: dict[str, dict[str, Any]] = {
        "in memory, by an executor": {"kind": "serial"},
        "mapped, in small blocks": {"kind": "serial", "memory_mib": 512, "rows": rows // 20},
        "mapped, in blocks, nothing kept": {"kind": "serial", "memory_mib": 0},
    }
    apart, models = {}, []
    for way, executor in ways.items():
        models.append(_model(place, large.LARGE if "in memory" in way else 0, executor))
        apart[way] = _apart(models[-1], memory)
        result.rows.append({"what": f"{rows:,} rows {way}", "difference": apart[way]})
    result.bars += [
        Bar("difference_from_a_plain_fit_in_memory", apart["mapped, in small blocks"], "<=", 1e-6),
        Bar("largest_relative_difference_of_models", _apart(models[1], models[0]), "<=", 1e-6),
    ]


def _model(place: Path, most: int, executor: dict[str, Any] | None) -> Any:
    """Return the model of a table, of which a matrix above so many bytes lies in a file."""
    file = place / "same.yaml"
    file.write_text(
        f"name: same\ntitle: same\ndataset: {{name: same, path: {place / 'customers'}, label: left}}\n"
        "split: {kind: stratified, train: 0.6, validation: 0.2, test: 0.2}\nfeatures: [table]\n"
        "methods:\n  ours: {estimator: ldsvm, params: {n_basis: 100, gamma: 0.01, C: 1, max_iter: 10}}\n"
    )
    config = load_config(file, [f"paths.cache={place / str(most)}", f"paths.runs={place}"], root=ROOT)
    before, large.LARGE = large.LARGE, most
    try:
        (prepared,) = prepare(config)
    finally:
        large.LARGE = before
    method = type(config.methods["ours"]).model_validate({**config.methods["ours"].model_dump(), "executor": executor})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="MAC stopped at max_iter")
        job = Job(method, ({},), (0,), 0, 2)
        return fit_point(job, {}, training_data(prepared, "original")).model


def _apart(a: Any, b: Any) -> float:
    pairs = [(a.map_.W, b.map_.W), (a.latent_coef_, b.latent_coef_), (a.intercept_, b.intercept_)]
    return float(max(np.abs(p - q).max() / np.abs(q).max() for p, q in pairs))


def _peak(command: list[str]) -> float:
    """Run a command to its end and return the most bytes that it and all its children had."""
    peak = 0.0
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        # Few lines are printed, which the pipe holds.
        while process.poll() is None:
            peak = max(peak, sum(map(_own_bytes, _tree(process.pid))))
            time.sleep(SECONDS)
        assert process.stdout is not None
        said = process.stdout.read()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[2:])} ended with {process.returncode}: {said[-2000:]}")
    return peak


def _tree(pid: int) -> list[int]:
    """Return a process and all its children."""
    found = [pid]
    for one in found:
        for task in _tasks(one):
            try:
                children = (task / "children").read_text()
            except OSError:  # it has ended
                continue
            found += map(int, children.split())
    return found


def _tasks(pid: int) -> list[Path]:
    try:
        return [*Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def _own_bytes(pid: int) -> float:
    """Return a process's share of the memory that is of no file."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return 0.0
    sizes = {line.split()[0]: int(line.split()[1]) for line in lines}
    return 1024.0 * (sizes.get("Pss_Anon:", 0) + sizes.get("Pss_Shmem:", 0))


def quoted(result: Result) -> list[tuple[str, str]]:
    peak = result.bar("peak of all processes, GiB")
    ratio = result.bar("peak over that of a tenth of the rows")
    apart = result.bar("largest_relative_difference_of_models")
    text, text_ratio = (
        result.bar("CSV: peak of all processes, GiB"),
        result.bar("CSV: peak over that of a tenth of the rows"),
    )
    return [
        (
            f"a Parquet folder of {result.settings['rows']:,} rows × 30 mixed columns, from `new` to the report",
            f"at most {peak:.2f} GiB over all processes, {ratio:.2f} times that of a tenth of the rows; models of the "
            f"first {result.settings['first rows']:,} rows in memory and by blocks {apart:.0e} apart",
        ),
        (
            f"one CSV file of {result.settings['rows of the CSV file']:,} rows × 30 mixed columns, `new` and `check`",
            f"at most {text:.2f} GiB over all processes, {text_ratio:.2f} times that of a tenth of the rows",
        ),
    ]
