"""Drift: rows of the same kind are left in peace, moved ones are named, and both numbers are what theory says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import hypergeom

from ldsvm.production import drift as drifts
from ldsvm.production.drift import (
    Drift,
    DriftConfig,
    Profile,
    compare,
    count,
    p_of_homogeneity,
    p_of_no_change,
    p_of_same_values,
    profile,
    stability,
)
from ldsvm.production.input_counts import count_bins, count_table

RULES = DriftConfig()


def rows(n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Inputs, labels, and the same rows in a latent space: two classes around two corners."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 20)) + y[:, None]
    X[:, 3] = rng.integers(3, size=n)  # few values
    X[:, 4] = 7.0  # one value
    F = np.stack([2.0 * y - 1, np.zeros(n)], axis=1) + 0.1 * rng.normal(size=(n, 2))
    return X, y, F


def seen(n: int = 5000, seed: int = 0) -> Profile:
    return described(*rows(n, seed))


def described(X: Any, y: NDArray[Any], F: NDArray[Any], unseen: NDArray[Any] | None = None) -> Profile:
    names = [f"c{d}" for d in range(X.shape[1])]
    return profile(count_bins(X, names), y, F, F if unseen is None else unseen)


def against(then: Profile, X: Any, y: NDArray[Any], F: NDArray[Any], rules: DriftConfig = RULES) -> Drift:
    return compare(then, count(then, X, y, F), rules)


def moved(drift: Drift) -> bool:
    return drift.sentences != ["Nothing has drifted."]


@pytest.mark.slow
def test_rows_of_the_same_kind_have_not_drifted() -> None:
    then = seen()
    assert not any(moved(against(then, *rows(300, seed))) for seed in range(1, 40))
    assert against(then, *rows(300, 1)).sentences == ["Nothing has drifted."]


def test_moved_inputs_are_named_the_worst_first() -> None:
    X, y, F = rows(400, 1)
    X[:, 7] += 1.0
    X[:, 2] *= 5.0
    X[:, 4] = 6.5
    drift = against(seen(), X, y, F)
    assert [shift.name for shift in drift.inputs if shift.drifted] == ["c2", "c4", "c7"]
    assert drift.share == pytest.approx(3 / 20)
    assert drift.sentences[0].startswith("3 of 20 inputs have drifted (stability index): c4 (")
    assert not drift.labels.drifted and not drift.latent.drifted


@pytest.mark.slow
def test_a_large_change_in_few_rows_is_chance_and_a_small_one_in_many_is_small() -> None:
    # both numbers must agree
    X, y, F = rows(8, 3)
    few = against(seen(), X, y, F)
    assert max(shift.psi for shift in few.inputs) > RULES.psi and not moved(few)
    X, y, F = rows(100_000, 4)
    X[:, 5:] += 0.15
    many = against(seen(), X, y, F)
    assert min(shift.p for shift in many.inputs) < 1e-6 and not moved(many)


def test_labels_that_change_in_number_or_are_new_are_told() -> None:
    X, y, F = rows(500, 5)
    skewed = np.flatnonzero((y == 0) | (np.arange(500) % 5 == 0))
    drift = against(seen(), X[skewed], y[skewed], F[skewed])
    assert drift.labels.drifted and "The labels have drifted" in " ".join(drift.sentences)
    new = against(seen(), X, np.where(y == 0, 0, 9), F)
    assert new.unknown == ("9",) and moved(new) and new.sentences[-1] == "New labels: 9."


def test_rows_far_from_all_classes_in_the_latent_space_are_noticed() -> None:
    X, y, F = rows(300, 6)
    F[:, 1] += 1.0
    drift = against(seen(), X, y, F)
    assert drift.latent.drifted and not drift.inputs[0].drifted


def test_sparse_inputs_give_the_same_as_dense_ones() -> None:
    X, y, F = rows(500, 7)
    X = np.where(np.abs(X) < 1, 0.0, X)
    then = described(sp.csr_array(X), y, F)
    assert then == described(X, y, F)
    moved = X * (np.arange(20) > 0)
    assert against(then, sp.csr_array(moved), y, F) == against(then, moved, y, F)


def test_a_profile_is_plain_values_and_missing_or_infinite_ones_are_counted() -> None:
    X, y, F = rows(100, 8)
    X[0, 0], X[1, 0] = np.nan, np.inf
    then = described(X, y, F)
    assert Profile(**json.loads(json.dumps(asdict(then)))) == then
    assert [sum(counts) for counts in then.counts] == [100] * 20


def test_the_stability_index_of_equal_shares_is_zero_and_grows_with_the_change() -> None:
    old = np.array([100.0, 200.0, 300.0])
    assert stability(old, 10 * old) == pytest.approx(0, abs=1e-4)
    values = [stability(old, old + np.array([move, -move, 0.0])) for move in (10.0, 50.0, 150.0)]
    assert 0 < values[0] < values[1] < values[2]
    assert stability(old, np.zeros(3)) >= 0


def test_p_values_are_uniform_when_nothing_has_moved() -> None:
    rng = np.random.default_rng(9)
    shares = np.full(5, 0.2)
    old, new = rng.multinomial(2000, shares, 1000), rng.multinomial(500, shares, 1000)
    found = np.array([p_of_homogeneity(*pair) for pair in zip(old.astype(float), new.astype(float), strict=True)])
    assert 0.03 < (found < 0.05).mean() < 0.07
    assert p_of_homogeneity(np.array([5.0, 0.0]), np.array([3.0, 0.0])) == 1.0
    assert p_of_homogeneity(np.array([5.0, 1.0]), np.zeros(2)) == 1.0


def test_twenty_bins_of_one_row_are_put_together_and_the_rest_of_a_row_joins_its_neighbour() -> None:
    ones = np.ones(22)
    assert p_of_homogeneity(ones, ones) == 1.0
    halves = np.r_[np.ones(10), np.zeros(11), 1], np.r_[np.zeros(10), np.ones(11), 0]  # ten and one against eleven
    assert p_of_homogeneity(*halves) == p_of_homogeneity(np.array([10.0, 1.0]), np.array([0.0, 11.0]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "standard_cauchy"])
@pytest.mark.parametrize("D", [1, 2, 20])
def test_what_has_not_moved_is_rarely_called_drift(D: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drifts, "_fisher", cache(drifts._fisher))  # the same few counts at the ends, again and again
    rng = np.random.default_rng(D)
    rules, runs, false = DriftConfig(psi=1e-9), 600 if D < 20 else 150, np.zeros(3)
    for _ in range(runs):
        old, new = (getattr(rng, kind)(size=(n, D)) for n in (360, 100))
        names = ["some", "many", "most", "rare"]
        y, labels = (rng.choice(names, n, p=[0.2, 0.3, 0.48, 0.02]) for n in (360, 100))
        F, unseen, later = (getattr(rng, kind)(size=(n, 2)) for n in (360, 240, 100))
        drift = against(described(old, y, F, unseen), new, labels, later, rules)
        false += [drift.share > 0, drift.labels.drifted, drift.latent.drifted]
    assert (false / runs <= [0.01, 0.015, 0.01]).all()


def test_rows_beyond_all_that_was_seen_are_found_even_when_they_are_few() -> None:
    X, y, F = rows(400, 11)
    X[:16, 0], X[16:32, 1] = 50.0, -50.0
    drift = against(seen(), X, y, F)
    assert [shift.name for shift in drift.inputs if shift.drifted] == ["c0", "c1"]
    assert (
        p_of_no_change(np.array([0.0, 50.0, 0.0]), np.array([0.0, 49.0, 1.0])) == 1.0
    )  # one may well be the largest of all


def test_missing_values_that_come_or_go_are_found() -> None:
    X, y, F = rows(400, 12)
    X[::4, 0] = np.nan
    then = described(X, y, F)
    now, y, F = rows(400, 13)
    assert [shift.name for shift in against(then, now, y, F).inputs if shift.drifted] == ["c0"]
    now[::4, 0] = np.nan
    assert not moved(against(then, now, y, F))
    now[::4, 1] = np.nan
    assert [shift.name for shift in against(then, now, y, F).inputs if shift.drifted] == ["c1"]


def test_distances_are_counted_on_rows_that_the_map_was_not_fitted_to() -> None:
    X, y, F = rows(500, 14)
    _, _, unseen = rows(300, 15)
    later, labels, coordinates = rows(300, 16)
    closer = F.copy()
    for k in (0, 1):  # the rows of the fit lie at their centroids
        closer[y == k] = closer[y == k].mean(axis=0) + 0.01 * (closer[y == k] - closer[y == k].mean(axis=0))
    good, wrong = described(X, y, closer, unseen), described(X, y, closer)
    assert not against(good, later, labels, coordinates).latent.drifted
    assert against(wrong, later, labels, coordinates).latent.psi > 8


def test_an_input_without_a_known_value_compares_as_equal() -> None:
    X, y, F = rows(50, 10)
    X[:, 0] = np.nan
    assert not moved(against(described(X, y, F), X, y, F))


ROLES = {"town": "category", "paid": "yes/no", "age": "number", "day": "date", "note": "text"}


def mixed(n: int, seed: int) -> pd.DataFrame:
    """Columns of all roles; a town has two common values and a hundred rare ones, and one note in ten is empty."""
    rng = np.random.default_rng(seed)
    town = np.where(
        rng.random(n) < 0.9, rng.choice(["Ulm", "Bonn"], n), np.char.add("t", rng.integers(100, size=n).astype(str))
    )
    words = np.where(rng.random(n) < 0.1, 0, rng.integers(1, 9, n))
    table = pd.DataFrame(
        {
            "town": town.astype(object),
            "paid": rng.integers(2, size=n).astype(float),
            "age": rng.normal(40, 10, n),
            "day": np.datetime64("2024-01-01", "us") + rng.integers(365, size=n).astype("m8[D]"),
            "note": [" ".join(["word"] * count) for count in words],
        }
    )
    return table.mask(rng.random((n, 5)) < [0.02, 0.0, 0.05, 0.01, 0.0])


def beside(table: pd.DataFrame, old: int = 3000) -> Drift:
    """How a table differs from the training; labels and latent space as there."""
    rng = np.random.default_rng(99)
    y, F = rng.integers(2, size=old), rng.normal(size=(old, 2))
    then = profile(count_table(mixed(old, 0), ROLES), y, F, F)
    assert Profile(**json.loads(json.dumps(asdict(then)))) == then
    n = len(table)
    return compare(then, count(then, table, y[:n], F[:n]), RULES)


@pytest.mark.slow
def test_columns_of_mixed_tables_of_the_same_kind_have_not_drifted() -> None:
    drifts = [beside(mixed(400, seed)) for seed in range(1, 30)]
    assert not any(moved(drift) for drift in drifts)
    assert {gaps.name for gaps in drifts[0].gaps} == {"town", "age", "day", "note"}  # "paid" has none, then and now


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("town", lambda t: t["town"].mask(np.arange(400) % 4 == 0, "Oslo")),  # which training does not have
        ("town", lambda t: t["town"].replace("Ulm", "Bonn")),
        ("paid", lambda t: t["paid"].where(np.arange(400) % 2 == 0, 1.0)),
        ("age", lambda t: t["age"] + 10),
        ("day", lambda t: t["day"] + np.timedelta64(200, "D")),
        ("note", lambda t: t["note"] + " and four more words"),
    ],
)
def test_a_column_whose_values_moved_is_named_alone(column: str, change: Callable[[Any], Any]) -> None:
    table = mixed(400, 1)
    drift = beside(table.assign(**{column: change(table)}))
    assert [shift.name for shift in drift.inputs if shift.drifted] == [column]
    assert drift.sentences[0].startswith(f"1 of 5 inputs has drifted (stability index): {column} (")


@pytest.mark.parametrize("column", ["town", "paid", "age", "day", "note"])
def test_gaps_that_come_are_named_with_both_shares_and_values_stay(column: str) -> None:
    table = mixed(400, 2)
    table[column] = table[column].mask(np.arange(400) % 3 == 0, None if column != "note" else "")
    drift = beside(table)
    assert not any(shift.drifted for shift in drift.inputs) and drift.share == pytest.approx(1 / 5)
    assert len(drift.sentences) == 1 and drift.sentences[0].startswith(
        f"The share of missing values has changed in {column} ("
    )
    (gaps,) = [one for one in drift.gaps if one.drifted]
    assert gaps.before == pytest.approx({"town": 0.02, "age": 0.05, "day": 0.01, "note": 0.1}.get(column, 0), abs=0.02)
    assert gaps.now > 0.33


def test_a_column_that_is_all_gaps_is_compared_too() -> None:
    drift = beside(mixed(400, 3).assign(town=None, age=np.nan, day=np.datetime64("NaT", "us")))
    assert {gaps.name for gaps in drift.gaps if gaps.drifted} == {"town", "age", "day"}


def test_values_p_is_small_for_new_values_and_at_most_one() -> None:
    # Fisher's test on the last, twice: 15 new values among 300 rows, none among 1,000
    old, new = np.array([500.0, 500, 0]), np.array([142.0, 143, 15])
    table = 1300, 15, 300
    assert p_of_same_values(old, new) == pytest.approx(4 * hypergeom.sf(14, *table), rel=1e-9)
    assert p_of_same_values(old, old) == 1.0


@pytest.mark.slow
def test_a_category_of_rare_values_only_is_not_called_drift_for_the_choice_of_its_frequent_ones() -> None:
    # a hundred equally rare values: those that are frequent in the counted rows by chance would look rarer later
    y, F = np.arange(400) % 2, np.random.default_rng(0).normal(size=(400, 2))
    rng, found = np.random.default_rng(1), []
    for _ in range(60):
        old, new = (pd.DataFrame({"town": rng.integers(100, size=n).astype(str).astype(object)}) for n in (800, 100))
        then = profile(count_table(old, {"town": "category"}), y, F, F)
        found.append(compare(then, count(then, new, y[:100], F[:100]), RULES).inputs[0].p)
    assert np.mean(np.array(found) < 0.05) < 0.1 and min(found) > RULES.false_discovery_rate / 10
