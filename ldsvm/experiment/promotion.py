"""A retraining step by step: what is new, the challenger's data, both models on one holdout, the verdict. No MLflow."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ldsvm.baselines import lookup
from ldsvm.datasets import DataError, Split, relabel
from ldsvm.experiment import identity, record, retraining
from ldsvm.experiment.config import Config
from ldsvm.experiment.drift import Drift, Profile
from ldsvm.experiment.gate import Verdict, gate
from ldsvm.experiment.judge import Score, judge
from ldsvm.experiment.prepared import Prepared, Source, as_they_came, divided, draw_split, load_source
from ldsvm.experiment.production import ProductionConfig
from ldsvm.experiment.results import MethodFailed, Result
from ldsvm.experiment.retraining import Decision, Mark
from ldsvm.experiment.storing import loads


@dataclass(frozen=True)
class Known:
    """The champion: its pipeline from raw rows to labels, and what was registered with it."""

    pipeline: Any
    mark: Mark
    profile: Profile
    params: Mapping[str, Any]

    @classmethod
    def of(cls, pipeline: Any, facts: Mapping[str, Any]) -> Known:
        """Return the champion from its pipeline and its `facts`."""
        return cls(pipeline, Mark(**facts["mark"]), Profile(**facts["profile"]), facts["params"])


@dataclass(frozen=True)
class Look:
    """What was found before anything is trained. new: so many rows are newer than the champion's."""

    decision: Decision
    new: int
    drift: Drift | None


@dataclass(frozen=True)
class Duel:
    """Both models on one holdout. champion: None when there is none yet; only_right: see `gate`."""

    pipeline: Any
    result: Result
    champion: Score | None
    only_right: tuple[int, int]
    verdict: Verdict
    facts: dict[str, Any]

    @property
    def score(self) -> Score:
        """What the judge says of the challenger."""
        assert self.result.score is not None
        return self.result.score


def asked(config: Config) -> str:
    """Return a digest of all settings that decide about a challenger, on given rows."""
    said = config.model_dump_json(include={"seed", "problems", "split", "features", "production", "dataset", "methods"})
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def rules(config: Config) -> ProductionConfig:
    """Return the section production of a file that has one."""
    assert config.production is not None
    return config.production


def look(config: Config, champion: Known | None, last: Mapping[str, Any] | None = None) -> Look:
    """Look for new rows, compare them with the champion's training, and decide.

    last: the facts of a challenger that was refused or rolled back; the same rows and settings would give it again.
    """
    source = load_source(config)
    again = last is not None and not config.refresh and (last["mark"]["sha256"], last["asked"]) == (
        source.data.sha256, asked(config),
    )  # fmt: skip
    if champion is None:
        n = len(source.data.train)
        if again:
            return Look(
                Decision("skip", (f"{n:,} rows, on which a challenger was refused or rolled back already.",)), n, None
            )
        return Look(Decision("retrain", (f"No champion yet; {n:,} rows.",)), n, None)
    new = retraining.fresh(config, source, champion.mark)
    count, drift = int(new.sum()), None
    if again:
        return Look(
            Decision("skip", (f"{count:,} new rows, on which a challenger was refused or rolled back already.",)),
            count,
            None,
        )
    if count >= rules(config).least:
        rows, y = _rows(config, source, np.flatnonzero(new))
        drift = retraining.drift(config, champion.pipeline, champion.profile, rows, y)
    return Look(retraining.decide(rules(config), count, drift), count, drift)


def challenge(config: Config, champion: Known | None) -> tuple[Config, Prepared]:
    """Return the challenger's experiment, searching around the champion, and its prepared data."""
    source = load_source(config)
    split = _split(config, source, champion)
    method = config.methods[name := rules(config).method]
    if champion is not None:
        method = retraining.around(method, champion.params, rules(config))
    config = config.model_copy(update={"methods": {name: method}})
    return config, divided(config, source, split, config.seed)


def duel(config: Config, prepared: Prepared, champion: Known | None, settings: str = "", number: int = 1) -> Duel:
    """Score champion and challenger on the same holdout and apply the gate.

    config: of `challenge`. settings: `asked`. number: which challenger of this champion it is.


    Raises MethodFailed when the challenger could not be trained, and DataError when the data changed meanwhile.
    """
    source = load_source(config)
    split = _split(config, source, champion)
    if split.digest() != prepared.split:
        raise DataError(f"{config.dataset.name} was changed while the challenger was trained; start again.")
    result = _result(config, prepared)
    assert result.score is not None
    pipeline = _challenger(config, prepared)
    facts = {
        "mark": asdict(retraining.mark(config, source)),
        "params": result.params,
        "profile": asdict(_profile(config, source, split, pipeline)),
        "asked": settings,
    }
    if champion is None:
        return Duel(pipeline, result, None, (0, 0), gate(rules(config).gate, result.score), facts)
    rows, y = _rows(config, source, split.test)
    ours, theirs = pipeline.predict(rows) == y, champion.pipeline.predict(rows) == y
    only = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    score = _score(config, champion.pipeline, rows, y)
    return Duel(pipeline, result, score, only, gate(rules(config).gate, result.score, score, only, number), facts)


def _split(config: Config, source: Source, champion: Known | None) -> Split:
    if champion is None:
        return draw_split(config, source, config.seed)
    return retraining.divide(config, source, retraining.fresh(config, source, champion.mark))


def _result(config: Config, prepared: Prepared) -> Result:
    problem, name = config.problems[0], rules(config).method
    outcome = record.outcome(config, [prepared], problem, name)
    if outcome is None or outcome.failure:
        raise MethodFailed(f"{name} on {problem.name}: {outcome.failure if outcome else 'no result'}")
    return outcome.first


def _challenger(config: Config, prepared: Prepared) -> Any:
    place = identity.place(config, prepared, config.problems[0], rules(config).method)
    return prepared.whole(loads((place / record.MODEL).read_bytes()))


def _profile(config: Config, source: Source, split: Split, pipeline: Any) -> Profile:
    return retraining.described(pipeline, *_rows(config, source, split.train))


def _score(config: Config, pipeline: Any, inputs: Any, y: Any) -> Score:
    """Let the judge score the champion as it did the challenger: the model alone, on rows after its feature steps."""
    steps = getattr(pipeline, "steps", None)
    model, X = (pipeline, inputs) if steps is None else (steps[-1][1], pipeline[:-1].transform(inputs))
    method = lookup(config.methods[rules(config).method].estimator)
    return judge(model, method, X, y, repeats=config.judge.repeats, n_jobs=config.n_jobs)


def _rows(config: Config, source: Source, places: Any) -> tuple[Any, Any]:
    """Return inputs as they came, and labels (n,) as the experiment's first problem reads them."""
    rows = source.data.train.take(places)
    y = relabel(rows.y, config.problems[0].labels)
    return as_they_came(rows.X, rows.columns), y.astype(str) if y.dtype == object else y
