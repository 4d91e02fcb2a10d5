"""Scored rows beside the training: counts of chunks add up, a chunk that has moved is named, a stop loses nothing."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier
from ldsvm.datasets import DataError
from ldsvm.experiment.config.production import DriftConfig
from ldsvm.production import scoring
from ldsvm.production.answers import Answers
from ldsvm.production.drift import Profile, Seen, compare, count, profile
from ldsvm.production.estimate import on_holdout
from ldsvm.production.input_counts import count_bins, count_table
from ldsvm.production.retraining import Alarm
from ldsvm.production.score_watch import Watch, drift_file, write
from ldsvm.production.scoring_rows import Scoring

NAMES = ("a", "b", "c")
RULES, CLASSES = DriftConfig(), np.array(["x", "y", "z"])


def frame(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    y = np.array(["x", "y", "z"])[rng.integers(3, size=n)]
    X = rng.normal(size=(n, 3)) + np.searchsorted(["x", "y", "z"], y)[:, None]
    return pd.DataFrame(X.astype(np.float32), columns=NAMES), y


@pytest.fixture(scope="module")
def trained() -> tuple[Any, Profile]:
    """A pipeline of raw rows, and the profile of its training as a retraining registers it."""
    (X, y), (unseen, _) = frame(600, 0), frame(400, 1)
    model = make_pipeline(StandardScaler(), LDSVMClassifier(n_basis=10, random_state=0)).fit(X, y)
    counts = count_bins(X.to_numpy(), NAMES)
    return model, profile(counts, y, model.transform(X), model.transform(unseen), model.predict(unseen))


def job(folder: Path, rows: pd.DataFrame, **changes: Any) -> Scoring:
    rows.to_parquet(folder / "in.parquet")
    given = Scoring(str(folder / "in.parquet"), folder / "out.parquet", NAMES, None, (), 200, "m version 1")
    return replace(given, **changes)


def half_moved() -> pd.DataFrame:
    """Three chunks of 200 rows as in training, and two of other rows."""
    rows = frame(1000, 2)[0]
    rows.iloc[600:] += 4
    return rows


def test_counts_of_chunks_are_those_of_all_rows(trained: tuple[Any, Profile]) -> None:
    model, then = trained
    X, _ = frame(500, 3)
    answers, Z = model.predict(X), model.transform(X)
    parts = [slice(0, 200), slice(200, 500)]
    for matrix in (X.to_numpy(), sp.csr_array(X.to_numpy())):
        one, other = (count(then, matrix[part], answers[part], Z[part]) for part in parts)
        assert one + other == count(then, matrix, answers, Z)
    mixed = pd.DataFrame({"town": ["Ulm", "Bonn", None, "Ulm"] * 125, "size": X["a"].astype(float)})
    table = replace(then, **asdict(count_table(mixed, {"town": "category", "size": "number"})))
    one, other = (count(table, mixed[part], answers[part], Z[part]) for part in parts)
    whole = count(table, mixed, answers, Z)
    assert one + other == whole and whole.gaps == [125, 0] and whole.rows == 500
    assert Seen(**json.loads(json.dumps(asdict(whole)))) == whole


@pytest.mark.slow
def test_rows_as_in_training_raise_no_alarm(tmp_path: Path, trained: tuple[Any, Profile]) -> None:
    model, then = trained
    said: list[str] = []
    for seed in range(4, 14):
        watch = Watch(then, CLASSES, RULES, tell=said.append)
        scoring.score(job(tmp_path, frame(600, seed)[0]), model, watch=watch)
        assert (
            watch.report().sentences == ["Nothing has drifted."]
            and watch.report().estimate is None
            and watch.report().numbers["alarmed_chunks"] == 0
        )
    assert said == []


def test_the_chunk_that_has_moved_is_named_when_it_comes(tmp_path: Path, trained: tuple[Any, Profile]) -> None:
    model, then = trained
    said: list[tuple[int, str]] = []
    done = [0]
    watch = Watch(then, CLASSES, RULES, tell=lambda sentence: said.append((done[0], sentence)))
    scoring.score(job(tmp_path, half_moved()), model, lambda rows: done.__setitem__(0, rows), watch=watch)
    ((when, sentence),) = said
    assert when == 600  # rows done before this chunk: it is said with the chunk, not at the end
    assert sentence.startswith("rows 601 to 800 do not look like the training data: 100 % of the inputs have drifted; ")
    assert "The predicted classes have drifted" in sentence and "production.score.drift=stop" in sentence
    assert [alarm["rows"] for alarm in watch.alarms] == ["rows 601 to 800", "rows 801 to 1,000"]
    assert (
        watch.report().sentences[-1]
        == "2 chunks do not look like the training data, the first of them rows 601 to 800."
    )
    assert watch.report().numbers["drifted_inputs_percent"] == 100.0
    out = parquet.read_table(tmp_path / "out.parquet")
    assert out.num_rows == 1000 and not out.schema.metadata


def test_a_stop_keeps_what_was_scored_and_the_next_run_goes_on(
    tmp_path: Path, trained: tuple[Any, Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, then = trained
    asked, done = job(tmp_path, half_moved()), scoring._scored
    stopping = Watch(then, CLASSES, RULES, stop=True)
    with pytest.raises(Alarm, match=r"^rows 601 to 800 .* wrote no output: .*production\.score\.drift=warn\.$"):
        scoring.score(asked, model, watch=stopping)
    assert not asked.output.exists()
    assert stopping.rows == 800
    chunks: list[int] = []

    def noting(chunk: Any, *rest: Any) -> Any:
        chunks.append(sum(len(part.batch) for part in chunk))
        return done(chunk, *rest)

    monkeypatch.setattr(scoring, "_scored", noting)
    going_on = Watch(then, CLASSES, RULES)
    assert scoring.score(asked, model, watch=going_on) == 1000
    assert chunks == [200]  # the last one alone
    whole = Watch(then, CLASSES, RULES)
    scoring.score(replace(asked, output=tmp_path / "whole.parquet"), model, watch=whole)
    assert going_on.report().as_json({}) == whole.report().as_json({})
    assert parquet.read_table(asked.output).equals(parquet.read_table(tmp_path / "whole.parquet"))


def test_chunks_that_were_not_counted_are_scored_again_where_rows_are_compared(
    tmp_path: Path, trained: tuple[Any, Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, then = trained
    asked = job(tmp_path, frame(400, 2)[0])
    with monkeypatch.context() as patch:
        patch.setattr(scoring, "_gather", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            scoring.score(asked, model)
    watch = Watch(then, CLASSES, RULES)
    assert scoring.score(asked, model, watch=watch) == 400
    assert watch.rows == 400


def test_classes_are_compared_with_the_answers_of_then_or_else_the_labels(trained: tuple[Any, Profile]) -> None:
    model, then = trained
    X, _ = frame(500, 3)
    seen = count(then, X.to_numpy(), np.array(["x"] * 450 + ["y"] * 50), model.transform(X))
    always_x = replace(then, answers={"x": 900, "y": 100})
    assert not compare(always_x, seen, RULES, answers=True).labels.drifted
    assert compare(then, seen, RULES, answers=True).labels.drifted
    earlier = replace(then, answers={})
    found = compare(earlier, seen, RULES, answers=True)
    assert found.labels.psi == compare(earlier, seen, RULES).labels.psi
    assert "The predicted classes have drifted" in " ".join(found.sentences)


def test_the_comparison_lies_beside_the_output_and_replaces_nothing_of_somebody_else(
    tmp_path: Path, trained: tuple[Any, Profile]
) -> None:
    file = drift_file(tmp_path / "out.csv")
    assert file == tmp_path / "out.csv.drift.json"
    (model, then), X = trained, frame(50, 3)[0]
    watch = Watch(then, CLASSES, RULES)
    watch.take(watch.count(X, None, model.predict(X), model.transform(X), None))
    write(watch.report().as_json({"model": "m version 1"}), file)
    assert json.loads(file.read_text("utf-8"))["rows"] == 50
    assert drift_file(tmp_path / "out.csv") == file  # an earlier one of ours
    for text in ("no JSON", "{}", "[]"):
        file.write_text(text, "utf-8")
        with pytest.raises(DataError, match=r"out\.csv\.drift\.json exists and is not a comparison of scored rows"):
            drift_file(tmp_path / "out.csv")


@pytest.mark.slow
def test_the_error_is_estimated_from_probabilities_and_the_rows_that_judged(
    tmp_path: Path, trained: tuple[Any, Profile]
) -> None:
    model, then = trained
    X, y = frame(3000, 20)
    wrong = int((model.predict(X) != y).sum())
    held = on_holdout(model.predict_proba(X), np.searchsorted(CLASSES, model.predict(X)), wrong)
    new, truth = frame(3000, 21)
    watch = Watch(then, CLASSES, RULES, held)
    scoring.score(job(tmp_path, new), model, watch=watch)
    error = watch.report().estimate
    assert error is not None and not error.doubtful
    assert error.low < (model.predict(new) != truth).mean() < error.high and error.high - error.low < 0.06
    assert watch.report().sentences[-1] == error.sentence
    assert watch.report().numbers["estimated_error_percent"] == 100 * error.error
    moved = Watch(then, CLASSES, RULES, held)
    scoring.score(job(tmp_path, half_moved()), model, watch=moved)
    found = moved.report().estimate
    assert found is not None and found.doubtful
    assert found.sentence.startswith("No error is estimated: these rows are unlike the training")


def test_answers_are_what_the_model_says_of_each_row(trained: tuple[Any, Profile]) -> None:
    model = trained[0][-1]
    X = trained[0][:-1].transform(frame(50, 3)[0])
    for found in (Answers(model, X), Answers(model, np.asarray(X), checked=True)):
        np.testing.assert_array_equal(found.probabilities(), model.predict_proba(X))
        np.testing.assert_array_equal(found.labels, model.predict(X))
        np.testing.assert_array_equal(found.Z, model.transform(X))
        np.testing.assert_array_equal(found.scores, model.decision_function(X))
