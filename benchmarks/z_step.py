"""The exact Z-step over all rows at once, against one OSQP workspace per class and one qpsolvers call per row.

Every route starts cold on the same QPs, one thread each; qpsolvers is timed on 500 rows and scaled.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Bar, Result, clock, mnist, progress
from benchmarks.iterates import collect
from ldsvm.solvers.box_qp import residual, solve
from ldsvm.solvers.qp_routes import solve_any, solve_osqp

ROWS = 500
per_row = partial(solve_any, solver="osqp")


def run(quick: bool) -> Result:
    N, repeats = (80, 1) if quick else (10_000, 3)
    X, y = (a[:N] for a in mnist(0, quick).train)
    N = len(y)
    result = Result(settings={"N": N, "threads": 1, "C": 0.1, "n_basis": 1000, "seed": 0, "repeats": repeats})
    ratios: dict[str, list[float]] = {"osqp": [], "qpsolvers": []}
    worst = 0.0
    for L in (10, 5):
        iterates = collect(X, y, L=L, C=0.1, iterations=5)
        for number in (0, 4):
            progress(f"z_step: L = {L}, iteration {number + 1}")
            problem = iterates[number].z_problem
            part: Any = tuple(a[:ROWS] if a.shape[0] == N else a for a in problem)
            seconds = {
                "batched": clock(partial(solve, *problem), 5),
                "osqp": clock(partial(solve_osqp, *problem), repeats, warm=False),
                "qpsolvers": clock(partial(per_row, *part), repeats, warm=False) * N / ROWS,
            }
            answers = {
                "batched": (solve(*problem), problem),
                "osqp": (solve_osqp(*problem), problem),
                "qpsolvers": (per_row(*part), part),
            }
            reference = answers["batched"][0][0]
            for route, ((Z, alpha), data) in answers.items():
                _, V, b, Y, upper = data
                kkt = float(residual(Z, alpha, V, b, Y, upper).max())
                ratio = seconds[route] / seconds["batched"]
                result.rows.append(
                    {
                        "L": L, "iteration": number + 1, "route": route, "seconds": seconds[route],
                        "times batched": ratio, "KKT residual": kkt,
                        "|Z - batched|": float(np.abs(Z - reference[: len(Z)]).max()),
                    }
                )  # fmt: skip
                if route == "batched":
                    worst = max(worst, kkt)
                else:
                    ratios[route].append(ratio)
    result.bars = [
        Bar("times_faster_than_osqp_workspace", min(ratios["osqp"]), ">=", 10),
        Bar("times_faster_than_qpsolvers_per_sample", min(ratios["qpsolvers"]), ">=", 100),
        Bar("worst_kkt_residual", worst, "<=", 1e-8),
    ]
    return result


def quoted(result: Result) -> list[tuple[str, str]]:
    ratio, kkt = result.bar("times_faster_than_osqp_workspace"), result.bar("worst_kkt_residual")
    return [
        (
            "the QPs of the Z-step, all samples, against one OSQP workspace per class",
            f"at least {ratio:.0f} times faster, KKT residual at most {kkt:.0e}",
        )
    ]
