"""Claims: what was expected, whether it holds here, and what was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.config.schema import ClaimConfig, Config
from ldsvm.report import tables

FILE = "claims.json"
ABSENT = "not measured"
Series = Sequence[tuple[str, Sequence[Outcome]]]  # what the experiment varies, in words, and the outcomes for it


@dataclass(frozen=True)
class Claim:
    """Something that was expected, by the paper or by theory, whether it holds here, and what was measured."""

    text: str
    holds: bool
    measured: str


def judge_claims(config: Config, series: Series) -> list[Claim]:
    """Return the claims of an experiment with the verdict on each. series: one entry when nothing is varied."""
    return [_verdict(config, claim, series) for claim in config.claims]


def _verdict(config: Config, claim: ClaimConfig, series: Series) -> Claim:
    found = [
        _check_errors(config, claim, {o.method: 100 * o.error for o in outcomes if o.judged}) for _, outcomes in series
    ]
    places = [words for words, _ in series]
    good = sum(holds for holds, _ in found)
    if len(found) == 1:
        return Claim(claim.text, found[0][0], found[0][1])
    wrong = [f"{place}: {text}" for place, (holds, text) in zip(places, found, strict=True) if not holds]
    measured = f"at {good} of {len(found)} values" + (f"; not at {'; '.join(wrong)}" if wrong else "")
    return Claim(claim.text, good >= claim.share * len(found) - 1e-9, measured)


def _check_errors(config: Config, claim: ClaimConfig, errors: dict[str, float]) -> tuple[bool, str]:
    """Return whether a claim holds for these test errors, in per cent, and the errors that decide, in words."""
    rivals = config.others if claim.than == "others" else claim.than
    if missing := [name for name in [*claim.of, *rivals] if name not in errors]:
        return False, f"{ABSENT}, {', '.join(missing)} without a result"
    worst = max(claim.of, key=errors.__getitem__)
    words, holds = [f"{worst} {errors[worst]:.2f} %"], True
    if rivals:
        best = min(rivals, key=errors.__getitem__)
        holds = errors[worst] < errors[best]
        words.append(f"{best} {errors[best]:.2f} %")
    if claim.at_most is not None:
        holds = holds and errors[worst] <= claim.at_most
        words.append(f"bar {claim.at_most:g} %")
    return holds, ", ".join(words)


def save(folder: Path, claims: Mapping[str, Sequence[Claim]]) -> Path:
    """Write claims by the name of the problem, for pages over several experiments, and return the file."""
    text = json.dumps({name: [asdict(claim) for claim in those] for name, those in claims.items()}, indent=1)
    file = folder / FILE
    file.write_text(text, encoding="utf-8")
    return file


def read(folder: Path) -> dict[str, list[Claim]]:
    """Read what `save` wrote; empty when there is no file."""
    if not (folder / FILE).is_file():
        return {}
    found = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return {name: [Claim(**claim) for claim in those] for name, those in found.items()}


def table(claims: Sequence[Claim]) -> tuple[list[str], tables.Rows]:
    """Return the header and one row for each claim."""
    return ["claim", "holds here", "measured"], [[claim.text, _word(claim), claim.measured] for claim in claims]


def _word(claim: Claim) -> str:
    if claim.measured.startswith(ABSENT):
        return "–"
    return "yes" if claim.holds else "NO"
