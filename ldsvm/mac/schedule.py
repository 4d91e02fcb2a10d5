"""The penalty mu: it grows when the alternation at fixed mu has converged (section "Summary and practicalities")."""

from __future__ import annotations


def next_mu(mu: float, factor: float, tol: float, before: float | None, after: float) -> float:
    """mu times ``factor`` when the penalised objective fell by less than ``tol`` relatively, else mu.

    ``before`` is None on the first iteration at this mu.

    Examples
    --------
    >>> next_mu(2.0, 1.5, 1e-3, before=1.0, after=0.9999)
    3.0
    >>> next_mu(2.0, 1.5, 1e-3, before=1.0, after=0.9)
    2.0
    """
    converged = before is not None and before - after <= tol * abs(before)
    return mu * factor if converged else mu
