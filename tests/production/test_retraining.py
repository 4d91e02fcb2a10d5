"""What is new, what it calls for, and who would be promoted: on real files."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldsvm.datasets import DataError
from ldsvm.experiment.compare import record
from ldsvm.experiment.config.load import ConfigError, load_config
from ldsvm.experiment.config.production import ProductionConfig
from ldsvm.experiment.config.schema import Config, MethodConfig
from ldsvm.experiment.prepared import Source, save
from ldsvm.experiment.search.worker import Here
from ldsvm.experiment.storing import dumps, loads
from ldsvm.production import new_rows, promotion, retraining
from ldsvm.production.drift import Drift, Shift
from ldsvm.production.new_rows import Changes, Mark
from ldsvm.production.promotion import Champion
from ldsvm.production.retrain_split import divide

ROOT = Path(__file__).resolve().parents[2]
METHODS = (
    "methods={ours: {estimator: ldsvm, params: {gamma: 0.3, max_iter: 5}, search: {n_basis: [10], C: [0.1, 1]}},"
    " linear: {estimator: linear_svm}}"
)
RULES = ProductionConfig(model="m")


def rows(n: int, seed: int, angle: float = 0.0) -> pd.DataFrame:
    """Three classes around the corners of a triangle that turns by an angle, with a time for each row."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    turns = 2 * np.pi * y / 3 + angle
    X = np.stack([np.cos(turns), np.sin(turns)], axis=1) + 0.3 * rng.normal(size=(n, 2))
    names = np.array(["ant", "bee", "cat"])[y]
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": names, "when": np.arange(n) + 1000 * seed})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    rows(300, 0).to_parquet(tmp_path / "in" / "0.parquet")
    return tmp_path


def config(place: Path, *more: str) -> Config:
    given = [
        f"paths.cache={place / 'cache'}", f"paths.runs={place / 'runs'}", f"dataset.path={place / 'in'}",
        "dataset.drop=[when]", "dataset.label=label", METHODS, "judge.repeats=1", "n_jobs=1", "production.trials=2",
        "production.gate={error_percent: {threshold: 50}}", *more,
    ]  # fmt: skip
    return load_config("conf/production/digits.yaml", given, root=ROOT)


def trained(settings: Config, champion: Champion | None) -> promotion.Comparison:
    made = promotion.challenge(settings, champion)
    fit(made)
    return promotion.compare(made)


def fit(made: promotion.Challenge) -> None:
    record.settle(
        made.config, made.prepared, made.config.problems[0], "ours",
        on_trials=lambda done, total: None, on_step=lambda row: None, runner=Here(),
    )  # fmt: skip


def known(duel: promotion.Comparison) -> Champion:
    return Champion.of(duel.pipeline, duel.facts)


@pytest.mark.slow
def test_new_files_are_new_rows_and_half_of_a_holdout_of_them_judges_both(place: Path) -> None:
    settings = config(place)
    first = trained(settings, None)
    assert first.champion is None and first.verdict.promote
    assert (
        promotion.inspect_data(settings, known(first)).decision.sentence == "skip: 0 new rows; production.least is 100."
    )
    rows(200, 1).to_parquet(place / "in" / "1.parquet")
    found = promotion.inspect_data(settings, known(first))
    assert (found.new, found.decision.action) == (200, "retrain")
    assert found.drift is not None and found.drift.sentences == ["Nothing has drifted."]
    second = trained(settings, known(first))
    assert second.score.n_test == 60 and second.champion is not None and second.champion.n_test == 60
    assert not second.verdict.promote  # the rows are of the same kind: no gain beyond chance
    wrong = second.champion.n_wrong - second.score.n_wrong
    assert second.only_right[0] - second.only_right[1] == wrong
    # of the rows that now have labels a scoring would have told how many are wrong
    assert first.estimate is None and second.estimate is not None and not second.estimate.doubtful
    assert second.estimate.low <= second.champion.error <= second.estimate.high < 0.03


@pytest.mark.slow
def test_after_a_last_fit_distances_are_counted_on_rows_that_no_fit_has_seen(place: Path) -> None:
    counts = []
    for last in ("false", "true"):
        settings = config(place, f"judge.refit={last}")
        made = promotion.challenge(settings, None)
        fit(made)
        found = promotion.compare(made)
        counts.append(sum(found.facts["profile"]["latent_counts"]))
        assert sum(found.facts["profile"]["classes"].values()) == made.prepared.sizes["train"]
        assert found.score.n_test == made.prepared.sizes["test"]
    sizes = made.prepared.sizes
    assert counts == [sizes["validation"] + sizes["test"], sizes["test"]]
    assert promotion.settings_digest(config(place)) != promotion.settings_digest(config(place, "judge.refit=true"))


@pytest.mark.slow
def test_rows_that_moved_are_told_and_a_challenger_that_knows_them_is_promoted(place: Path) -> None:
    settings = config(place, "production.drift.alarm_share=1", "production.drift.psi=0.02")
    first = trained(settings, None)
    rows(400, 1, angle=1.0).to_parquet(place / "in" / "1.parquet")
    found = promotion.inspect_data(settings, known(first))
    assert found.drift is not None and found.drift.latent.drifted
    second = trained(settings, known(first))
    assert second.champion is not None and second.champion.error > 0.3 > second.score.error
    assert second.estimate is not None and second.estimate.doubtful
    assert second.verdict.promote


@pytest.mark.slow
@pytest.mark.parametrize("evidence", ["better", "not_worse"])
def test_a_challenger_that_is_truly_worse_is_refused_for_that(place: Path, evidence: str) -> None:
    first = trained(config(place), None)
    rows(400, 1).to_parquet(place / "in" / "1.parquet")
    worse = "methods.ours={estimator: ldsvm, params: {gamma: 100, n_basis: 2, max_iter: 2}}"
    settings = config(place, worse, f"production.gate={{evidence: {evidence}}}")
    second = trained(settings, known(first))
    assert second.champion is not None and second.score.error > second.champion.error + 0.2
    names = ["error_percent better", "mcnemar better"] if evidence == "better" else ["mcnemar not_worse"]
    assert second.only_right[1] > second.only_right[0] + 20
    assert [(check.name, check.passed) for check in second.verdict.checks] == [(name, False) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("before", [int, str])
def test_labels_of_another_kind_than_the_champions_are_refused(place: Path, before: type) -> None:
    def labelled(n: int, seed: int, kind: type) -> pd.DataFrame:
        return rows(n, seed).assign(label=lambda f: f["label"].map({"ant": 0, "bee": 1, "cat": 2}).astype(kind))

    after = str if before is int else int
    labelled(300, 0, before).to_parquet(place / "in" / "0.parquet")
    first = known(trained(config(place), None))
    labelled(300, 0, after).to_parquet(place / "in" / "0.parquet")
    settings = config(place, "dataset.drop=[]", "dataset.time=when")
    timed = replace(first, mark=Mark("", time=100.0))
    kinds = {int: r"numbers, such as \d", str: r"text, such as '\d'"}
    said = rf"^Labels are {kinds[after]}, but were {kinds[before]}, when the champion was trained; "
    for step in (promotion.inspect_data, promotion.challenge):
        with pytest.raises(DataError, match=said):
            step(settings, timed)


def test_times_tell_what_is_new_and_the_latest_rows_judge(place: Path) -> None:
    settings = config(place, "dataset.drop=[]", "dataset.time=when")
    reading = new_rows.read(settings)
    then = new_rows.mark(reading)
    assert then.time == 299 and then.files is None
    rows(100, 1).to_parquet(place / "in" / "0.parquet")  # the same file with other rows: times tell all the same
    reading = new_rows.read(settings)
    assert new_rows.find_new(settings, reading, then).all()
    assert new_rows.find_new(settings, reading, replace(then, time=1049.0)).sum() == 50
    new = new_rows.find_new(settings, reading, replace(then, time=1049.0))
    split, _ = divide(settings, reading, new)
    assert reading.source.data.train.times is not None
    assert sorted(reading.source.data.train.times[split.test].tolist()) == list(range(1085, 1100))
    assert len(split.train) + len(split.validation) + len(split.test) == 100


def test_groups_stay_on_one_side_also_with_their_old_rows(place: Path) -> None:
    frame = rows(400, 0).assign(who=lambda f: f.index % 40)
    frame.iloc[:200].to_parquet(place / "in" / "0.parquet")
    settings = config(place, "dataset.group=who")
    then = new_rows.mark(new_rows.read(settings))
    frame.iloc[200:].to_parquet(place / "in" / "1.parquet")
    reading = new_rows.read(settings)
    split, _ = divide(settings, reading, new_rows.find_new(settings, reading, then))
    assert reading.source.data.train.groups is not None
    sides = [
        set(reading.source.data.train.groups[part].tolist()) for part in (split.train, split.validation, split.test)
    ]
    assert all(sides) and sum(map(len, sides)) == len(set.union(*sides)) == 40
    assert split.test.min() >= 200 and 40 <= len(split.test) <= 80


def test_dates_are_kept_as_texts_and_compared_as_dates(place: Path) -> None:
    frame = rows(50, 0).assign(when=pd.date_range("2024-01-01", periods=50, tz="UTC"))
    frame.to_parquet(place / "in" / "0.parquet")
    settings = config(place, "dataset.drop=[]", "dataset.time=when")
    reading = new_rows.read(settings)
    then = new_rows.mark(reading)
    assert isinstance(then.time, str) and then.time.startswith("2024-02-19")
    assert not new_rows.find_new(settings, reading, then).any()
    assert new_rows.find_new(settings, reading, replace(then, time="2024-02-10")).sum() == 9


def test_a_changed_file_is_refused_by_name_where_the_keys_of_its_rows_were_not_kept(place: Path) -> None:
    settings = config(place)
    then = new_rows.mark(new_rows.read(settings))
    rows(301, 0).to_parquet(place / "in" / "0.parquet")
    with pytest.raises(
        DataError, match=r"^0\.parquet has changed .*; restore it .*, or choose another production\.model\.$"
    ):
        new_rows.find_new(settings, new_rows.read(settings), replace(then, keys=None))


def test_a_file_that_was_renamed_or_copied_is_not_new(place: Path) -> None:
    settings = config(place)
    then = new_rows.mark(new_rows.read(settings))
    (place / "in" / "0.parquet").rename(place / "in" / "9.parquet")
    (place / "in" / "8.parquet").write_bytes((place / "in" / "9.parquet").read_bytes())
    assert not new_rows.find_new(settings, new_rows.read(settings), then).any()


def test_rows_that_are_gone_or_came_late_are_counted(place: Path) -> None:
    settings = config(place)
    then = new_rows.mark(new_rows.read(settings))
    rows(150, 1).to_parquet(place / "in" / "1.parquet")
    (place / "in" / "0.parquet").unlink()
    reading = new_rows.read(settings)
    assert new_rows.count_changes(reading, then, new_rows.find_new(settings, reading, then)) == Changes(
        150, 300, lost=300
    )
    timed = config(place, "dataset.drop=[]", "dataset.time=when")
    then = Mark("", time=1099.0, rows=90)  # as marks were before times were counted
    reading = new_rows.read(timed)
    assert new_rows.count_changes(reading, then, new_rows.find_new(timed, reading, then)) == Changes(50, 90, late=10)


@pytest.mark.parametrize("dates", [False, True])
def test_rows_that_came_late_are_counted_also_when_others_left(place: Path, dates: bool) -> None:
    def timed(frame: pd.DataFrame) -> pd.DataFrame:
        when = pd.Timestamp("2020-01-01") + pd.to_timedelta(frame["when"], "h")
        return frame.assign(when=when) if dates else frame

    def found() -> Changes:
        reading = new_rows.read(settings)
        return new_rows.count_changes(reading, then, new_rows.find_new(settings, reading, then))

    first, file = rows(300, 0), place / "in" / "0.parquet"
    timed(first).to_parquet(file)
    settings = config(place, "dataset.drop=[]", "dataset.time=when")
    then = new_rows.mark(new_rows.read(settings))
    assert then.edges is not None and then.edges[-1] == then.time and len(then.edges) == len(then.counts or ()) == 100
    assert found() == Changes(0, 300) and Mark(**json.loads(json.dumps(asdict(then)))) == then
    late = rows(100, 2).assign(when=250)
    timed(pd.concat([first[100:], late, rows(80, 1)], ignore_index=True)).to_parquet(file)
    assert found() == Changes(80, 300, lost=100, late=100)
    timed(first[:-1]).to_parquet(file)
    assert found() == Changes(0, 300, lost=1, beyond=then.time)
    decision = retraining.decide(RULES, found(), None)
    assert decision.action == "alarm"
    said = f"The champion's latest time, {then.time}, is later than all times in the data. If the champion was trained"
    assert said in decision.sentence


@pytest.mark.parametrize("kept", [True, False])
def test_rows_that_the_champion_or_the_training_has_seen_do_not_judge(place: Path, kept: bool) -> None:
    settings, file = config(place), place / "in"
    then = new_rows.mark(new_rows.read(settings))
    if not kept:
        rows(200, 1).to_parquet(file / "1.parquet")  # as often as you like
        rows(200, 1).to_parquet(file / "1-copy.parquet")
    else:
        pd.concat([rows(300, 0), rows(200, 1)], ignore_index=True).to_parquet(
            file / "1.parquet"
        )  # all that there is by now
    reading = new_rows.read(settings)
    new = new_rows.find_new(settings, reading, then)
    found = new_rows.count_changes(reading, then, new)
    assert found == Changes(200, 300, repeated=200 if not kept else 300)
    assert new_rows.mark(reading).rows == (800 if kept else 500)
    split, said = divide(settings, reading, new)
    X = [set(map(tuple, reading.source.data.train.X[part])) for part in (split.train, split.validation, split.test)]
    assert len(split.test) == 60 and not said and not X[2] & (X[0] | X[1])
    assert len(split.train) + len(split.validation) == (740 if kept else 440)
    repeated = (
        f"200 new rows. {found.repeated} rows of new or changed files were known before, so they do not count as new."
    )
    assert retraining.decide(RULES, found, moved(0)).sentence.startswith(f"retrain: {repeated}")


def test_a_file_with_times_that_is_there_twice_counts_once(place: Path) -> None:
    settings = config(place, "dataset.drop=[]", "dataset.time=when")
    then = new_rows.mark(new_rows.read(settings))
    for name in ("1", "1-copy"):
        rows(200, 1).to_parquet(place / "in" / f"{name}.parquet")
    reading = new_rows.read(settings)
    new = new_rows.find_new(settings, reading, then)
    assert new_rows.count_changes(reading, then, new) == Changes(200, 300, repeated=200)
    split, _ = divide(settings, reading, new)
    assert len(split.test) == len(np.unique(reading.source.data.train.X[split.test], axis=0)) == 60
    assert len(split.train) + len(split.validation) == 440
    assert new_rows.mark(reading).rows == 500 == sum(new_rows.mark(reading).counts or ())
    (place / "in" / "0.parquet").write_bytes((place / "in" / "1.parquet").read_bytes())
    reading = new_rows.read(settings)
    assert new_rows.find_new(settings, reading, then).sum() == 200


def test_rows_that_judge_and_equal_others_are_left_out_and_it_is_said(place: Path) -> None:
    settings = config(place)
    then = new_rows.mark(new_rows.read(settings))
    frame = rows(200, 1)
    pd.concat([frame, frame[:50]], ignore_index=True).to_parquet(place / "in" / "1.parquet")
    reading = new_rows.read(settings)
    split, said = divide(settings, reading, new_rows.find_new(settings, reading, then))
    X = [set(map(tuple, reading.source.data.train.X[part])) for part in (split.train, split.validation, split.test)]
    gone = 75 - len(split.test)
    assert 10 < gone < 40 and not X[2] & (X[0] | X[1])
    assert said == [
        f"{gone} rows of the holdout were left out, since they equal rows for training or validation, or old rows."
    ]
    pd.concat([frame] * 40, ignore_index=True).to_parquet(place / "in" / "1.parquet")
    reading = new_rows.read(settings)
    with pytest.raises(
        DataError, match=r" validation and \d holdout rows, without those that equal other rows; allowed: .*10"
    ):
        divide(settings, reading, new_rows.find_new(settings, reading, then))


def test_files_after_a_data_set_of_the_catalogue_are_refused_and_the_other_way_round(place: Path) -> None:
    settings = config(place)
    reading = new_rows.read(settings)
    said = r"^The data are files \(dataset\.path\), but were a data set of the catalogue .*; use what"
    with pytest.raises(DataError, match=said):
        new_rows.find_new(settings, reading, Mark("another", rows=1797))
    catalogue = replace(reading, parts=None)
    with pytest.raises(DataError, match=r"^The data are a data set of the catalogue .*, but were files"):
        new_rows.find_new(settings, catalogue, new_rows.mark(reading))


def test_groups_that_the_champion_does_not_know_judge_first(place: Path) -> None:
    frame = rows(600, 0)
    frame = frame.assign(who=np.where(frame.index < 450, frame.index % 30, 100 + frame.index % 10))
    frame.iloc[:200].to_parquet(place / "in" / "0.parquet")
    settings = config(place, "dataset.group=who")
    then = new_rows.mark(new_rows.read(settings))
    frame.iloc[200:].to_parquet(place / "in" / "1.parquet")
    reading = new_rows.read(settings)
    split, said = divide(settings, reading, new_rows.find_new(settings, reading, then))
    assert reading.source.data.train.groups is not None
    assert (reading.source.data.train.groups[split.test] >= 100).all() and 105 <= len(split.test) <= 135 and not said
    frame.iloc[200:500].to_parquet(place / "in" / "1.parquet")  # too few of them
    reading = new_rows.read(settings)
    split, said = divide(settings, reading, new_rows.find_new(settings, reading, then))
    assert reading.source.data.train.groups is not None
    known = (reading.source.data.train.groups[split.test] < 100).sum()
    assert known and said == [
        f"{known} of the {len(split.test)} rows of the holdout belong to groups that the champion was trained on, so "
        "it may look better than it is."
    ]


@pytest.mark.parametrize(("sizes", "allowed"), [((0.6, 50), False), ((60, 0.2), False), ((60, 20), True)])
def test_sizes_of_two_kinds_are_refused(place: Path, sizes: tuple[float, float], allowed: bool) -> None:
    settings = config(place, f"split.train={sizes[0]}", f"split.validation={sizes[1]}", "split.test=20")
    reading = new_rows.read(settings)
    new = np.arange(300) >= 150
    if allowed:
        assert len(divide(settings, reading, new)[0].validation) == round((300 - 45) * 0.25)
    else:
        with pytest.raises(
            DataError, match=r"^split\.train=.*, split\.validation=.*; allowed: two counts, or two fractions"
        ):
            divide(settings, reading, new)


@pytest.mark.slow
def test_what_was_acknowledged_does_not_alarm_again_until_the_data_change(place: Path) -> None:
    settings = config(place, "production.lost_share=0.1")
    first = known(trained(settings, None))
    rows(100, 0).to_parquet(place / "in" / "0.parquet")
    rows(50, 1).to_parquet(place / "in" / "1.parquet")
    first = replace(first, mark=replace(first.mark, files={"gone.parquet": ""}))
    alarm = promotion.inspect_data(config(place, "production.least=200"), first)
    assert alarm.decision.action == "alarm" and alarm.drift is None and alarm.new == 150
    again = promotion.inspect_data(config(place, "production.least=200"), first, (), alarm.sha256)
    assert again.decision.action == "skip" and again.decision.sentence.endswith("A person has acknowledged this.")
    rows(51, 1).to_parquet(place / "in" / "1.parquet")
    assert (
        promotion.inspect_data(config(place, "production.least=200"), first, (), alarm.sha256).decision.action
        == "alarm"
    )


def test_a_challenger_is_judged_once_also_when_another_one_came_between(place: Path) -> None:
    one, other, third = config(place), config(place, "seed=1"), config(place, "seed=2")
    digest = promotion.inspect_data(one, None).sha256
    judged = [{"mark": {"sha256": digest}, "asked": promotion.settings_digest(settings)} for settings in (one, other)]
    said = "skip: 300 rows, on which a challenger was already refused, rolled back or put in shadow."
    assert [promotion.inspect_data(each, None, judged).decision.sentence for each in (one, other)] == [said, said]
    assert promotion.inspect_data(third, None, judged).decision.action == "retrain"
    rows(20, 1).to_parquet(place / "in" / "1.parquet")
    assert promotion.inspect_data(one, None, judged).decision.action == "retrain"


def test_rows_that_come_between_look_and_challenge_are_looked_at_first(place: Path) -> None:
    settings = config(place)
    found = promotion.inspect_data(settings, None)
    promotion.challenge(settings, None, found.sha256)
    rows(200, 1).to_parquet(place / "in" / "1.parquet")
    with pytest.raises(DataError, match=r"were changed after they were inspected; run again\.$"):
        promotion.challenge(settings, None, found.sha256)


def test_a_time_that_has_not_come_yet_is_refused_before_all_later_rows_look_old(place: Path) -> None:
    now = pd.Timestamp.now("UTC").floor("s")
    frame = rows(50, 0).assign(when=[now - pd.Timedelta(hours=hour) for hour in range(50)])
    frame.loc[0, "when"] = now + pd.Timedelta(hours=20)  # somebody's local time
    frame.to_parquet(place / "in" / "0.parquet")
    settings = config(place, "dataset.drop=[]", "dataset.time=when")
    new_rows.read(settings)
    frame.loc[17, "when"] = pd.Timestamp("2099-01-01", tz="UTC")
    frame.to_parquet(place / "in" / "0.parquet")
    with pytest.raises(
        DataError,
        match=r"^dataset\.time when is in the future in row 18, counted from 1 without a header, such as 2099-01-01T",
    ):
        new_rows.read(settings)


def test_files_that_change_while_they_are_read_are_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, real = config(place), new_rows.load_source

    def load(wanted: Config, spec: Any) -> Any:
        found = real(wanted, spec)
        rows(50, 1).to_parquet(place / "in" / "1.parquet")
        return found

    monkeypatch.setattr(new_rows, "load_source", load)
    with pytest.raises(DataError, match=r"was changed while it was being read; run again\.$"):
        new_rows.read(settings)


@pytest.mark.slow
def test_what_arrives_during_the_training_is_new_the_next_time(place: Path) -> None:
    settings = config(place)
    made = promotion.challenge(settings, None)
    rows(200, 1).to_parquet(place / "in" / "1.parquet")
    fit(made)
    first = promotion.compare(made)
    assert first.facts["mark"]["rows"] == 300 and list(first.facts["mark"]["files"]) == ["0.parquet"]
    assert promotion.inspect_data(settings, known(first)).new == 200


def test_matrices_without_times_are_refused_before_anything_is_trained(place: Path) -> None:
    frame = rows(100, 0)
    np.savez(place / "m.npz", X=frame[["a", "b"]], y=frame["label"].to_numpy(str))
    settings = config(place, f"dataset.path={place / 'm.npz'}", "dataset.drop=[]", "dataset.label=null")
    with pytest.raises(
        DataError, match=r"npz data are a single file, .* allowed: an array of times in it, dataset\.time\.$"
    ):
        promotion.inspect_data(settings, None)
    np.savez(place / "m.npz", X=frame[["a", "b"]], y=frame["label"].to_numpy(str), times=frame["when"])
    assert promotion.inspect_data(settings, None).decision.action == "retrain"


@pytest.mark.parametrize("dates", [1, 2, 3])
def test_few_dates_divide_at_random_and_it_is_said(place: Path, dates: int) -> None:
    frame = pd.concat([rows(300, 0).assign(when=0), rows(100, 1).assign(when=np.arange(100) * dates // 100 + 1)])
    frame = frame.reset_index(drop=True)
    frame.to_parquet(place / "in" / "0.parquet")
    settings = config(place, "dataset.drop=[]", "dataset.time=when")
    reading = new_rows.read(settings)
    new = new_rows.find_new(settings, reading, Mark("", time=0.0, rows=300))
    split, said = divide(settings, reading, new)
    assert len(split.test) == {1: 30, 2: 50, 3: 33}[dates] and new[split.test].all()
    random = ["Rows were split at random, not by dataset.time when, since too many rows have the latest time."]
    assert said == (random if dates == 1 else [])
    frame.loc[300:, "when"] = np.where(np.arange(100) < 5, 1, 2)  # nearly all at the last moment
    frame.to_parquet(place / "in" / "0.parquet")
    split, said = divide(settings, new_rows.read(settings), new)
    assert len(split.test) == 30 and said == random


def test_a_label_of_the_latest_rows_only_is_learnt_and_judged(place: Path) -> None:
    frame = rows(400, 0)
    frame.loc[380:, "label"] = "dog"
    frame.to_parquet(place / "in" / "0.parquet")
    settings = config(place, "dataset.drop=[]", "dataset.time=when")
    reading = new_rows.read(settings)
    split, said = divide(settings, reading, new_rows.find_new(settings, reading, Mark("", time=299.0)))
    assert said == [
        "Rows were split at random, not by dataset.time when, since only the latest rows have some of the labels."
    ]
    y = reading.source.data.train.y
    assert all((y[part] == "dog").any() for part in (split.train, split.validation, split.test))


@pytest.mark.parametrize("more", [(), ("dataset.group=who",)])
def test_a_label_too_rare_for_all_parts_trains(place: Path, more: tuple[str, ...]) -> None:
    frame = rows(400, 0).assign(who=lambda f: f.index // 5)
    settings = config(place, *more) if more else config(place, "dataset.drop=[when, who]")
    for only in (range(399, 400), range(395, 400)):
        frame.loc[only, "label"] = "dog"
        frame.iloc[:300].to_parquet(place / "in" / "0.parquet")
        frame.iloc[300:].to_parquet(place / "in" / "1.parquet")
        reading = new_rows.read(settings)
        split, said = divide(settings, reading, np.arange(400) >= 300)
        y = reading.source.data.train.y
        assert (y[split.train] == "dog").any()
        assert said in ([], ["Labels with too few rows for the holdout, so that all their rows are for training: dog."])
        if more:
            groups = reading.source.data.train.groups
            assert groups is not None and not set(groups[split.train]) & set(groups[split.test])


@pytest.mark.parametrize("holdout", [0.99, 0.004])
def test_a_holdout_that_leaves_a_part_empty_is_one_sentence(place: Path, holdout: float) -> None:
    settings = config(place, f"production.holdout={holdout}")
    reading = new_rows.read(settings)
    with pytest.raises(DataError, match=rf"^production\.holdout={holdout:g} with 100 new and 0 old rows gives"):
        divide(settings, replace(reading, source=taken(reading.source, 100)), np.ones(100, bool))


def taken(source: Source, n: int) -> Source:
    data = replace(source.data, train=source.data.train.take(np.arange(n)))
    return replace(source, data=data, kept=source.kept[:n])


@pytest.mark.slow
def test_a_champion_without_missing_values_is_asked_about_rows_that_have_some(place: Path) -> None:
    first = trained(config(place), None)
    rows(200, 1).assign(a=lambda f: f["a"].where(f.index % 4 > 0)).to_parquet(place / "in" / "1.parquet")
    settings = config(place, "dataset.missing=impute")
    found = promotion.inspect_data(settings, known(first))
    assert found.drift is not None and [shift.name for shift in found.drift.inputs if shift.drifted] == ["a"]
    second = trained(settings, known(first))
    assert second.champion is not None and second.champion.n_test == second.score.n_test == 60
    assert promotion.inspect_data(settings, known(second)).new == 0
    rows(200, 2).assign(a=lambda f: f["a"].where(f.index % 4 > 0)).to_parquet(place / "in" / "2.parquet")
    again = promotion.inspect_data(settings, known(second)).drift
    assert again is not None and trained(settings, known(second)).champion is not None


@pytest.mark.slow
def test_columns_come_in_any_order_and_those_that_are_absent_are_named(place: Path) -> None:
    first = trained(config(place), None)
    timed = known(first)
    frame = rows(200, 1)[["b", "when", "label", "a"]].assign(c=0.5)
    (place / "in" / "0.parquet").unlink()  # so that the first file says the order
    frame.to_parquet(place / "in" / "1.parquet")
    settings = config(place, "production.lost_share=1")
    found = promotion.inspect_data(settings, timed)
    assert found.drift is not None and found.drift.sentences == ["Nothing has drifted."]
    made = promotion.challenge(settings, timed)
    assert made.champion is not None and made.champion.error < 0.1
    frame.drop(columns="a").to_parquet(place / "in" / "1.parquet")
    for step in (promotion.inspect_data, promotion.challenge):
        with pytest.raises(DataError, match=r"^Column 'a' is missing; the champion needs it: "):
            step(settings, timed)


@pytest.mark.slow
def test_words_that_only_training_texts_have_do_not_look_like_drift(place: Path) -> None:
    def texts(n: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        y = rng.integers(2, size=n)
        words = np.minimum(rng.zipf(1.3, size=(n, 12)), 2000) + 3000 * (rng.random((n, 12)) < 0.2 + 0.3 * y[:, None])
        said = [" ".join(f"w{word}" for word in row) for row in words]
        return pd.DataFrame({"said": said, "label": np.array(["ant", "bee"])[y]})

    linear = "methods={ours: {estimator: ldsvm, params: {map: linear, max_iter: 5}, search: {C: [1]}}}"
    texts(300, 0).to_parquet(place / "in" / "0.parquet")
    settings = config(place, "dataset.drop=[]", "dataset.text=said", "features=[tfidf]", linear)
    first = trained(settings, None)
    texts(300, 1).to_parquet(place / "in" / "1.parquet")
    drift = promotion.inspect_data(settings, known(first)).drift
    assert drift is not None and len(drift.inputs) > 300 and drift.sentences == ["Nothing has drifted."]
    assert trained(settings, known(first)).champion is not None


@pytest.mark.slow
def test_an_overfitted_map_does_not_look_like_drift(place: Path) -> None:
    def wide(n: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(rng.normal(size=(n, 60)), columns=[f"x{d}" for d in range(60)])
        return table.assign(label=np.where(table["x0"] + 0.5 * rng.normal(size=n) > 0, "ant", "bee"))

    (place / "in" / "0.parquet").unlink()
    wide(200, 0).to_parquet(place / "in" / "0.parquet")
    flexible = (
        "methods={ours: {estimator: ldsvm, params: {gamma: 0.05, n_basis: 110, C: 100, max_iter: 5}},"
        " linear: {estimator: linear_svm}}"
    )
    settings = config(place, "dataset.drop=[]", flexible)
    first = trained(settings, None)
    X, y = promotion.challenge(settings, None).prepared.arrays("train", "original")
    assert (first.pipeline.predict(pd.DataFrame(X, columns=[f"x{d}" for d in range(60)])) == y).mean() > 0.94
    assert first.score.error > 0.15  # so the map knows its training rows by heart
    wide(300, 1).to_parquet(place / "in" / "1.parquet")
    drift = promotion.inspect_data(settings, known(first)).drift
    assert drift is not None and not drift.latent.drifted and drift.latent.psi < 0.5
    assert drift.sentences == ["Nothing has drifted."]


def test_times_that_come_or_go_are_refused(place: Path) -> None:
    settings = config(place)
    then = new_rows.mark(new_rows.read(settings))
    timed = config(place, "dataset.drop=[]", "dataset.time=when")
    with pytest.raises(DataError, match=r"^dataset\.time is when, but the champion was trained without it"):
        new_rows.find_new(timed, new_rows.read(timed), then)


def test_a_new_file_that_sorts_before_the_old_ones_is_the_new_one(place: Path) -> None:
    settings = config(place, "dataset.missing=drop")
    then = new_rows.mark(new_rows.read(settings))
    frame = rows(20, 1).assign(a=lambda f: f["a"].where(np.arange(20) > 4))  # five rows are left out on reading
    frame.to_parquet(place / "in" / "-1.parquet")
    new = new_rows.find_new(settings, new_rows.read(settings), then)
    assert np.flatnonzero(new).tolist() == list(range(15)) and len(new) == 315


def test_data_of_the_catalogue_are_new_when_their_content_is(tmp_path: Path) -> None:
    paths = [f"paths.cache={tmp_path / 'cache'}", f"paths.runs={tmp_path / 'runs'}"]
    settings = load_config("conf/production/digits.yaml", paths, root=ROOT)
    reading = new_rows.read(settings)
    then = new_rows.mark(reading)
    assert then == Mark(reading.source.data.sha256, rows=1797)
    assert not new_rows.find_new(settings, reading, then).any()
    assert new_rows.find_new(settings, reading, Mark("another")).all()


def shift(name: str, drifted: bool) -> Shift:
    return Shift(name, 1.0 if drifted else 0.0, 0.0 if drifted else 1.0, drifted)


def moved(inputs: int, unknown: tuple[str, ...] = ()) -> Drift:
    return Drift(tuple(shift(str(i), i < inputs) for i in range(4)), shift("label", False), shift("l", False), unknown)


@pytest.mark.parametrize(
    ("new", "drift", "rules", "action"),
    [
        (99, None, {}, "skip"),
        (100, moved(0), {}, "retrain"),
        (100, moved(1), {}, "retrain"),
        (100, moved(2), {}, "retrain"),
        (100, moved(3), {}, "alarm"),
        (100, moved(4), {"alarm_share": 1}, "retrain"),
        (100, moved(1), {"alarm_share": 0}, "alarm"),
        (100, moved(0, ("dog",)), {}, "alarm"),
        (100, moved(0, ("dog",)), {"unknown_labels": "retrain"}, "retrain"),
    ],
)
def test_rows_and_drift_decide(new: int, drift: Drift | None, rules: dict[str, Any], action: str) -> None:
    wanted = ProductionConfig.model_validate({"model": "m", "drift": rules})
    assert retraining.decide(wanted, Changes(new), drift).action == action


@pytest.mark.parametrize(
    ("found", "drift", "rules", "action", "said"),
    [
        (Changes(100, 300, lost=10), moved(0), {}, "retrain", "10 of the champion's 300 rows are no longer there."),
        (
            Changes(100, 300, lost=151),
            moved(0),
            {},
            "alarm",
            "no longer there, more than production.lost_share of 0.5 allows.",
        ),
        (Changes(100, 300, lost=300), moved(0), {"lost_share": 1}, "retrain", "300 of the champion's 300 rows"),
        (
            Changes(9, 300, lost=300),
            None,
            {},
            "alarm",
            "alarm: 300 of the champion's 300 rows are no longer there, more than",
        ),
        (Changes(9, 300, lost=30), None, {}, "skip", "30 of the champion's 300 rows are no longer there."),
        (Changes(100, 300, lost=300), moved(4), {}, "alarm", "no longer there, more than production.lost_share of 0.5"),
        (Changes(50, 300, late=30), None, {}, "skip", "30 rows came late: "),
        (Changes(0, 300, late=100), None, {}, "alarm", "the champion was trained with a wrong time"),
        (Changes(0, 300, late=100), None, {"acknowledge": True}, "skip", "100 rows came late: "),
        (Changes(200, 300, late=100), moved(0), {}, "retrain", "100 rows came late: "),
        (Changes(100, 300), moved(4), {}, "alarm", "run again with production.acknowledge=true."),
        (Changes(100, 300), moved(4), {"acknowledge": True}, "retrain", "A person has acknowledged this."),
        (Changes(100, 300), moved(0, ("dog",)), {"acknowledge": True}, "retrain", "A person has acknowledged this."),
        (
            Changes(100),
            moved(0),
            {"holdout": 0.001},
            "skip",
            "production.holdout=0.001 leaves 0 of them for the holdout; 10",
        ),
        (Changes(100), moved(0), {"holdout": 0.1}, "retrain", "100 new rows."),
    ],
)
def test_what_is_gone_late_or_acknowledged_is_told(
    found: Changes, drift: Drift | None, rules: dict[str, Any], action: str, said: str
) -> None:
    decision = retraining.decide(ProductionConfig.model_validate({"model": "m", **rules}), found, drift)
    assert decision.action == action and said in decision.sentence


def test_numbers_and_reasons_read_as_sentences() -> None:
    assert moved(1).sentences == ["1 of 4 inputs has drifted (stability index): 0 (1.00)."]
    rules = ProductionConfig.model_validate({"model": "m", "drift": {"psi": 0.2}})
    decision = retraining.decide(rules, Changes(100, 300, lost=200, late=200), moved(4, ("dog",)))
    causes = ["200 of", "200 rows came", "New labels raise", "100 % of"]
    starts = [*causes, "100 new", "4 of 4", "New labels: dog.", "Look"]
    assert [said.startswith(start) for said, start in zip(decision.reasons, starts, strict=True)] == [True] * 8


def test_an_acknowledgement_or_a_trial_in_shadow_asks_for_the_same_challenger(place: Path) -> None:
    rolled_out = "production.rollout={shadow_rows: 9, force: true}", "production.keep={versions: 1, days: 1}"
    plain, given = config(place), config(place, "production.acknowledge=true", *rolled_out)
    assert (
        promotion.settings_digest(plain)
        == promotion.settings_digest(given)
        != promotion.settings_digest(config(place, "seed=1"))
    )


def test_the_search_is_around_the_champion() -> None:
    method = MethodConfig(estimator="ldsvm", params={"gamma": 0.1}, search={"n_basis": [50, 100], "C": [1.0]})
    near = retraining.search_around(method, {"gamma": 0.2, "n_basis": 90, "C": 0.3, "map": "adaptive_rbf"}, RULES)
    assert near.params == {"gamma": 0.1}  # as the file says: only what is searched is the champion's
    assert near.search == {"n_basis": [30, 90, 270], "C": pytest.approx([0.1, 0.3, 0.9])}
    whole = retraining.search_around(method, {"n_basis": 90, "C": 1}, RULES)
    assert whole.space["C"] == pytest.approx([1 / 3, 1, 3])
    low = ProductionConfig.model_validate({"model": "m", "gate": {"n_basis": {"threshold": 100}}})
    assert retraining.search_around(method, {"n_basis": 90, "C": 1.0}, low).space["n_basis"] == [30, 90]
    assert near.strategy is None
    few = retraining.search_around(method, {"n_basis": 90, "C": 0.3}, ProductionConfig(model="m", trials=4))
    assert few.strategy is not None and few.strategy.n_candidates == 4
    assert retraining.search_around(method, {"C": None, "gamma": "scale"}, RULES).search == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("production.method=linear", r'production.method "linear"'),
        ("split.repeats=2", "production needs one model"),
        ("production.gate.error_percents=1", "error_percents"),
        ("production.holdout=1", "production.holdout"),
        ("production.model='a b'", "production.model"),
    ],
)
def test_what_production_cannot_mean_is_refused(place: Path, change: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(place, change)


@pytest.mark.slow
def test_drift_of_a_mixed_table_is_told_by_columns(place: Path) -> None:
    def table(n: int, seed: int, towns: tuple[str, ...] = ("Ulm", "Bonn"), gaps: float = 0.0) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        found = rows(n, seed).assign(town=rng.choice(towns, n), paid=rng.choice(["yes", "no"], n))
        return found.assign(b=found["b"].mask(rng.random(n) < gaps))

    table(300, 0).to_parquet(place / "in" / "0.parquet")
    settings = config(place, "features=[table]")
    first = trained(settings, None)
    assert first.facts["profile"]["names"] == ["a", "b", "town", "paid"]
    table(200, 1).to_parquet(place / "in" / "1.parquet")
    look = promotion.inspect_data(settings, known(first))
    assert look.drift is not None and look.drift.sentences == ["Nothing has drifted."]
    table(200, 1, towns=("Bonn", "Kiel"), gaps=0.2).to_parquet(place / "in" / "1.parquet")
    later = promotion.inspect_data(settings, known(first))
    assert later.drift is not None and later.drift.share == 0.5
    assert later.drift.sentences[0].startswith("1 of 4 inputs has drifted (stability index): town (")
    assert later.drift.sentences[1].startswith("The share of missing values has changed in b (0 % to ")
    old = {key: value for key, value in first.facts["profile"].items() if key not in ("values", "gaps")}
    inputs = retraining.count_inputs(np.zeros((5, first.pipeline[:-1].transform(table(5, 2)).shape[1])))
    before = first.facts | {"profile": old | {key: getattr(inputs, key) for key in ("names", "edges", "counts")}}
    assert (
        promotion.inspect_data(settings, Champion.of(first.pipeline, before)).drift is not None
    )  # of an earlier release


@pytest.mark.slow
def test_new_rows_of_a_mixed_table_are_checked_against_what_training_saw_or_people_allow(place: Path) -> None:
    def table(n: int, seed: int, town: str) -> pd.DataFrame:
        return rows(n, seed).assign(a=np.clip(rows(n, seed)["a"], -1, 1), town=np.where(np.arange(n) % 2, "Ulm", town))

    table(300, 0, "Bonn").to_parquet(place / "in" / "0.parquet")
    settings = config(place, "features=[table]")
    first = trained(settings, None)
    champion = replace(known(first), pipeline=loads(dumps(first.pipeline)))  # as the registry keeps it
    table(200, 1, "Kiel").assign(b=np.r_[np.nan, np.zeros(199)]).to_parquet(place / "in" / "1.parquet")
    where = "1.parquet: row 1, counted from 1 without a header, column"
    found = [
        f"{where} 'b' has no value; training saw no missing values.",
        f"{where} 'town' is 'Kiel', and 99 more rows are like this; training saw the values 'Bonn', 'Ulm'.",
        "Such rows are used anyway; production.schema=refuse would refuse them.",
    ]
    assert promotion.inspect_data(settings, champion).decision.reasons[-4:-1] == tuple(found)
    ignored = promotion.inspect_data(config(place, "features=[table]", "production.schema=ignore"), champion)
    assert not set(found) & set(ignored.decision.reasons)
    refusing = config(place, "features=[table]", "production.schema=refuse")
    edit = re.escape(f"edit {settings.results / 'schema.yaml'}.")
    with pytest.raises(
        DataError, match=rf"'b' has no value.*\n.*'Kiel'.*\nSo nothing was trained .*; to allow more, {edit}"
    ):
        promotion.inspect_data(refusing, champion)
    prepared = promotion.challenge(settings, None).prepared
    settings.results.mkdir(parents=True, exist_ok=True)
    save([prepared], settings.results / "prepared.json")
    file = settings.results / "schema.yaml"
    with pytest.raises(DataError, match="Kiel"):  # nobody has edited it, so the model's own counts
        promotion.inspect_data(refusing, champion)
    file.write_text("a: {least: -1, largest: 1}\nb: {gaps: 0.1}\ntown: {values: [Bonn, Ulm, Kiel]}\n")
    assert promotion.inspect_data(refusing, champion).decision.reasons == ignored.decision.reasons
