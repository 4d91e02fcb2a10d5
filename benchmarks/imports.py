"""The import of our classifier against `import sklearn.svm`, each in fresh processes with warm files."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.harness import Bar, Result, clock

OURS, THEIRS = "from ldsvm import LDSVMClassifier", "import sklearn.svm"


def run(quick: bool) -> Result:
    repeats = 1 if quick else 11

    def cost(statement: str) -> float:
        return clock(lambda: subprocess.run([sys.executable, "-c", statement], check=True), repeats, warm=not quick)

    nothing = cost("pass")
    seconds = {statement: cost(statement) - nothing for statement in (OURS, THEIRS)}
    ratio = seconds[OURS] / seconds[THEIRS]
    rows = [{"statement": statement, "seconds": value} for statement, value in seconds.items()]
    return Result(rows, [Bar("import_ratio", ratio, "<=", 1.3)], {"repeats": repeats, "interpreter_start": nothing})


def quoted(result: Result) -> list[tuple[str, str]]:
    return [(f"`{OURS}` against `{THEIRS}`", f"{result.bar('import_ratio'):.2f} of the time")]
