"""Splits: disjoint, of the right size and proportion, and the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ldsvm.datasets import DataError, Split, balanced, grouped, ordered, shuffled, stratified
from ldsvm.datasets.dataset import absent
from ldsvm.datasets.split import Indices
from ldsvm.datasets.words import listing

# Uneven classes, in an order that is no function of the class: 0 once in 10 rows, 1 thrice, 2 six times.
UNEVEN = np.tile([2, 1, 2, 2, 0, 1, 2, 2, 1, 2], 30)
# Labels with the sizes of MNIST's digits, shuffled by arithmetic (7919 is coprime with 60,000).
SIZES = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
DIGITS = np.repeat(np.arange(10), SIZES)[np.arange(60_000) * 7919 % 60_000]
NAMES = ("train", "validation", "test")


def counts(y: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> list[int]:
    return [int(count) for count in np.bincount(y[rows])]


def index(train: list[int], validation: list[int], test: list[int]) -> tuple[Indices, Indices, Indices]:
    return np.array(train, np.int64), np.array(validation, np.int64), np.array(test, np.int64)


def disjoint(*parts: np.ndarray[Any, Any]) -> bool:
    every = np.concatenate(parts)
    return len(set(every.tolist())) == len(every)


def test_stratified_by_fractions_uses_every_row_in_proportion() -> None:
    split = stratified(UNEVEN, train=0.6, validation=0.2, test=0.2, seed=3)
    assert counts(UNEVEN, split.train) == [18, 54, 108]
    assert counts(UNEVEN, split.validation) == counts(UNEVEN, split.test) == [6, 18, 36]
    assert sorted(np.concatenate([split.train, split.validation, split.test])) == list(range(300))
    assert not split.official_test


@pytest.mark.parametrize("seed", range(5))
def test_stratified_by_counts_is_within_two_rows_of_the_share(seed: int) -> None:
    y = load_digits().target
    split = stratified(y, train=797, validation=311, test=402, seed=seed)
    assert disjoint(split.train, split.validation, split.test)
    for rows, size in ((split.train, 797), (split.validation, 311), (split.test, 402)):
        assert len(rows) == size
        share = size * np.bincount(y) / len(y)
        assert np.abs(np.bincount(y[rows]) - share).max() <= 2


def test_stratified_takes_names_and_empty_parts() -> None:
    named = np.array(["even", "odd"])[UNEVEN % 2]
    split = stratified(named, train=20, validation=0, test=0.0, seed=1)
    assert (len(split.train), len(split.validation), len(split.test)) == (20, 0, 0)
    assert np.count_nonzero(named[split.train] == "odd") == 6


def test_fractions_that_round_both_up_still_fit() -> None:
    split = stratified([0, 1, 0], train=0.5, validation=0.5, test=0.0, seed=0)
    assert len(split.train) + len(split.validation) == 3


def test_shuffled_draws_from_training_and_keeps_the_test_set_whole() -> None:
    split = shuffled(60_000, train=10_000, validation=10_000, official=10_000, seed=0)
    assert (len(split.train), len(split.validation)) == (10_000, 10_000)
    assert disjoint(split.train, split.validation)
    assert split.official_test and split.test.tolist() == list(range(10_000))
    # At random: each digit's share is within five standard deviations of the expected one.
    share = np.array(SIZES) / 60_000
    assert np.all(np.abs(counts(DIGITS, split.train) - 10_000 * share) < 5 * np.sqrt(10_000 * share))
    assert len(set(counts(DIGITS, split.train))) > 5, "a random draw is not balanced"


def test_ten_splits_of_pc_mac_are_80_to_20_and_differ() -> None:
    splits = [shuffled(1168, train=0.8, validation=0.2, official=777, seed=seed) for seed in range(10)]
    for split in splits:
        assert (len(split.train), len(split.validation), len(split.test)) == (934, 234, 777)
        assert sorted([*split.train, *split.validation]) == list(range(1168))
        assert split.official_test and split.test.tolist() == list(range(777))
    assert len({split.digest() for split in splits}) == 10
    # Independent draws share 0.8 of a training part on average; an equal part would share all of it.
    shared = [len(np.intersect1d(a.train, b.train)) / 934 for a in splits for b in splits if a is not b]
    assert min(shared) > 0.75 and max(shared) < 0.85


@pytest.mark.parametrize("train", [100, 500, 5_000])
def test_balanced(train: int) -> None:
    split = balanced(DIGITS, train=train, validation=10_000, official=10_000, seed=8)
    assert counts(DIGITS, split.train) == [train // 10] * 10
    assert counts(DIGITS, split.validation) == [1_000] * 10
    assert disjoint(split.train, split.validation)
    assert split.official_test and len(split.test) == 10_000


@pytest.mark.parametrize("test", [0, 2_000])
def test_balanced_learning_curve_is_nested_with_one_validation_set(test: int) -> None:
    small, large = (balanced(DIGITS, train=n, validation=10_000, test=test, seed=2) for n in (100, 3_000))
    assert set(small.train) < set(large.train)
    np.testing.assert_array_equal(small.validation, large.validation)
    np.testing.assert_array_equal(small.test, large.test)
    assert counts(DIGITS, large.test) == [test // 10] * 10 * (test > 0)


def test_balanced_by_fractions_uses_every_row_of_the_rarest_class() -> None:
    named = np.array(["rare", "some", "many"], dtype=object)[UNEVEN]
    split = balanced(named, train=0.5, validation=0.3, test=0.2, seed=4)
    for name, each in zip(NAMES, (15, 9, 6), strict=True):
        assert counts(UNEVEN, getattr(split, name)) == [each] * 3
    assert disjoint(split.train, split.validation, split.test)


# Fifty groups of 1 to 11 rows, mixed up by arithmetic (101 is coprime with 285).
GROUPS = np.repeat(np.arange(50), np.arange(50) % 11 + 1)[np.arange(285) * 101 % 285]


@pytest.mark.parametrize("seed", range(20))
def test_grouped_keeps_groups_whole_and_comes_near_the_sizes(seed: int) -> None:
    split = grouped(GROUPS, train=0.6, validation=0.2, test=0.2, seed=seed)
    parts = [split.train, split.validation, split.test]
    assert sorted(np.concatenate(parts)) == list(range(285))
    groups = [set(GROUPS[part].tolist()) for part in parts]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 50
    # A border at the end of the nearest group is at most half a group away; two borders move the middle part.
    assert all(abs(len(part) - 285 * size) <= 11 for part, size in zip(parts, (0.6, 0.2, 0.2), strict=True))


def test_grouped_finds_the_only_order_that_fits() -> None:
    # By hand: only {b, d} | {a} | {c} has 100, 20 and 10 rows.
    groups = ["a"] * 20 + ["b"] * 70 + ["c"] * 10 + ["d"] * 30
    split = grouped(groups, train=100, validation=20, test=10, seed=0)
    assert [sorted({groups[row] for row in getattr(split, name)}) for name in NAMES] == [["b", "d"], ["a"], ["c"]]


def test_grouped_with_labels_keeps_their_shares_nearer() -> None:
    # 40 groups of 10 rows, each of one class: without labels, only chance decides how many of a class validate.
    groups, y = np.repeat(np.arange(40), 10), np.repeat(np.arange(40) % 2, 10)

    def apart(labels: np.ndarray[Any, Any] | None) -> float:
        splits = [grouped(groups, train=0.5, validation=0.5, seed=seed, y=labels) for seed in range(20)]
        return sum(abs(counts(y, split.train)[0] - 100) for split in splits)

    assert apart(y) == 0 < apart(None)


def test_grouped_fills_every_part_and_leaves_out_what_no_part_takes() -> None:
    huge = ["a"] * 98 + ["b", "c"]
    for seed in range(10):
        split = grouped(huge, train=98, validation=1, test=1, seed=seed)
        assert min(len(split.train), len(split.validation), len(split.test)) > 0
    for sizes in ((99, 1), (1, 99)):  # the end of a group that is nearest to the border is no border
        halves = grouped([0] * 50 + [1] * 50, train=sizes[0], validation=sizes[1], seed=0)
        assert len(halves.train) == len(halves.validation) == 50
    split = grouped(np.arange(100), train=10, validation=5, official=3, seed=0)
    assert (len(split.train), len(split.validation), len(split.test)) == (10, 5, 3)


def test_ordered_goes_from_oldest_to_newest() -> None:
    times = np.arange(300) * 7 % 300  # every time once, mixed up
    split = ordered(times, train=0.5, validation=0.25, test=0.25)
    assert sorted(times[split.train]) == list(range(150))
    assert sorted(times[split.validation]) == list(range(150, 225))
    assert sorted(times[split.test]) == list(range(225, 300))
    some = ordered(times, train=30, validation=20, official=7)
    assert sorted(times[some.train]) == list(range(30)) and some.official_test and len(some.test) == 7


def test_ordered_keeps_equal_times_together_in_the_earlier_part() -> None:
    times = [5, 1, 2, 2, 2, 3, 4, 3]
    split = ordered(times, train=2, validation=3, test=3)
    assert [sorted(times[row] for row in getattr(split, name)) for name in NAMES] == [[1, 2, 2, 2], [3, 3], [4, 5]]
    for seed in range(30):
        many = np.random.default_rng(seed).integers(0, 40, 200)
        split = ordered(many, train=0.5, validation=0.2, test=0.2)
        assert many[split.train].max() < many[split.validation].min()
        assert many[split.validation].max() < many[split.test].min()


def test_ordered_reads_every_kind_of_time_alike() -> None:
    texts = ["2024-03-01", "2023-12-31T23:59:59", "2024-01-01T00:00:00+02:00", "2024-02-29T12:00:00.5", "2025-01-01"]
    # By hand, in hours of UTC since the start of 2024.
    hours = [60 * 24, -1 / 3600, -2, 59 * 24 + 12, 366 * 24]
    stamps = np.datetime64("2024-01-01", "s") + (np.array(hours) * 3600).astype(int)
    for times in (texts, hours, stamps):
        split = ordered(times, train=1, validation=2, test=2)
        assert [getattr(split, name).tolist() for name in NAMES] == [[2], [1, 3], [0, 4]]


SPLITS: list[Callable[[int], Split]] = [
    lambda seed: stratified(UNEVEN, train=0.6, validation=0.2, test=0.2, seed=seed),
    lambda seed: stratified(UNEVEN, train=101, validation=37, test=50, seed=seed),
    lambda seed: shuffled(60_000, train=10_000, validation=10_000, official=10_000, seed=seed),
    lambda seed: balanced(DIGITS, train=500, validation=10_000, official=10_000, seed=seed),
    lambda seed: grouped(GROUPS, train=0.6, validation=0.2, test=0.2, seed=seed),
    lambda seed: grouped(GROUPS, train=0.6, validation=0.2, official=5, seed=seed, y=np.arange(285) % 3),
]
DIGESTS = [
    "c16132a2f06e4a71",
    "1cf4b0c2ccd9d56f",
    "402baf8bae1b6fa5",
    "6b1244c53c48c684",
    "60289a559261cdb1",
    "9378a2650d7768dc",
]


@pytest.mark.parametrize(("draw", "digest"), list(zip(SPLITS, DIGESTS, strict=True)))
def test_the_same_on_every_machine(draw: Callable[[int], Split], digest: str) -> None:
    assert draw(20_261_127).digest() == digest


def test_the_same_on_every_machine_without_a_seed() -> None:
    assert (
        ordered(DIGITS * 1000 + np.arange(60_000) % 997, train=0.5, validation=0.3, test=0.2).digest()
        == "a23e9bb8abf9cb75"
    )


@pytest.mark.parametrize("draw", SPLITS)
def test_another_seed_is_another_split(draw: Callable[[int], Split]) -> None:
    assert draw(1).digest() != draw(2).digest()


@pytest.mark.slow
def test_parts_of_any_kind_and_size_are_disjoint_rows_of_the_data() -> None:
    random = np.random.default_rng(5)
    for seed in range(60):
        n = int(random.integers(40, 400))
        y, groups = random.permutation(n) % 3, random.integers(0, n // 4, n)
        cuts = np.sort(random.random(2)) * 0.8 + 0.1
        sizes: dict[str, Any] = {
            "train": float(cuts[0]),
            "validation": float(cuts[1] - cuts[0]) + 0.05,
            "test": float(1 - cuts[1]) - 0.05,
        }
        for split in (
            stratified(y, **sizes, seed=seed),
            shuffled(n, **sizes, seed=seed),
            balanced(y, **sizes, seed=seed),
            grouped(groups, **sizes, seed=seed),
            ordered(random.permutation(n), **sizes),
        ):
            rows = np.concatenate([split.train, split.validation, split.test])
            assert len(set(rows.tolist())) == len(rows) and set(rows.tolist()) <= set(range(n))
            assert min(len(split.train), len(split.validation), len(split.test)) > 0


@pytest.mark.parametrize("draw", SPLITS)
def test_a_split_survives_the_way_through_a_file(draw: Callable[[int], Split], tmp_path: Path) -> None:
    split = draw(3)
    split.save(tmp_path / "new" / "split.npz")
    back = Split.load(tmp_path / "new" / "split.npz")
    assert back.digest() == split.digest() and back.official_test is split.official_test
    assert back.train.dtype == np.int64
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["split.npz"]


@pytest.mark.slow
def test_a_damaged_split_is_refused_or_harmless(tmp_path: Path) -> None:
    path, split = tmp_path / "split.npz", Split(*index([0, 2], [1], [5]), False)

    def outcome(content: bytes) -> str:
        path.write_bytes(content)
        try:
            return Split.load(path).digest()
        except DataError as error:
            return str(error)

    split.save(path)
    whole = path.read_bytes()
    found = [outcome(whole[:i] + bytes([whole[i] ^ 0x55]) + whole[i + 1 :]) for i in range(0, len(whole), 3)]
    refused = [text for text in found if text != split.digest()]
    assert len(refused) > len(found) / 3  # the rest is padding, dates and other bytes without a meaning
    assert all(text.startswith(str(path)) and "\n" not in text for text in refused)


def test_files_that_hold_no_split_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "split.npz"
    with pytest.raises(DataError, match=r"split\.npz: no split can be read from it .*No such file"):
        Split.load(path)
    for content in (b"", b"no archive", b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"split\.npz: no split can be read from it"):
            Split.load(path)
    other = Split(*index([0, 3], [1], [5]), False).digest()
    train, validation, test = index([0, 2], [1], [5])
    np.savez(path, train=train, validation=validation, test=test, official_test=False, digest=other)
    with pytest.raises(DataError, match="do not have the digest"):
        Split.load(path)
    np.savez(path, train=train, validation=train, test=test, official_test=False, digest=other)
    with pytest.raises(DataError, match="share 2 rows"):
        Split.load(path)


def test_a_split_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"a\.npz: the split cannot be written"):
        Split(*index([0], [1], [2]), False).save(tmp_path / "file" / "a.npz")


def test_digest_tells_parts_and_test_sets_apart() -> None:
    def split(train: list[int], validation: list[int], official: bool) -> str:
        return Split(*index(train, validation, [5]), official).digest()

    assert len({split([1], [2], False), split([2], [1], False), split([1, 2], [], False), split([1], [2], True)}) == 4


@pytest.mark.parametrize(
    ("train", "test", "official", "message"),
    [
        ([1, 2], [2], False, "share 1 rows"),
        ([2, 1], [4], False, "train must be sorted"),
        ([1, 1], [4], True, "train must be sorted"),
        ([1], [-1], True, "test must be sorted"),
        ([1, 3], [4], True, "The parts train, validation share 1 rows"),
    ],
)
def test_impossible_splits_are_refused(train: list[int], test: list[int], official: bool, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Split(*index(train, [3], test), official)


def test_an_official_test_set_may_reuse_row_numbers() -> None:
    assert len(Split(*index([0, 2], [1], [0, 1, 2]), True).test) == 3


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((200, 100, 1), "train=200, validation=100, test=1: .* 300 rows are available"),
        ((0.6, 0.3, 0.2), "train=0.6, validation=0.3, test=0.2: .* 300 rows are available"),
        ((0.5, 10, 10), "three counts, or three fractions"),
        ((1.5, 0, 0), "three counts, or three fractions"),
        ((True, 1, 1), "three counts, or three fractions"),
        ((float("nan"), 0.1, 0.1), "three counts, or three fractions"),
        ((10, -1, 5), "no size may be negative"),
        ((0, 10, 10), "train needs at least one row"),
        ((0.5, 0.001, 0.1), "a fraction of a row"),
    ],
)
def test_bad_sizes_of_stratified(sizes: tuple[float, float, float], message: str) -> None:
    train, validation, test = sizes
    with pytest.raises(DataError, match=message):
        stratified(UNEVEN, train=train, validation=validation, test=test, seed=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shuffled(9, train=10, validation=0, seed=0), "train=10, .* and 9 rows are available"),
        (lambda: shuffled(9, train=5, validation=5, seed=0), "train=5, validation=5, .* and 9 rows are available"),
        (lambda: shuffled(0, train=1, validation=0, seed=0), "n=0 must be a whole number of at least 1"),
        (lambda: shuffled(9, train=5, validation=2, test=2, official=3, seed=0), "official=3, test=2: give"),
        (lambda: shuffled(9, train=5, validation=2, official=-3, seed=0), "official=-3, test=0: give"),
        (lambda: balanced(DIGITS, train=105, validation=0, seed=0), "train=105, .* balanced: .* the 10 classes"),
        (lambda: balanced(DIGITS, train=100, validation=15, seed=0), "validation=15, .* cannot be balanced"),
        (
            lambda: balanced(DIGITS, train=50_000, validation=10_000, seed=0),
            "54210 rows are available in all, 5421 of every class",
        ),
        (lambda: balanced(DIGITS, train=100, validation=0, seed=-1), "seed=-1 must be a whole number"),
        (lambda: grouped(["a", "b", "a"], train=1, validation=1, test=1, seed=0), "2 distinct .* 3 parts need"),
        (
            lambda: grouped(np.array(["a", None, "a", None]), train=2, validation=1, seed=0),
            "groups is missing in rows 2, 4, counted from 1 without a header",
        ),
        (
            lambda: grouped([1.0, 2.0, np.nan], train=2, validation=1, seed=0),
            "groups is missing in row 3, counted from 1 without a header",
        ),
        (lambda: grouped([1, 2, 3], train=2, validation=1, seed=0, y=[0, 1]), "y has 2 rows, but groups has 3"),
        (lambda: grouped(np.array([1, "a"], dtype=object), train=1, validation=1, seed=0), "groups mixes numbers"),
        (
            lambda: ordered([1.0, np.nan, 2.0], train=1, validation=1),
            "times is missing in row 2, counted from 1 without a header",
        ),
        (
            lambda: ordered(np.array(["2024", "NaT"], "M8[s]"), train=1, validation=1),
            "times is missing in row 2, counted from 1 without a header",
        ),
        (
            lambda: ordered(["2024-01-01", "soon", "2024-13-01"], train=1, validation=1),
            "rows 2, 3, counted from 1 without a header, hold .*such as 'soon'",
        ),
        (
            lambda: ordered(["2024-01-01", "0001-01-01T00:00:00+05:00"], train=1, validation=1),
            "row 2, counted from 1 without a header, holds no time",
        ),
        (
            lambda: ordered(["9999-12-31T23:59-05:00", "2024-01-01"], train=1, validation=1),
            "row 1, counted from 1 without a header, holds no time",
        ),
        (
            lambda: ordered([True, False], train=1, validation=1),
            "rows 1, 2, counted from 1 without a header, hold no time",
        ),
        (lambda: ordered([1, 2, 2, 2], train=2, validation=2), "validation would be empty"),
        (lambda: ordered([1, 2, 3, 3], train=2, validation=1, test=1), "test would be empty"),
        (
            lambda: stratified(np.array(["a", None], object), train=1, validation=1, seed=0),
            "y is missing in row 2, counted from 1 without a header",
        ),
        (lambda: stratified(np.eye(3), train=1, validation=1, test=1, seed=0), r"y has shape \(3, 3\)"),
    ],
)
def test_other_bad_arguments(call: Callable[[], Split], message: str) -> None:
    with pytest.raises(DataError, match=message):
        call()


def test_rows_and_names_of_the_source_are_told() -> None:
    rows = np.array([3, 7, 10])
    about: dict[str, Any] = {"train": 1, "validation": 1, "name": "dataset.time 'day'", "rows": rows}
    with pytest.raises(
        DataError,
        match=r"^dataset\.time 'day': rows 8, 11, "
        r"counted from 1 without a header, hold no time, such as 'soon'; allowed",
    ):
        ordered(["2024-01-01", "soon", "later"], **about)
    with pytest.raises(
        DataError,
        match=r"^dataset\.time 'day' is missing in row 11, counted from 1 without a header, but this split needs it",
    ):
        ordered([1.0, 2.0, np.nan], **about)
    about["name"] = "dataset.group 'who'"
    with pytest.raises(
        DataError,
        match=r"^dataset\.group 'who' is missing in row 8, counted from 1 without a header, but this split needs it",
    ):
        grouped([1.0, np.nan, 2.0], seed=0, **about)
    with pytest.raises(DataError, match=r"^dataset\.group 'who' has 1 distinct values, but 2 parts need"):
        grouped([1, 1, 1], seed=0, **about)


def test_a_text_that_is_no_time_is_cut() -> None:
    with pytest.raises(
        DataError, match=r"row 1, counted from 1 without a header, holds no time, such as 'a post .*…'"
    ) as caught:
        ordered(["a post " + "of somebody " * 100 + "secret"], train=1, validation=0)
    assert len(str(caught.value)) < 250


def test_messages_list_at_most_five() -> None:
    assert listing("row", np.array([3])) == "row 3"
    assert listing("row", np.arange(5)) == "rows 0, 1, 2, 3, 4"
    assert listing("row", np.arange(2_000)) == "rows 0, 1, 2, 3, 4 and 1,995 more"


def test_absent_finds_whatever_stands_for_nothing() -> None:
    assert absent(np.array([None, np.nan, "a", 3, ""], dtype=object)).tolist() == [True, True, False, False, False]
    assert absent(np.array([np.nan, np.inf])).tolist() == [True, False]
    assert absent(np.array(["NaT", "2024"], "M8[D]")).tolist() == [True, False]
    assert absent(np.array([0, 1])).tolist() == absent(np.array(["", "None"])).tolist() == [False, False]
