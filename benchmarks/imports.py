"""`import ldsvm` against `import sklearn.svm`, each in fresh processes with warm files."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.harness import Bar, Result, clock


def run(quick: bool) -> Result:
    repeats = 1 if quick else 11

    def cost(statement: str) -> float:
        return clock(lambda: subprocess.run([sys.executable, "-c", statement], check=True), repeats, warm=not quick)

    nothing = cost("pass")
    seconds = {name: cost(f"import {name}") - nothing for name in ("ldsvm", "sklearn.svm")}
    ratio = seconds["ldsvm"] / seconds["sklearn.svm"]
    rows = [{"statement": f"import {name}", "seconds": value} for name, value in seconds.items()]
    return Result(rows, [Bar("import_ratio", ratio, "<=", 1.3)], {"repeats": repeats, "interpreter_start": nothing})


def quoted(result: Result) -> list[tuple[str, str]]:
    return [("`import ldsvm` against `import sklearn.svm`", f"{result.bar('import_ratio'):.2f} of the time")]
