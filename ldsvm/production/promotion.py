"""A retraining step by step: what is new, the challenger's data, both models on one holdout, the verdict. No MLflow."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from ldsvm.datasets import DataError, large, relabel
from ldsvm.experiment.compare import record
from ldsvm.experiment.compare.judge import Score, answers_for, judge
from ldsvm.experiment.compare.results import MethodFailed, Result
from ldsvm.experiment.config.production import ProductionConfig
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.feature_arrays import BLOCK, as_they_came
from ldsvm.experiment.prepared import Prepared, Source, divided, draw_split
from ldsvm.experiment.storing import loads
from ldsvm.methods import lookup
from ldsvm.metrics import Answers, answers_of
from ldsvm.production import new_rows, retraining
from ldsvm.production.drift import Drift, Profile, profile
from ldsvm.production.estimate import Estimate, Held, on_holdout
from ldsvm.production.gate import Verdict, gate
from ldsvm.production.input_counts import Inputs
from ldsvm.production.metric_rules import Both
from ldsvm.production.new_rows import Mark
from ldsvm.production.retrain_split import divide
from ldsvm.production.retraining import Decision
from ldsvm.production.schema_check import check_rows

COMPARED = 200_000  # rows whose inputs, and places in the latent space, are counted or compared


@dataclass(frozen=True)
class Champion:
    """The champion: its pipeline from raw rows to labels, and what was registered with it.

    held: of the rows that judged it, None where it has no probabilities or is of an earlier release.
    """

    pipeline: Any
    mark: Mark
    profile: Profile
    params: Mapping[str, Any]
    held: Held | None = None

    @classmethod
    def of(cls, pipeline: Any, facts: Mapping[str, Any]) -> Champion:
        """Return the champion from its pipeline and its `facts`."""
        held = Held(**facts["held"]) if "held" in facts else None
        return cls(pipeline, Mark(**facts["mark"]), Profile(**facts["profile"]), facts["params"], held)


@dataclass(frozen=True)
class Inspection:
    """What was found in the data before anything is trained.

    new: number of rows that are newer than the champion's. sha256: of the data.
    """

    decision: Decision
    new: int
    drift: Drift | None
    sha256: str


@dataclass(frozen=True, eq=False)
class Challenge:
    """What is known before the challenger is trained; from here on the data are not read again.

    config: its experiment. mark: of the rows as they were read. inputs: counts of the training rows as they came, None
    where inputs are compared after the feature steps. champion: its score; right (n,): the rows of the holdout that it
    gets right; answers: its predictions for them, if more than the error is measured; estimate: its error there as
    scoring would estimate it without labels. All are None when there is no champion yet.
    """

    config: Config
    prepared: Prepared
    mark: Mark
    inputs: Inputs | None
    champion: Score | None
    right: NDArray[np.bool_] | None
    answers: Answers | None = None
    estimate: Estimate | None = None


@dataclass(frozen=True)
class Comparison:
    """Both models on one holdout. champion: None when there is none yet; only_right: see `gate`.

    estimate: of the champion's error, see `Challenge`.
    """

    pipeline: Any
    result: Result
    champion: Score | None
    only_right: tuple[int, int]
    verdict: Verdict
    facts: dict[str, Any]
    estimate: Estimate | None = None

    @property
    def score(self) -> Score:
        """What the judge says of the challenger."""
        assert self.result.score is not None
        return self.result.score


def settings_digest(config: Config) -> str:
    """Return a digest of all settings that decide about a challenger, on given rows."""
    wanted = {"seed", "problems", "split", "features", "production", "dataset", "methods", "judge"}
    wanted |= {"costs"} if config.costs else set()
    said = config.model_dump(mode="json", include=wanted)
    for key in ("acknowledge", "alarms", "score", "schema", "rollout", "keep"):
        del said["production"][key]
    if not production_rules(config).gate.names:  # as it was before there were metrics
        for key in ("metric", "metrics"):
            del said["production"]["gate"][key]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def production_rules(config: Config) -> ProductionConfig:
    """Return the section production of a file that has one."""
    assert config.production is not None
    return config.production


def inspect_data(
    config: Config, champion: Champion | None, judged: Iterable[Mapping[str, Any]] = (), acknowledged: str | None = None
) -> Inspection:
    """Look for new rows, compare them with the champion's training, and decide.

    judged: the facts of all challengers of this champion that were refused, rolled back or put in shadow; the same rows
    and settings would give the same challenger again, and a second test of it would only use up confidence.
    acknowledged: digest of the data that a person has acknowledged, so that they raise no alarm again.
    """
    reading = new_rows.read(config)
    mark = new_rows.mark(reading)
    now = mark.sha256, settings_digest(config)
    again = not config.refresh and any((one["mark"]["sha256"], one["asked"]) == now for one in judged)
    before = "on which a challenger was already refused, rolled back or put in shadow."
    if champion is None:
        n = len(reading.source.data.train)
        if again:
            return Inspection(Decision("skip", (f"{n:,} rows, {before}",)), n, None, mark.sha256)
        return Inspection(Decision("retrain", (f"No champion yet; {n:,} rows.",)), n, None, mark.sha256)
    _check_labels(config, reading.source, champion)
    new = new_rows.find_new(config, reading, champion.mark)
    changes, drift = new_rows.count_changes(reading, champion.mark, new), None
    said: list[str] = []
    if again:
        return Inspection(Decision("skip", (f"{changes.new:,} new rows, {before}",)), changes.new, None, mark.sha256)
    if changes.new >= production_rules(config).least:
        places = np.flatnonzero(new)
        rows, y = _rows(reading.source, some_of(places, config.seed)), _labels(config, reading.source, places)
        drift = retraining.drift(config, champion.pipeline, champion.profile, rows, y)
        blocks = (part for block in _blocks(places) for part in reading.by_file(block))
        parts = ((file, _rows(reading.source, some), numbers) for file, some, numbers in blocks)
        said = check_rows(config, champion.pipeline, parts)
    known = production_rules(config)
    if acknowledged == mark.sha256:
        known = known.model_copy(update={"acknowledge": True})
    return Inspection(retraining.decide(known, changes, drift, said), changes.new, drift, mark.sha256)


def challenge(config: Config, champion: Champion | None, looked_at: str | None = None) -> Challenge:
    """Read and prepare the challenger's data, let the champion answer the holdout, and search around it.

    looked_at: digest of the data that `inspect_data` saw. Raises DataError when they have changed since.
    """
    reading = new_rows.read(config)
    if looked_at not in (None, reading.source.data.sha256):
        raise DataError(f"The data of {config.dataset.name} were changed after they were inspected; run again.")
    source, said = reading.source, list[str]()
    method = config.methods[name := production_rules(config).method]
    if champion is None:
        split = draw_split(config, source, config.seed)
    else:
        _check_labels(config, source, champion)
        split, said = divide(config, reading, new_rows.find_new(config, reading, champion.mark))
        method = retraining.search_around(method, champion.params, production_rules(config))
    rows, table = _rows(source, some_of(split.train, config.seed)), source.data.train.table
    inputs = retraining.count_inputs(rows, table) if table or retraining.is_compared_raw(rows) else None
    score = right = answers = estimate = None
    config = config.model_copy(update={"metrics": _metrics(config)})
    if champion is not None:
        model, X = _as_judged(champion.pipeline, source, split.test)
        y = _labels(config, source, split.test)
        # The model alone, on rows after its feature steps, as the judge scores the challenger.
        known, answers = lookup(method.estimator), answers_for(config.metrics, model, X, y, config.mistakes)
        score = judge(
            model, known, X, y, repeats=config.judge.repeats, n_jobs=config.n_jobs, metrics=config.metrics,
            answers=answers, seed=config.seed,
        )  # fmt: skip
        right = _right(model, X, y, score, answers)
        if champion.held is not None:
            judging = _rows(source, some_of(split.test, config.seed))
            estimate = retraining.estimated(config, champion.pipeline, champion.profile, champion.held, judging)
    config = config.model_copy(update={"methods": {name: method}})
    prepared = divided(config, replace(source, notes=[*source.notes, *said]), split, config.seed)
    return Challenge(config, prepared, new_rows.mark(reading), inputs, score, right, answers, estimate)


def _metrics(config: Config) -> tuple[str, ...]:
    """Return the experiment's metrics, and then those that the gate needs."""
    return tuple(dict.fromkeys([*config.metrics, *production_rules(config).gate.names]))


def compare(made: Challenge, settings: str = "", number: int = 1) -> Comparison:
    """Let the trained challenger answer the holdout too and apply the gate.

    settings: of `settings_digest`. number: which challenger of this champion it is. Raises MethodFailed when it was not
    trained.
    """
    config, prepared = made.config, made.prepared
    result = _result(config, prepared)
    assert result.score is not None
    model = _challenger(config, prepared)
    facts = {
        "mark": asdict(made.mark),
        "params": result.params,
        "profile": asdict(_profile(made, model)),
        "asked": settings,
    }
    rules, old, only, both = production_rules(config).gate, made.champion, (0, 0), None
    X, y = prepared.arrays("test", config.problems[0].labels)
    if (answers := record.answers(_place(config, prepared))) is None:
        answers = answers_of(model, X, y)
    if answers.probabilities is not None:
        facts["held"] = asdict(on_holdout(answers.probabilities, answers.predicted, result.score.n_wrong))
    if made.right is not None:
        ours, theirs = _right(model, X, y, result.score, answers), made.right
        only = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
        both = Both(answers, made.answers, config.seed) if made.answers else None
    pipeline = prepared.whole(model)  # this one takes tables whose columns have names
    verdict = gate(rules, result.score, old, only, number, both)
    return Comparison(pipeline, result, old, only, verdict, facts, made.estimate)


def _result(config: Config, prepared: Prepared) -> Result:
    problem, name = config.problems[0], production_rules(config).method
    outcome = record.outcome(config, [prepared], problem, name)
    if outcome is None or outcome.failure:
        raise MethodFailed(f"{name} on {problem.name}: {outcome.failure if outcome else 'no result'}")
    return outcome.first


def _challenger(config: Config, prepared: Prepared) -> Any:
    return loads((_place(config, prepared) / record.MODEL).read_bytes())


def _place(config: Config, prepared: Prepared) -> Path:
    return record.place(config, prepared, config.problems[0], production_rules(config).method)


def _profile(made: Challenge, model: Any) -> Profile:
    """Return the profile of the challenger's training.

    What depends on its map or feature steps, which were fitted to the training rows, is counted on the other rows; of
    these the map has seen those of the validation too where it was fitted again.
    """
    labels, seed = made.config.problems[0].labels, made.config.seed
    X, y = made.prepared.arrays("train", labels)
    others = [made.prepared.arrays(part, labels)[0] for part in ("validation", "test")]
    others = [part[some_of(np.arange(part.shape[0]), seed)] for part in others]
    inputs = made.inputs or retraining.count_inputs(_together(others))
    unseen = others[1:] if made.config.judge.refit else others
    places, answers = (np.concatenate([ask(part) for part in unseen]) for ask in (model.transform, model.predict))
    return profile(inputs, y, model.transform(X), places, answers)


def _together(parts: list[Any]) -> Any:
    if not issparse(parts[0]):
        return np.concatenate(parts)
    return vstack(parts)


def _as_judged(pipeline: Any, source: Source, places: Any) -> tuple[Any, Any]:
    """Return the model of a pipeline, and some rows as its feature steps give them: in a file where they are many."""

    def of(which: Any) -> Any:
        rows = retraining.in_training_order(pipeline, _rows(source, which))
        rows = retraining.fill_missing(pipeline, rows)
        return pipeline[:-1].transform(rows) if hasattr(pipeline, "steps") else rows

    model = pipeline.steps[-1][1] if hasattr(pipeline, "steps") else pipeline
    first, *others = _blocks(places) if source.data.train.table is not None else [places]
    X = of(first)
    if not others:
        return model, X
    every = large.empty(len(places), X.shape[1])
    every[: len(first)] = X
    for number, part in enumerate(others, start=1):
        every[number * BLOCK : number * BLOCK + len(part)] = of(part)
    return model, every


def _right(model: Any, X: Any, y: NDArray[Any], score: Score, answers: Answers | None) -> NDArray[np.bool_]:
    """Return which rows (n,) a model gets right; their number agrees with the judge's. answers: its, where known."""
    right: NDArray[np.bool_] = model.predict(X) == y if answers is None else answers.predicted == answers.codes
    assert int((~right).sum()) == score.n_wrong, "the judge and McNemar's test must count the same rows"
    return right


def some_of(places: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Return row numbers as they are, or of more than COMPARED so many, drawn at random, in order."""
    if len(places) <= COMPARED:
        return places
    return places[np.sort(np.random.default_rng(seed).choice(len(places), COMPARED, replace=False))]


def _blocks(places: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [places[start : start + BLOCK] for start in range(0, max(1, len(places)), BLOCK)]


def _rows(source: Source, places: Any) -> Any:
    """Return inputs as they came."""
    rows = source.data.train.take(places)
    return as_they_came(rows.X, rows.columns, rows.table)


def _labels(config: Config, source: Source, places: Any = slice(None)) -> NDArray[Any]:
    """Return labels (n,) as the experiment's first problem reads them."""
    y = relabel(source.data.train.y[places], config.problems[0].labels)
    return y.astype(str) if y.dtype == object else y


def _check_labels(config: Config, source: Source, champion: Champion) -> None:
    retraining.check_labels(champion.pipeline.classes_, _labels(config, source))
