"""The page of the study of speed-ups: what was claimed, what holds, and the figure."""

from __future__ import annotations

from statistics import median

from ldsvm.report.html import Picture
from ldsvm.report.plotting.speedup import Line, speedups
from ldsvm.report.studies import speedup_tables as tables
from ldsvm.report.studies.base import Claim, Found, Page
from ldsvm.report.studies.speedup import Params
from ldsvm.report.studies.speedup_tables import (
    PAPER_PROCESSORS,
    PAPER_SHARE,
    PAPER_SPEEDUP,
    PARTS,
    Fits,
    Searches,
    spread,
)

BAR = 1.5  # on two, of a whole fit and of a search: ours
ALONE = 0.9  # of a processor that one thread has on an idle machine
ALIKE = 1e-3  # relative difference of objectives that sums in another order may make


def show(params: Params, found: Found) -> Page:
    """Make the page: speed-ups beside the ideal, seconds, Amdahl's share, and what can be said of the paper's."""
    runs, processors = found.facts["runs"], int(found.facts["processors"])
    fits, searches = Fits(runs), Searches(runs)
    most = max(n for n in fits.threads if n <= processors)
    return Page(
        lede=_lede(fits, most, processors),
        claims=[*_step_claims(fits, most), *_fit_claims(fits), *_search_claims(searches, params)],
        tables=[
            tables.fit_seconds(fits, processors),
            tables.fit_speedups(fits),
            tables.beside_paper(fits, most),
            tables.searches_table(searches),
            tables.trials_table(searches),
        ],
        pictures=[_picture(fits, searches, processors)],
        protocol=_protocol(params, processors),
    )


def _lede(fits: Fits, most: int, processors: int) -> str:
    unchecked = f"The paper's {PAPER_SPEEDUP:g} times on {PAPER_PROCESSORS} processors cannot be checked here."
    end = "" if most >= PAPER_PROCESSORS else f" {unchecked}"
    if most == 1:
        return f"Only one thread was timed, so there is no speed-up to report.{end}"
    busy = median(run["busy"] for run in fits.runs[1])
    if busy < ALONE:
        end += f" One thread got {busy:.0%} of a processor: the machine was busy, so the times are unreliable."
    steps = ", ".join(f"{PARTS[part]} {fits.speedup(most, part):.2f}" for part in "zgf")
    whole = f"{fits.speedup(most, 'whole'):.2f} times as fast on {most} threads as on one ({steps})"
    return f"A whole fit is {whole}; this machine has {processors} processors.{end}"


def _step_claims(fits: Fits, most: int) -> list[Claim]:
    """Whether the steps that the paper runs in parallel gain as it says, on up to as many threads as processors."""
    claims = []
    for part in "zg" if most > 1 else "":
        S = fits.speedup(most, part)
        text = (
            f"The {PARTS[part]}, which the paper runs in parallel, reach at least two thirds of the ideal speed-up "
            f"(paper: {PAPER_SPEEDUP:g} times on {PAPER_PROCESSORS} processors)."
        )
        claims.append(
            Claim(text, S / most >= PAPER_SHARE, f"{S:.2f} times on {most} threads, {S / most:.0%} of the ideal.")
        )
    return claims


def _fit_claims(fits: Fits) -> list[Claim]:
    claims = []
    if 2 in fits.threads:
        S = fits.ratios(2, "whole")
        text = f"A whole fit is at least {BAR:g} times as fast on two threads (our expectation)."
        claims.append(Claim(text, median(S) >= BAR, f"{median(S):.2f} times ({spread(S)} over repeats)."))
    nested = [run["nested"] for runs in fits.runs.values() for run in runs]
    apart = (max(nested) - min(nested)) / min(nested)
    text = f"Threads do not change the result: nested objectives agree to {ALIKE:.1%} (our expectation)."
    return [*claims, Claim(text, apart <= ALIKE, f"They differ by at most {apart:.1e} of their size.")]


def _search_claims(searches: Searches, params: Params) -> list[Claim]:
    claims = [_same_trials(searches, params)]
    for kind, n, name in (("ray", 2, "with two processes"), ("cluster", 2, "on a cluster of two nodes")):
        if (kind, n) in searches.runs:
            S = searches.ratios(kind, n)
            text = f"A search is at least {BAR:g} times as fast {name} as with one process (our expectation)."
            claims.append(Claim(text, median(S) >= BAR, f"{median(S):.2f} times ({spread(S)} over repeats)."))
    if params.nodes:
        used = [run["nodes"] for run in searches.runs["cluster", params.nodes]]
        text = f"All nodes of a cluster of {params.nodes} take part in a search (our expectation)."
        claims.append(Claim(text, min(used) == params.nodes, f"In each repeat {min(used)} to {max(used)} did."))
    return claims


def _same_trials(searches: Searches, params: Params) -> Claim:
    runs = [run for found in searches.runs.values() for run in found]
    outcomes = len({run["digest"] for run in runs})
    failed = sum(trial["failure"] is not None for run in runs for trial in run["trials"])
    return Claim(
        "A search finds bit-identical trials without Ray, with any number of processes and on a cluster "
        "(our expectation).",
        outcomes == 1 and not failed,
        f"{len(runs)} searches of {len(params.search_gamma)} trials had "
        f"{tables.count(outcomes, 'outcome', 'outcomes')}; {failed} trials failed.",
    )


def _picture(fits: Fits, searches: Searches, processors: int) -> Picture:
    parts = [
        Line(name, [(n, fits.ratios(n, part)) for n in fits.threads]) for part, name in PARTS.items() if part != "rest"
    ]
    found = {
        name: [(n, searches.ratios(kind, n)) for kind, n in searches.runs if kind == wanted]
        for wanted, name in (("ray", "processes"), ("cluster", "nodes"))
    }
    ways = [Line(name, points) for name, points in found.items() if points]
    ends = [(line.name, *line.points[-1]) for line in [*parts, *ways]]
    text = "; ".join(f"{name} {median(values):.2f} at {n}" for name, n, values in ends)
    return Picture(
        "speedup",
        speedups(parts, ways, processors),
        f"Two panels of speed-ups over one thread or process, with the ideal line: {text}.",
        "Speed-up of the parts of a fit against threads, and of a search against processes or nodes of Ray. Bars: "
        f"smallest and largest of the repeats. Dashed: ideal. The machine has {processors} processors.",
        wide=True,
    )


def _protocol(params: Params, processors: int) -> str:
    return (
        f"{params.dataset}: {params.n_train:,} training rows, {params.n_basis:,} basis functions, "
        f"{params.n_components} latent dimensions, gamma {params.gamma:g}, C {params.C:g} (as validation chose in the "
        f"contest of methods); every fit does {params.iterations} iterations from the simplex. Each measurement runs "
        "in its own process, with BLAS, OpenMP and our kernels limited to its threads, after a small fit to warm up. "
        f"{params.repeats} repeats, all settings in turn and every other time in reverse order, so that drift affects "
        f"all alike. The machine has {processors} processors; the nodes of the cluster are processes on it, "
        f"with one processor each. The search fits {len(params.search_gamma)} values of gamma on "
        f"{params.search_train:,} rows with {params.search_basis:,} basis functions, each on one thread."
    )
