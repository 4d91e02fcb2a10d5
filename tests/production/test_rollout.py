"""A challenger in shadow: what is counted is a plain comparison, the output is untouched, aliases end right."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from flows import ROOT
from flows.in_shadow import in_shadow
from ldsvm import LDSVMClassifier
from ldsvm.datasets.raw_table import RawTable
from ldsvm.datasets.table_step import TableFeatures
from ldsvm.experiment.compare.judge import wilson
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.production import RolloutConfig
from ldsvm.experiment.storing import dumps
from ldsvm.production import retention, rollout, scoring
from ldsvm.production.registry import PREVIOUS, SHADOW, Registry, RegistryFailed, Version
from ldsvm.production.scoring_rows import Scoring
from ldsvm.production.shadow import Agreement, Shadow
from ldsvm.report.retraining import _rolled_out
from ldsvm.tracking.client import Tracker
from ldsvm.tracking.removal import remove
from ldsvm.tracking.served import MODEL

pytestmark = [
    pytest.mark.slow,  # MLflow and its store
    pytest.mark.filterwarnings("ignore:The ..noload.. loader strategy is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType"),
]
NAMES = ["a", "b", "c"]
Register = Callable[..., Version]


@cache
def fitted(seed: int = 0, columns: tuple[str, ...] = tuple(NAMES)) -> Any:
    """Models of different seeds are trained on different rows, so they differ."""
    rng = np.random.default_rng(seed)
    y = np.array(["x", "y", "z"])[np.arange(120) % 3]
    X = (rng.normal(size=(120, len(columns))) + (np.arange(120) % 3)[:, None]).astype(np.float32)
    model = LDSVMClassifier(n_basis=8, random_state=0)
    return make_pipeline(StandardScaler(), model).fit(pd.DataFrame(X, columns=list(columns)), y)


@cache
def stored(seed: int) -> bytes:
    """The file of a model, written once."""
    return dumps(fitted(seed))


def table(n: int = 250, seed: int = 1) -> pd.DataFrame:
    X = 1 + 1.5 * np.random.default_rng(seed).normal(size=(n, 3))
    return pd.DataFrame(X.astype(np.float32), columns=NAMES)


def job(folder: Path, output: str = "out.parquet", given: str = "in") -> Scoring:
    return Scoring(str(folder / given), folder / output, tuple(NAMES), None, (), 40, "m version 1")


@pytest.fixture
def rows(tmp_path: Path) -> pd.DataFrame:
    """Two files, whose border is inside of a chunk."""
    (tmp_path / "in").mkdir()
    found = table()
    found.iloc[:110].to_parquet(tmp_path / "in" / "0.parquet")
    found.iloc[110:].to_parquet(tmp_path / "in" / "1.parquet")
    return found


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(Tracker(tmp_path / "runs", "e"), "m")


@pytest.fixture
def register(registry: Registry, tmp_path: Path) -> Register:
    """Registers a model with files of its own, as a challenger of a champion."""

    def make(seed: int = 0, against: Version | None = None) -> Version:
        with registry.tracker.run("retrain", kind="retrain") as run:
            place = tmp_path / "models" / run.id
            place.mkdir(parents=True)
            (place / MODEL).write_bytes(stored(seed))
            return registry.register(run, str(place), {"run": run.id}, against)

    return make


def again(registry: Registry, one: Version, against: Version) -> Version:
    """Register a version once more, which is quick."""
    return registry.register(registry.tracker.get(one.run_id), one.source, {"run": one.run_id}, against)


def direct(one: Any, other: Any, X: pd.DataFrame) -> dict[str, tuple[int, int]]:
    said, same = one.predict(X), one.predict(X) == other.predict(X)
    return {name: (int((said == name).sum()), int(same[said == name].sum())) for name in np.unique(said).tolist()}


def test_agreement_is_a_comparison_of_predictions_and_the_output_is_untouched(
    tmp_path: Path, rows: pd.DataFrame
) -> None:
    scoring.score(job(tmp_path, "alone.parquet"), fitted())
    shadow = Shadow("m version 2", fitted(1))
    scoring.score(job(tmp_path), fitted(), shadow=shadow)
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "alone.parquet").read_bytes()
    found = Agreement.of(shadow.counts)
    assert dict(found.classes) == direct(fitted(), fitted(1), rows) and 0 < found.same < found.rows == len(rows)
    by_file = [sum(n for n, _ in one.values()) for one in shadow.counts.values()]
    assert by_file == [110, 140] and found.interval == wilson(found.same, 250)
    itself = Shadow("m version 1", fitted())
    scoring.score(job(tmp_path), fitted(), shadow=itself)
    assert Agreement.of(itself.counts).share == 1.0
    assert " 100.0 % of 250 rows (95 % interval 98.5 % to 100.0 %)" in f" {Agreement.of(itself.counts).text}"


def test_mixed_tables_are_read_once_for_both_and_other_roles_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "town": rng.choice(["Ulm", "Bonn"], 90)})
    roles = {"a": "number", "town": "category"}

    def model(labels: Any, roles: dict[str, str]) -> Any:
        steps = RawTable(roles).fit(None), TableFeatures(roles), LDSVMClassifier(n_basis=5, random_state=0)
        return make_pipeline(*steps).fit(frame[[*roles]], labels)

    one = model(np.where(frame["a"] > 0, "x", "y"), roles)
    two = model(np.where((frame["a"] > 0.3) | (frame["town"] == "Ulm"), "x", "y"), roles)
    frame.to_parquet(tmp_path / "in.parquet")
    asked = replace(job(tmp_path, given="in.parquet"), columns=("a", "town"), roles=roles)
    scoring.score(asked, one, shadow=(shadow := Shadow("m version 2", two)))
    assert dict(Agreement.of(shadow.counts).classes) == direct(one, two, frame)
    assert 0 < Agreement.of(shadow.counts).share < 1
    scoring.score(asked, one, shadow=(shadow := Shadow("m version 3", model(frame["town"], {"a": "number"}))))
    assert shadow.failure is not None and "it reads columns in other roles than the champion" in shadow.failure


def test_a_stopped_scoring_goes_on_without_asking_again_and_asks_another_shadow_for_all(
    tmp_path: Path, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(scoring, "_gather", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            scoring.score(job(tmp_path), fitted(), shadow=Shadow("m version 2", fitted(1)))
        with pytest.raises(KeyboardInterrupt):  # all chunks are there, so it is not asked: it could not answer
            scoring.score(job(tmp_path), fitted(), shadow=(again := Shadow("m version 2", None)))
        assert again.failure is None and dict(Agreement.of(again.counts).classes) == direct(fitted(), fitted(1), rows)
    other = Shadow("m version 3", fitted(2))
    scoring.score(job(tmp_path), fitted(), shadow=other)
    assert dict(Agreement.of(other.counts).classes) == direct(fitted(), fitted(2), rows)


def test_what_fails_in_shadow_is_one_sentence_and_the_champion_answers(tmp_path: Path, rows: pd.DataFrame) -> None:
    scoring.score(job(tmp_path, "alone.parquet"), fitted())
    for model, why in ((fitted(0, ("a", "new")), "column 'new' not among those that the champion reads"), (None, "")):
        said: list[str] = []
        shadow = Shadow("m version 2", model, said.append)
        assert scoring.score(job(tmp_path), fitted(), shadow=shadow) == 250
        assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "alone.parquet").read_bytes()
        assert len(said) == 1 and said[0].startswith("m version 2, in shadow, could not answer (") and why in said[0]
        assert said[0].endswith("; the champion's answers are not affected") and shadow.counts == {}


def scored(registry: Registry, champion: Version, folder: Path, output: str = "out.parquet", given: str = "in") -> Any:
    found = rollout.load(registry, champion, lambda sentence: None)
    assert found is not None
    scoring.score(job(folder, output, given), registry.model(champion), shadow=found[1])
    return rollout.remember(registry, *found)


def test_rows_add_up_over_scorings_and_the_same_rows_count_once(
    tmp_path: Path, rows: pd.DataFrame, registry: Registry, register: Register
) -> None:
    one = register(0)
    registry.promote(one, None)
    two = register(1, one)
    assert registry.put_in_shadow(two, one) and registry.get(SHADOW) == two and registry.get() == one
    rules = RolloutConfig(shadow_rows=300, least_agreement=0)
    with pytest.raises(RegistryFailed, match=r"^m version 2 is not promoted: 0 rows were compared; production\."):
        rollout.promote(registry, rules)
    assert scored(registry, one, tmp_path).rows == 250
    assert scored(registry, one, tmp_path, "again.parquet").rows == 250
    table(60, 2).to_parquet(tmp_path / "in" / "2.parquet")  # the folder has grown: one file is new
    every = scored(registry, one, tmp_path)
    whole = pd.concat([rows, table(60, 2)])
    assert every.rows == 310 and dict(every.classes) == direct(fitted(), fitted(1), whole)
    (tmp_path / "half").write_bytes(b"{")  # what a kill may leave
    registry.client.log_artifact(two.run_id, str(tmp_path / "half"), rollout.FOLDER)
    registry.client.log_text(two.run_id, '{"a": ', f"{rollout.FOLDER}/0.json")
    assert rollout.compared(registry, two).rows == 310
    assert registry.tags(two)["ldsvm.agreement"] == every.text
    strict = RolloutConfig(shadow_rows=310, least_agreement=1)
    with pytest.raises(RegistryFailed, match=r"of 310 rows; production\.rollout\.least_agreement requires 100\.0"):
        rollout.promote(registry, strict)
    assert registry.get() == one
    said = rollout.promote(registry, rules)
    assert said.startswith("m version 2 is the champion now, m version 1 is previous; in shadow it agreed with the")
    assert (registry.get(), registry.get(PREVIOUS), registry.get(SHADOW)) == (two, one, None)
    assert registry.tags(two)["ldsvm.verdict"] == "promoted"
    with pytest.raises(
        RegistryFailed, match=r"^No version of m is in shadow; to put one there, set production\.rollout"
    ):
        rollout.promote(registry, rules)


def test_a_shadow_of_another_champion_is_neither_asked_nor_promoted(registry: Registry, register: Register) -> None:
    one = register(0)
    registry.promote(one, None)
    registry.promote(two := register(1, one), one)
    three = register(2, two)
    assert not registry.put_in_shadow(three, one) and registry.get(SHADOW) is None  # the champion has changed
    assert registry.put_in_shadow(three, two)
    registry.rollback()
    said: list[str] = []
    assert rollout.load(registry, one, said.append) is None
    assert said[0].startswith(
        "m version 3 has challenged version 2, but m version 1 is the champion, so it is no longer in"
    )
    with pytest.raises(RegistryFailed, match="is no longer in shadow; the next challenger"):
        rollout.promote(registry, RolloutConfig(force=True))
    assert registry.get() == one
    registry.rollback()
    assert rollout.load(registry, two, said.append) is not None  # it stands beside its champion again
    four = register(3, two)
    registry.put_in_shadow(four, two)
    assert registry.get(SHADOW) == four and registry.tags(three)["ldsvm.verdict"] == "replaced in shadow"
    registry.promote(five := register(4, two), two)  # at once, by a file without shadow_rows
    assert registry.get() == five and registry.get(SHADOW) is None
    assert registry.next_number(two) == 4  # three challengers had their looks, in shadow or not


def test_a_shadow_that_failed_is_promoted_by_force_alone(
    tmp_path: Path, rows: pd.DataFrame, registry: Registry, register: Register
) -> None:
    one = register(0)
    registry.promote(one, None)
    two = register(1, one)
    registry.put_in_shadow(two, one)
    said: list[str] = []
    found = rollout.load(registry, one, said.append)
    assert found is not None
    found[1].pipeline = None
    scoring.score(job(tmp_path), registry.model(one), shadow=found[1])
    assert rollout.remember(registry, *found).rows == 0
    with pytest.raises(
        RegistryFailed, match="is not promoted: it has failed: m version 2, in shadow, could not answer"
    ):
        rollout.promote(registry, RolloutConfig())
    whole = (Path(two.source) / MODEL).read_bytes()
    (Path(two.source) / MODEL).write_bytes(b"damaged")
    assert rollout.load(registry, one, said.append) is None
    assert said[1].startswith("no shadow comparison with m version 1: m version 2 cannot be loaded")
    with pytest.raises(RegistryFailed, match=r"^m version 2 is not promoted: its model cannot be loaded\.$"):
        rollout.promote(registry, RolloutConfig(force=True))
    (Path(two.source) / MODEL).write_bytes(whole)
    assert rollout.promote(registry, RolloutConfig(force=True)) == (
        "m version 2 is the champion now, m version 1 is previous"
    )


def test_a_scoring_says_and_records_agreement_and_promotes_where_the_file_says_so(
    tmp_path: Path, rows: pd.DataFrame, registry: Registry, register: Register, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    news: list[Any] = []
    monkeypatch.setattr("flows.in_shadow.raise_alarm", lambda _, kind, said, **more: news.append((kind, more)))
    monkeypatch.setattr("flows.in_shadow.timeline.remember", lambda _, registry, event: news.append(event))
    registry.promote(one := register(0), None)
    registry.put_in_shadow(two := register(1, one), one)
    score = {"input": "in", "output": "out.parquet"}
    given = {"shadow_rows": 300, "least_agreement": 0.2, "promote": "automatic"}

    def scored(folder: str, **more: str) -> tuple[Any, str]:
        part = {"model": "m", "score": {**score, **more}, "rollout": given}
        asked = load_config("conf/production/digits.yaml", [f"production={json.dumps(part)}"], root=ROOT)
        capsys.readouterr()
        with registry.tracker.run("score", kind="score") as run, in_shadow(asked, registry, one, run) as shadow:
            scoring.score(job(tmp_path, given=folder), fitted(), shadow=shadow)
        return registry.client.get_run(run.id).data, capsys.readouterr().err

    assert scored("in", alias="previous")[0].metrics == {}  # another version answers: nothing is compared
    data, said = scored("in")
    every = rollout.compared(registry, two)
    assert data.metrics["shadow_agreement_percent"] == 100 * every.share and data.metrics["shadow_rows"] == 250
    assert f"m version 2, in shadow, agrees with m version 1 on {every.text}" in said
    assert "it may not be promoted yet: 250 rows were compared; production.rollout.shadow_rows requires 300" in said
    assert registry.get() == one
    (tmp_path / "more").mkdir()
    table(60, 2).to_parquet(tmp_path / "more" / "0.parquet")
    said = scored("more")[1]
    assert "in all scorings so far: " in said and "m version 2 is the champion now, m version 1 is previous; in" in said
    assert registry.get() == two and registry.get(SHADOW) is None
    (kind, more), event = news
    assert (kind, more, event.outcome, event.champion) == ("promoted", {"version": "2"}, "promoted", "2")


def test_a_rollback_keeps_a_champion_that_answers_and_needs_none(registry: Registry, register: Register) -> None:
    registry.promote(one := register(0), None)
    registry.promote(two := again(registry, one, one), one)
    (Path(one.source) / MODEL).rename(Path(one.source) / "away")
    with pytest.raises(RegistryFailed, match=r"^m version 1 is not promoted: its model cannot be loaded\.$"):
        rollout.rollback(registry)
    assert (registry.get(), registry.get(PREVIOUS)) == (two, one)
    (Path(one.source) / "away").rename(Path(one.source) / MODEL)
    registry.client.delete_model_version("m", "2")  # by hand, in a hurry, on MLflow's page
    assert rollout.rollback(registry) == (one, None) and (registry.get(), registry.get(PREVIOUS)) == (one, None)


def test_a_version_that_is_champion_and_shadow_by_hand_is_neither_asked_nor_promoted(
    registry: Registry, register: Register
) -> None:
    registry.promote(one := register(0), None)
    registry.put_in_shadow(two := again(registry, one, one), one)
    registry.client.set_registered_model_alias("m", "champion", "2")
    said: list[str] = []
    assert rollout.load(registry, two, said.append) is None
    assert said == ["m version 2 is both champion and shadow, so there is nothing to compare or to promote"]


@pytest.mark.parametrize("force", [False, True])
def test_a_move_to_a_version_that_was_removed_by_hand_holds_nothing_up(
    force: bool, registry: Registry, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.promote(one := register(0), None)
    registry.put_in_shadow(again(registry, one, one), one)
    with monkeypatch.context() as patch, suppress(Killed):
        killed_after(patch, registry.client.client, 1 + force)
        rollout.promote(registry, RolloutConfig(force=True))
    registry.client.delete_model_version("m", "2")
    assert (registry.get(), registry.get(PREVIOUS), registry.get(SHADOW)) == (one, None, None)


def test_a_scoring_during_which_the_shadow_was_promoted_does_not_offer_to_promote_it(
    tmp_path: Path, rows: pd.DataFrame, registry: Registry, register: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.promote(one := register(0), None)
    registry.put_in_shadow(two := register(1, one), one)
    part = {"model": "m", "score": {"input": "in", "output": "o.csv"}, "rollout": {"least_agreement": 0.2}}
    asked = load_config("conf/production/digits.yaml", [f"production={json.dumps(part)}"], root=ROOT)
    for promoted in (False, True):
        with registry.tracker.run("score", kind="score") as run, in_shadow(asked, registry, one, run) as shadow:
            scoring.score(job(tmp_path), fitted(), shadow=shadow)
            if promoted:
                registry.promote(two, one)
        said = capsys.readouterr().err
        assert ("it may be promoted" in said, "it may not be promoted" in said) == (not promoted, promoted)
    assert "it was promoted, replaced or removed meanwhile" in said


class Killed(Exception):
    """What stands for a kill: nothing after it is done."""


def killed_after(patch: pytest.MonkeyPatch, client: Any, writes: int) -> None:
    """Let the client do so many writes to the registry, and then nothing more."""
    done = 0

    def written(real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal done
            if done == writes:
                raise Killed
            done += 1
            return real(*args, **kwargs)

        return call

    for name in [name for name in dir(client) if name.startswith(("set_registered_model", "delete_"))]:
        patch.setattr(client, name, written(getattr(client, name)))


def test_a_kill_while_the_shadow_is_promoted_leaves_the_old_order_or_the_new(
    registry: Registry, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.promote(zero := register(), None)
    registry.promote(again(registry, zero, zero), zero)
    for writes in range(5):
        champion, previous = registry.require(), registry.require(PREVIOUS)
        registry.put_in_shadow(shadow := again(registry, zero, champion), champion)
        with monkeypatch.context() as patch:
            killed_after(patch, registry.client.client, writes)
            with pytest.raises(Killed):
                rollout.promote(registry, RolloutConfig(shadow_rows=0))
        found = registry.get(), registry.get(PREVIOUS), registry.get(SHADOW)
        assert found == ((champion, previous, shadow) if writes == 0 else (shadow, champion, None))


def numbers(registry: Registry) -> list[int]:
    return [*registry.versions()]


def test_old_versions_are_removed_with_their_files_but_for_those_with_an_alias(
    registry: Registry, register: Register
) -> None:
    one = register(0)
    registry.promote(one, None)
    registry.promote(two := register(0, one), one)
    others = [register(0, two) for _ in range(5)]
    three, four, five, six, seven = others
    registry.put_in_shadow(three, two)
    registry.client.set_registered_model_alias("m", "mine", str(four.number))
    registry.client.create_model_version("m", one.source)  # by somebody else, so it stays
    shared = again(registry, five, two)
    looks, facts = registry.next_number(two), registry.challenger_facts(two)
    assert retention.remove_versions(registry, None) == [] and retention.remove_versions(registry, 9) == []
    assert retention.remove_versions(registry, 1) == [
        "m: versions 5, 6, 7 removed (production.keep.versions is 1); their MLflow runs are kept"
    ]
    assert numbers(registry) == [1, 2, 3, 4, 8, 9] and registry.aliased() == {1, 2, 3, 4}
    assert Path(five.source).exists()  # version 9 has the same files
    assert not Path(six.source).exists() and not Path(seven.source).exists()
    assert registry.model(shared) is not None and registry.model(three) is not None
    # the gate counts as before, and no rows are judged twice
    assert registry.challenger_facts(two) == facts and len(facts) == 6
    assert registry.next_number(two) == looks + 1
    registry.client.delete_registered_model_tag("m", f"ldsvm.looks.{two.number}")
    assert registry.next_number(two) == 7  # in a registry that did not count looks
    assert retention.remove_versions(registry, 1) == []
    assert register(0, two).number == 10


def test_a_kill_while_versions_are_removed_is_made_good_the_next_time(
    registry: Registry, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.promote(one := register(), None)
    last = register(0, one)
    for writes in range(4):
        old, last = last, register(0, one)
        facts = registry.challenger_facts(one)
        with monkeypatch.context() as patch:
            killed_after(patch, registry.client.client, writes)
            with suppress(Killed):
                retention.remove_versions(registry, 1)
        assert registry.challenger_facts(one) == facts
        if writes == 1:  # it is only meant to be removed, and somebody gives it an alias
            registry.client.set_registered_model_alias("m", "mine", str(old.number))
            retention.remove_versions(registry, 1)
            assert numbers(registry) == [1, old.number, last.number] and Path(old.source).exists()
            registry.client.delete_registered_model_alias("m", "mine")
        retention.remove_versions(registry, 1)
        assert numbers(registry) == [1, last.number] and not Path(old.source).exists() and Path(last.source).exists()
        assert registry.challenger_facts(one) == facts and "source" not in registry.removed()[old.number]


def test_a_logged_model_leaves_the_store_with_its_files(tmp_path: Path, registry: Registry) -> None:
    with registry.tracker.run("retrain", kind="retrain") as run:
        source = run.model(fitted()[-1], np.zeros((2, 3)), "m")
    assert len([*(tmp_path / "runs").rglob(MODEL)]) == 1
    for _ in range(2):  # what is gone is no error
        remove(registry.client, source)
        assert not [*(tmp_path / "runs").rglob(MODEL)]
        assert registry.client.search_logged_models([registry.tracker.experiment_id]) == []


def test_what_has_passed_the_gate_is_promoted_or_put_in_shadow_unless_the_champion_has_changed(
    registry: Registry, register: Register
) -> None:
    passed: Any = SimpleNamespace(promote=True, sentence="Promoted: all 2 rules hold.")
    trial, at_once = RolloutConfig(shadow_rows=9), RolloutConfig()
    one = register()
    assert _rolled_out(trial, passed, registry, one, None)[0] == "promoted"  # there is no champion to stand beside
    assert _rolled_out(trial, passed, registry, two := again(registry, one, one), one) == (
        "in shadow",
        "In shadow: all 2 rules hold. It now scores the same rows as m version 1, and may be promoted after 9 rows.",
    )
    assert registry.get() == one and registry.get(SHADOW) == two
    assert _rolled_out(at_once, passed, registry, three := again(registry, one, one), one)[0] == "promoted"
    for rules in (trial, at_once):
        late = again(registry, one, one)
        said = "Refused: meanwhile m version 3 has become the champion."
        assert _rolled_out(rules, passed, registry, late, one) == ("refused", said)
    assert (registry.get(), registry.get(PREVIOUS), registry.get(SHADOW)) == (three, one, None)


def test_a_move_that_a_kill_has_left_is_finished_before_versions_are_removed(
    registry: Registry, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = register(0)
    registry.promote(one, None)
    registry.promote(two := register(0, one), one)
    register(0, two)
    with monkeypatch.context() as patch, suppress(Killed):
        killed_after(patch, registry.client.client, 2)  # for now version 1 has no alias at all
        registry.rollback()
    assert registry.aliased() == {2}
    retention.remove_versions(registry, 1)
    assert numbers(registry) == [1, 2, 3] and (registry.get(), registry.get(PREVIOUS)) == (one, two)


def test_old_scores_are_removed_and_nothing_else(
    tmp_path: Path, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "scores"
    for name in ("old.parquet", "new.parquet", "renamed.parquet", "other.parquet"):
        scoring.score(job(tmp_path, f"scores/{name}"), fitted())
        model = "another version 1" if name == "other.parquet" else "m version 1"
        (place / f"{name}.drift.json").write_text(json.dumps({"model": model}), "utf-8")
    (place / "renamed.parquet").rename(place / "kept.parquet")
    rows.to_parquet(place / "mine.parquet")  # no output of a scoring
    (place / "mine.parquet.drift.json").write_text('{"model": "m version 1"}', "utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(scoring, "_gather", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        for name in ("stopped.csv", "fresh.csv"):
            with suppress(KeyboardInterrupt):
                scoring.score(job(tmp_path, f"scores/{name}"), fitted())
    before = {path.name for path in place.iterdir()}
    for path in place.rglob("*"):
        if path.name not in ("new.parquet", "new.parquet.drift.json") and ".fresh" not in str(path):
            os.utime(path, (time.time() - 10 * 86_400,) * 2)
    assert retention.remove_scores(place / "now.parquet", "m", None) == []
    assert retention.remove_scores(place / "now.parquet", "m", 11) == []
    said = retention.remove_scores(place / "now.parquet", "m", 9)
    assert said == [f"files 'old.parquet', '.stopped.csv.parts' removed from {place} (production.keep.days is 9)"]
    gone = {"old.parquet", "old.parquet.drift.json", ".stopped.csv.parts"}
    assert {path.name for path in place.iterdir()} == before - gone
