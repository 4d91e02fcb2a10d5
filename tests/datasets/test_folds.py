"""Folds: every row is tested once, classes are in proportion, and groups stay whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ldsvm.datasets import DataError
from ldsvm.datasets.folds import cross_validated

# Uneven classes, in an order that is no function of the class: 0 once in 10 rows, 1 thrice, 2 six times.
UNEVEN = np.tile([2, 1, 2, 2, 0, 1, 2, 2, 1, 2], 8)[:77]
# Twenty patients with 1 to 7 rows, mixed up by arithmetic (23 is coprime with 77); the class is of the patient.
PATIENTS = np.repeat(np.arange(20), np.arange(20) % 7 + 1)[np.arange(77) * 23 % 77]
SICK = np.where(PATIENTS % 4 == 0, "sick", "well")


@pytest.mark.parametrize("groups", [None, PATIENTS])
@pytest.mark.parametrize("folds", [2, 5, 7])
def test_each_row_is_a_test_row_once_and_else_trains_or_validates(folds: int, groups: Any) -> None:
    found = cross_validated(UNEVEN, folds=folds, validation=0.25, seed=3, groups=groups)
    assert len(found) == folds
    assert sorted(np.concatenate([split.test for split in found])) == list(range(77))
    for split in found:
        assert sorted(np.concatenate([split.train, split.validation, split.test])) == list(range(77))
        assert not split.official_test


@pytest.mark.parametrize("folds", [2, 5, 7])
def test_sizes_and_classes_differ_by_one_row(folds: int) -> None:
    found = cross_validated(UNEVEN, folds=folds, validation=0.25, seed=3)
    tested = np.array([np.bincount(UNEVEN[split.test], minlength=3) for split in found])
    assert np.ptp(tested.sum(axis=1)) <= 1 and np.ptp(tested, axis=0).max() <= 1
    for split in found:
        rest = np.bincount(UNEVEN) - np.bincount(UNEVEN[split.test], minlength=3)
        assert np.abs(np.bincount(UNEVEN[split.validation], minlength=3) - 0.25 * rest).max() <= 2


@pytest.mark.parametrize("seed", range(5))
def test_a_group_is_in_one_part_and_classes_are_in_proportion(seed: int) -> None:
    found = cross_validated(SICK, folds=4, validation=0.25, seed=seed, groups=PATIENTS)
    for split in found:
        parts = [set(PATIENTS[rows]) for rows in (split.train, split.validation, split.test)]
        assert sum(map(len, parts)) == 20 == len(set.union(*parts))
        assert {*SICK[split.test]} == {*SICK[split.train]} == {"sick", "well"}
    assert max(abs(len(split.test) - 77 / 4) for split in found) < 7  # a patient has seven rows at most


def test_folds_are_the_seeds_and_so_are_the_validation_rows() -> None:
    first, again, other = (cross_validated(UNEVEN, folds=5, validation=0.25, seed=seed) for seed in (0, 0, 1))
    assert [one.digest() for one in first] == [one.digest() for one in again]
    assert not {one.digest() for one in first} & {one.digest() for one in other}
    # drawn once for all time, as the other kinds of split are
    assert first[0].test.tolist()[:6] == [19, 21, 22, 24, 27, 38]


def test_as_many_folds_as_rows_of_the_rarest_class_are_allowed() -> None:
    y = np.array([0] * 3 + [1] * 9)
    assert [int((y[split.test] == 0).sum()) for split in cross_validated(y, folds=3, validation=0.5, seed=0)] == [1] * 3
    with pytest.raises(
        DataError, match=r"^split\.folds is 4, but there are 3 rows of label 0; allowed: at most 3 folds"
    ):
        cross_validated(y, folds=4, validation=0.5, seed=0)


@pytest.mark.parametrize(
    ("y", "groups", "said"),
    [
        (["a", "b", "b", "b"], None, "there is 1 row of label 'a'; allowed: labels with at least 2 rows each"),
        ([0, 1] * 4, [5] * 8, "groups has 1 distinct values; allowed: at most as many folds as groups."),
        ([0, 1, 0, 1], None, "train needs at least one row"),
        ([0, 1] * 4, [1, 1, 1, 1, 2, 2, None, 2], "groups is missing in row 7"),
    ],
)
def test_what_cannot_be_folded_is_one_sentence(y: list[Any], groups: Any, said: str) -> None:
    with pytest.raises(DataError) as caught:
        cross_validated(y, folds=2, validation=0.25, seed=0, groups=groups)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"validation": 0.001}, r"^split\.validation is 0\.001, of the 51 rows outside a fold: "),
        ({"groups": np.arange(77) % 2, "folds": 2, "name": "g"}, "outside a fold: g has 1 distinct value"),
    ],
)
def test_what_is_outside_a_fold_trains_and_validates(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        cross_validated(UNEVEN, **{"folds": 3, "validation": 0.25, "seed": 0} | changes)
