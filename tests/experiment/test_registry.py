"""Versions and aliases in the real registry: they move forth and back, once, and what is damaged is told."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ldsvm import LDSVMClassifier
from ldsvm.experiment.registry import PREVIOUS, Registry, RegistryFailed
from ldsvm.experiment.tracking import Tracker

pytestmark = [
    pytest.mark.filterwarnings("ignore:The ..noload.. loader strategy is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType"),
]


@cache
def fitted() -> Any:
    X, y = load_iris(return_X_y=True)
    return make_pipeline(StandardScaler(), LDSVMClassifier(n_basis=10, random_state=0)).fit(X, y)


@pytest.fixture
def version() -> Callable[[Registry], Any]:
    def make(registry: Registry) -> Any:
        with registry.tracker.run("retrain", kind="retrain") as run:
            source = run.model(fitted(), np.zeros((2, 4)), registry.name)
            found = registry.register(run, source, {"run": run.id})
        registry.describe(found, "# a card")
        return found

    return make


def test_aliases_move_forth_and_back_and_a_champion_is_dethroned_once(
    tmp_path: Path, version: Callable[[Registry], Any]
) -> None:
    registry = Registry(Tracker(tmp_path / "runs", "e"), "m")
    assert registry.get() is None
    with pytest.raises(RegistryFailed, match=r"^No version of m is champion \(no model is registered\)"):
        registry.needed()
    one, two = version(registry), version(registry)
    with registry.tracker.run("killed", kind="retrain") as run:
        three = registry.register(run, two.source, {})
        assert registry.refused() is None  # whether it is refused is not decided yet
    assert registry.refused() == three
    assert registry.promote(one, None) and not registry.promote(two, None)
    assert registry.get() == one and registry.get(PREVIOUS) is None
    with ThreadPoolExecutor() as pool:  # two retrainings that were judged against the same champion
        done = list(pool.map(lambda v: registry.promote(v, one), [two, three]))
    assert sorted(done) == [False, True] and registry.get(PREVIOUS) == one
    new = registry.get()
    assert registry.rollback() == (one, new)
    assert registry.get() == one and registry.get(PREVIOUS) == new
    assert registry.rollback() == (new, one)
    assert registry.facts(one) == {"run": one.run_id}


def test_a_registered_model_answers_the_same_bits_and_a_damaged_one_is_told(
    tmp_path: Path, version: Callable[[Registry], Any]
) -> None:
    registry = Registry(Tracker(tmp_path / "runs", "e"), "m")
    registry.promote(version(registry), None)
    X = load_iris().data
    found = registry.model(registry.needed())
    np.testing.assert_array_equal(found.decision_function(X), fitted().decision_function(X))
    assert registry.client.get_model_version("m", "1").description == "# a card"
    (file,) = (tmp_path / "runs").rglob("model.skops")
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(RegistryFailed, match=r"^m version 1 cannot be loaded"):
        registry.model(registry.needed())
    (facts,) = (tmp_path / "runs").rglob("production.json")
    facts.unlink()
    with pytest.raises(RegistryFailed, match=r"^m version 1 has no readable production\.json"):
        registry.facts(registry.needed())
