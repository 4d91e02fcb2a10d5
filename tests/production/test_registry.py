"""Versions and aliases in the real registry: they move forth and back, once, and what is damaged is told."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier
from ldsvm.production.registry import PREVIOUS, Registry, RegistryFailed
from ldsvm.tracking.client import Tracker

pytestmark = [
    pytest.mark.slow,  # MLflow and its store
    pytest.mark.filterwarnings("ignore:The ..noload.. loader strategy is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType"),
]


@cache
def fitted() -> Any:
    X, y = load_iris(return_X_y=True)
    return make_pipeline(StandardScaler(), LDSVMClassifier(n_basis=10, random_state=0)).fit(X, y)


@pytest.fixture
def version() -> Callable[..., Any]:
    def make(registry: Registry, against: Any = None) -> Any:
        with registry.tracker.run("retrain", kind="retrain") as run:
            source = run.model(fitted(), np.zeros((2, 4)), registry.name)
            found = registry.register(run, source, {"run": run.id}, against)
        registry.describe(found, "# a card")
        return found

    return make


@pytest.fixture
def filed(tmp_path: Path) -> Callable[[Registry], Any]:
    """Registers a folder instead of a model that MLflow has logged, which is quick, for tests that load none."""

    def make(registry: Registry) -> Any:
        (tmp_path / "model").mkdir()
        with registry.tracker.run("retrain", kind="retrain") as run:
            return registry.register(run, str(tmp_path / "model"), {"run": run.id})

    return make


def again(registry: Registry, one: Any, against: Any = None) -> Any:
    """Register a version once more, which is quick."""
    with registry.tracker.run("retrain", kind="retrain") as run:
        return registry.register(run, one.source, {"run": run.id}, against)


def test_a_server_of_mlflow_takes_what_is_registered() -> None:
    """MLflow's own check of a request, which a store in a file does not make."""
    from mlflow.server.handlers import _validate_source_model

    def create(name: str, source: str, run_id: str, tags: dict[str, str], *, model_id: str) -> Any:
        _validate_source_model(source, model_id)
        return SimpleNamespace(version="1", source=source)

    client = SimpleNamespace(create_model_version=create, search_registered_models=lambda _: ["m"])
    tracker: Any = SimpleNamespace(client=client, runs=None)
    registry, run = Registry(tracker, "m"), SimpleNamespace(id="r", text=lambda *_: None)
    registry.alone = nullcontext
    assert registry.register(run, "models:/m-0123", {}).number == 1


def test_aliases_move_forth_and_back_and_a_champion_is_dethroned_once(
    tmp_path: Path, version: Callable[..., Any]
) -> None:
    registry = Registry(Tracker(tmp_path / "runs", "e"), "m")
    assert registry.get() is None
    with pytest.raises(RegistryFailed, match=r"^m has no champion yet \(no model is registered\)"):
        registry.require()
    one = version(registry)
    assert registry.promote(one, None) and not registry.promote(one, None)
    assert registry.get() == one and registry.get(PREVIOUS) is None
    two = again(registry, one, one)
    with registry.tracker.run("killed", kind="retrain") as run:
        three = registry.register(run, two.source, {}, one)
        assert registry.challenger_facts(one) == [{"run": two.run_id}]  # the other one has none yet
    assert registry.challenger_facts(one) == [{"run": two.run_id}, {}] and registry.challengers(one) == [two, three]
    with ThreadPoolExecutor() as pool:  # two retrainings that were judged against the same champion
        done = list(pool.map(lambda v: registry.promote(v, one), [two, three]))
    assert sorted(done) == [False, True] and registry.get(PREVIOUS) == one
    new = registry.get()
    assert registry.rollback() == (one, new)
    assert registry.get() == one and registry.get(PREVIOUS) == new
    assert registry.rollback() == (new, one)
    assert registry.facts(one) == {"run": one.run_id}
    registry.describe(three, "# a card", verdict="refused", error="9.0 %")
    tags = registry.client.get_model_version("m", str(three.number)).tags
    assert tags == {"ldsvm.challenged_version": str(one.number), "ldsvm.verdict": "refused", "ldsvm.error": "9.0 %"}
    # registries of earlier releases have the number under another name
    registry.client.delete_model_version_tag("m", str(three.number), "ldsvm.challenged_version")
    registry.client.set_model_version_tag("m", str(three.number), "ldsvm.champion", str(one.number))
    assert registry.challengers(one) == [two, three]


def test_refused_are_those_that_challenged_this_champion(tmp_path: Path, filed: Callable[[Registry], Any]) -> None:
    registry = Registry(Tracker(tmp_path / "runs", "e"), "m")
    one = filed(registry)
    assert registry.challenger_facts(None) == [{"run": one.run_id}]  # until it is promoted
    registry.promote(one, None)
    assert registry.challenger_facts(one) == [] and registry.challengers(one) == []
    two = again(registry, one, one)
    registry.promote(two, one)
    three = again(registry, one, two)
    assert registry.challenger_facts(two) == [{"run": three.run_id}] and registry.challengers(two) == [three]
    assert registry.next_number(two) == 2  # one was judged before looks were counted
    registry.client.delete_model_version("m", str(three.number))
    with ThreadPoolExecutor() as pool:
        assert sorted(pool.map(registry.next_number, [two, two])) == [3, 4]
    assert registry.next_number(None) == 2
    registry.rollback()
    assert registry.challenger_facts(one) == [{"run": two.run_id}]  # the same rows would only promote it again
    four = again(registry, one, one)
    assert registry.challengers(one) == [two, four]
    assert registry.challenger_facts(one) == [{"run": two.run_id}, {"run": four.run_id}]
    (tmp_path / "runs" / "artifacts" / "e" / two.run_id / "artifacts" / "production.json").unlink()
    assert registry.challenger_facts(one) == [{"run": four.run_id}]


def test_looks_are_counted_before_there_is_a_version_and_what_is_acknowledged_is_kept(tmp_path: Path) -> None:
    registry = Registry(Tracker(tmp_path / "runs", "e"), "m")
    assert registry.acknowledged() is None
    assert [registry.next_number(None), registry.next_number(None)] == [1, 2]
    registry.acknowledge("a digest")
    assert registry.acknowledged() == "a digest" and registry.get() is None
    with pytest.raises(RegistryFailed, match=r"^m has no previous yet .*; the second promotion sets it\.$"):
        registry.require(PREVIOUS)


class Killed(Exception):
    """What stands for a kill: nothing after it is done."""


@pytest.mark.parametrize("move", ["promote", "rollback"])
def test_a_kill_at_any_point_leaves_a_champion_and_another_previous(
    tmp_path: Path, filed: Callable[[Registry], Any], monkeypatch: pytest.MonkeyPatch, move: str
) -> None:
    registry = Registry(Tracker(tmp_path / "runs", "e"), "m")
    versions = [filed(registry)]
    registry.promote(versions[0], None)
    versions.append(again(registry, versions[0]))
    registry.promote(versions[1], versions[0])
    client, writes = registry.client.client, 0
    for after in range(6):
        now, before = registry.require(), registry.require(PREVIOUS)
        meant = again(registry, now) if move == "promote" else before
        writes = 0

        def written(real: Any, after: int = after) -> Any:
            def call(*args: Any) -> Any:
                nonlocal writes
                if writes == after:
                    raise Killed
                writes += 1
                return real(*args)

            return call

        with monkeypatch.context() as patch:
            for name in ("set", "delete"):
                for what in ("alias", "tag"):
                    full = f"{name}_registered_model_{what}"
                    patch.setattr(client, full, written(getattr(client, full)))
            with suppress(Killed):
                registry.promote(meant, now) if move == "promote" else registry.rollback()
        found = client.search_registered_models("name = 'm'")[0].aliases
        raw = {alias: str(number) for alias, number in found.items()}
        assert raw["champion"] in {str(now.number), str(meant.number)} and raw.get("previous") != raw["champion"]
        done = after > 0  # what was meant is written down, so it is finished
        assert (registry.require(), registry.require(PREVIOUS)) == ((meant, now) if done else (now, before))


def test_a_registered_model_answers_the_same_bits_and_a_damaged_one_is_told(
    tmp_path: Path, version: Callable[..., Any]
) -> None:
    registry = Registry(Tracker(tmp_path / "runs", "e"), "m")
    registry.promote(version(registry), None)
    X = load_iris().data
    found = registry.model(registry.require())
    np.testing.assert_array_equal(found.decision_function(X), fitted().decision_function(X))
    assert registry.client.get_model_version("m", "1").description == "# a card"
    (file,) = (tmp_path / "runs").rglob("model.skops")
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(RegistryFailed, match=r"^m version 1 cannot be loaded"):
        registry.model(registry.require())
    (facts,) = (tmp_path / "runs").rglob("production.json")
    facts.unlink()
    with pytest.raises(RegistryFailed, match=r"^m version 1 has no readable production\.json"):
        registry.facts(registry.require())


def test_whether_the_registry_was_written_to_is_known_without_asking_it(tmp_path: Path) -> None:
    one, other = (Registry(Tracker(tmp_path / "runs", "e"), "m") for _ in range(2))
    assert one.moved() and not one.moved()
    assert one.next_number(None) == 1 and one.moved()  # its own writing counts, too
    assert not one.moved() and one.get() is None and not one.moved()  # reading changes nothing
    other.acknowledge("a digest")
    assert one.moved() and not one.moved()
