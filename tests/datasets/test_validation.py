"""What is said about rows and parts, each rule against a slow reference, a known count or a sentence by hand."""

from __future__ import annotations

import tracemalloc
from typing import Any, Literal

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from ldsvm.datasets import DataError, Rows, Split
from ldsvm.datasets import flaws as counted
from ldsvm.datasets.duplicates import keys_of
from ldsvm.datasets.flaws import flaws
from ldsvm.datasets.split_checks import check_parts
from ldsvm.datasets.summary import summarise
from ldsvm.datasets.validation import Cleaned, Finding, clean, refuse
from ldsvm.datasets.words import listing

NAN, INF = float("nan"), float("inf")
NONE = np.array([], dtype=np.int64)
Kind = Literal["dense", "sparse"]
KINDS: list[Kind] = ["dense", "sparse"]


def texts(*values: str | None) -> np.ndarray[Any, Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def untidy(dense: np.ndarray[Any, Any]) -> csr_matrix:
    """The same matrix as CSR by hand: columns from last to first, and a stored zero in every row that has a zero."""
    data, indices, indptr = [], [], [0]
    for row in dense.tolist():
        zeros = [j for j, value in enumerate(row) if value == 0][:1]
        for j in reversed(range(len(row))):
            if row[j] != 0 or j in zeros:
                data.append(row[j])
                indices.append(j)
        indptr.append(len(data))
    return csr_matrix((np.array(data, np.float32), np.array(indices), np.array(indptr)), shape=dense.shape)


def rows_of(kind: Kind, X: Any, y: Any = None, columns: tuple[str, ...] | None = None) -> Rows:
    dense = np.asarray(X, dtype=np.float32)
    labels = np.arange(len(dense)) % 2 if y is None else np.asarray(y)
    return Rows(untidy(dense) if kind == "sparse" else dense, labels, columns)


def plain(X: Any) -> np.ndarray[Any, Any]:
    return X.toarray() if hasattr(X, "toarray") else X


def said(done: Cleaned) -> list[tuple[str, str]]:
    return [(found.level, found.text) for found in done.findings]


def cleaned(
    rows: Rows, missing: Any = "refuse", classes: list[Any] | None = None, *, official: bool = False
) -> Cleaned:
    return clean(rows, missing=missing, classes=classes, what="rows", official=official)


# Three rows of six have a missing value, in columns 1 and 2.
GAPS = [[1, 2, 0], [0, NAN, 4], [5, 0, 6], [7, NAN, NAN], [0, 8, 9], [3, 0, NAN]]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_say_about_sound_rows(kind: Kind) -> None:
    rows = rows_of(kind, [[1, 0], [0, 2], [3, 4]])
    done = cleaned(rows)
    assert done.findings == () and done.kept.tolist() == [0, 1, 2]
    assert done.rows.X is rows.X, "nothing is copied"


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_are_refused_with_columns_and_rows(kind: Kind) -> None:
    rule = "allowed only with dataset.missing=drop or dataset.missing=impute"
    assert said(cleaned(rows_of(kind, GAPS, columns=("a", "b", "c")))) == [
        (
            "error",
            f"rows: values are missing in columns 'b', 'c' (rows 2, 4, 6, counted from 1 without a header): {rule}.",
        )
    ]
    assert said(cleaned(rows_of(kind, GAPS)))[0][1].startswith(
        "rows: values are missing in columns 1, 2 (rows 2, 4, 6, counted from 1 without a header)"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_at_most_five_columns_and_rows_are_told(kind: Kind) -> None:
    X = np.where(np.arange(8) == np.arange(9)[:, None], NAN, 1.0)
    (finding,) = cleaned(rows_of(kind, X)).findings
    assert (
        "columns 0, 1, 2, 3, 4 and 3 more (rows 1, 2, 3, 4, 5 and 3 more, counted from 1 without a header)"
        in finding.text
    )


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_missing_values_are_dropped_and_told(kind: Kind) -> None:
    done = cleaned(rows_of(kind, GAPS, [0, 0, 1, 1, 0, 1]), "drop")
    assert done.kept.tolist() == [0, 2, 4]
    np.testing.assert_array_equal(plain(done.rows.X), np.array(GAPS, np.float32)[[0, 2, 4]])
    assert done.rows.y.tolist() == [0, 1, 0]
    assert said(done) == [
        (
            "warning",
            "rows: values are missing in columns 1, 2 (rows 2, 4, 6, "
            "counted from 1 without a header): 3 of 6 rows left out.",
        )
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_stay_for_an_imputer(kind: Kind) -> None:
    done = cleaned(rows_of(kind, GAPS), "impute")
    np.testing.assert_array_equal(plain(done.rows.X), np.array(GAPS, np.float32))
    assert said(done) == [
        (
            "warning",
            "rows: values are missing in columns 1, 2 (rows 2, 4, 6, "
            "counted from 1 without a header): 4 values to impute.",
        )
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", ["refuse", "drop", "impute"])
def test_a_column_without_values_is_an_error_and_drops_nothing(kind: Kind, missing: str) -> None:
    done = cleaned(rows_of(kind, [[1, NAN], [2, NAN], [0, NAN]], columns=("a", "b")), missing)
    assert said(done) == [("error", "rows: no row has a value in column 'b': leave it out.")]
    assert len(done.rows) == 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", ["refuse", "drop", "impute"])
def test_infinite_values_are_an_error_everywhere(kind: Kind, missing: str) -> None:
    done = cleaned(rows_of(kind, [[1, 2, 0], [INF, 0, 4], [5, -INF, 6]], columns=("a", "b", "c")), missing)
    text = (
        "rows: values are infinite in columns 'a', 'b' (rows 2, 3, "
        "counted from 1 without a header); allowed: finite values."
    )
    assert said(done) == [("error", text)]


@pytest.mark.parametrize("kind", KINDS)
def test_flaws_equal_a_count_of_the_whole_array(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "BLOCK", 40)  # several blocks, the last one shorter
    random = np.random.default_rng(0)
    X = random.choice([0, 1, NAN, INF, -INF], p=[0.5, 0.38, 0.08, 0.02, 0.02], size=(53, 7)).astype(np.float32)
    found = flaws(rows_of(kind, X))
    for flaw, wrong in ((found.missing, np.isnan(X)), (found.infinite, np.isinf(X))):
        np.testing.assert_array_equal(flaw.rows, wrong.any(axis=1))
        np.testing.assert_array_equal(flaw.columns, np.flatnonzero(wrong.any(axis=0)))
        np.testing.assert_array_equal(flaw.counts, wrong.sum(axis=0)[flaw.columns])


def test_missing_labels() -> None:
    rows = Rows(np.ones((4, 1), np.float32), texts("a", None, "b", None))
    where = "rows: the label is missing in rows 2, 4, counted from 1 without a header"
    for missing in ("refuse", "impute"):
        rule = "allowed only with dataset.unlabelled=drop, which leaves such rows out"
        assert said(cleaned(rows, missing)) == [("error", f"{where}: {rule}.")]
    done = cleaned(rows, "drop")
    assert said(done) == [("warning", f"{where}: left out.")]
    assert done.kept.tolist() == [0, 2] and done.rows.y.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("y", "dtype"),
    [
        (np.array([3, 1, 3], np.uint8), np.int64),
        (np.array([True, False, True]), np.int64),
        (np.array([3, 1, 3], object), np.int64),
        (np.array(["3", "1", "3"]), object),
        (texts("3", "1", "3"), object),
    ],
)
def test_labels_become_int64_or_str(y: np.ndarray[Any, Any], dtype: type) -> None:
    done = cleaned(Rows(np.ones((3, 1), np.float32), y))
    assert done.findings == () and done.rows.y.dtype == dtype and done.rows.y.tolist() == y.tolist()
    assert all(type(label) is str for label in done.rows.y) or dtype is np.int64


@pytest.mark.parametrize("y", [np.array([1, "1", 2], object), np.array([0.5, 1.0, 2.0])])
def test_labels_of_other_types_are_an_error(y: np.ndarray[Any, Any]) -> None:
    done = cleaned(Rows(np.ones((3, 1), np.float32), y), "drop", [1, 2])
    assert said(done) == [("error", "rows: the labels must be all whole numbers or all text.")]


def test_only_the_wanted_classes_stay_whatever_is_wrong_with_the_others() -> None:
    X = np.array([[1], [NAN], [2], [3], [4]], np.float32)
    done = cleaned(Rows(X, texts("mac", "cat", "pc", "dog", "mac")), "refuse", ["pc", "mac"])
    assert said(done) == [("warning", "rows: 2 of 5 rows are of other classes and left out.")]
    assert done.kept.tolist() == [0, 2, 4] and done.rows.y.tolist() == ["mac", "pc", "mac"]


def test_row_numbers_are_those_before_anything_was_left_out() -> None:
    X = np.array([[1], [1], [NAN], [2], [NAN], [INF]], np.float32)
    done = cleaned(Rows(X, texts(None, "no", "a", "b", "no", "a")), "drop", ["a", "b"])
    assert [text for _, text in said(done)] == [
        "rows: the label is missing in row 1, counted from 1 without a header: left out.",
        "rows: 2 of 5 rows are of other classes and left out.",
        "rows: values are infinite in column 0 (row 6, counted from 1 without a header); allowed: finite values.",
        "rows: values are missing in column 0 (row 3, counted from 1 without a header): 1 of 3 rows left out.",
    ]
    assert done.kept.tolist() == [3, 5]


@pytest.mark.parametrize(
    ("y", "classes", "text"),
    [
        (texts("mac", "pc", "pc"), ["pc", "mack"], "no row has label 'mack'; the nearest is 'mac'"),
        (texts("1", "2", "2"), [1, "2"], "no row has label 1; the nearest is '1'"),
        (np.array([1, 2, 3]), [1, 2, "3"], "no row has label '3'; the nearest is 3"),
        (texts("mac", "pc", "pc"), ["mac", "pc", "zzz"], "no row has label 'zzz'; the rows have labels 'mac', 'pc'"),
    ],
)
def test_a_wanted_class_without_rows_is_an_error(y: np.ndarray[Any, Any], classes: list[Any], text: str) -> None:
    done = cleaned(Rows(np.ones((3, 1), np.float32), y), "refuse", classes)
    assert said(done)[0] == ("error", f"rows: {text}.")


@pytest.mark.parametrize(("y", "left"), [([5, 5, 5], "3 rows with 1"), ([], "0 rows with 0")])
def test_fewer_than_two_classes_are_an_error(y: list[int], left: str) -> None:
    done = cleaned(Rows(np.ones((len(y), 2), np.float32), np.array(y, dtype=np.int64)))
    assert said(done) == [("error", f"rows: {left} distinct labels are left, but at least 2 labels are needed.")]


def test_an_official_test_set_may_lack_classes_and_columns_to_impute() -> None:
    rows = rows_of("dense", [[1, NAN], [2, NAN]], [5, 5], ("a", "b"))
    done = cleaned(rows, "impute", [5, 7], official=True)
    assert said(done) == [
        ("warning", "rows: no row has label 7."),
        (
            "warning",
            "rows: values are missing in column 'b' (rows 1, 2, counted from 1 without a header): 2 values to impute.",
        ),
    ]
    assert len(done.rows) == 2
    assert [level for level, _ in said(cleaned(rows, "impute", [5, 7]))] == ["error", "error"]  # a training set may not
    (gone,) = said(cleaned(rows, "drop", official=True))[1:]
    assert gone == ("error", "rows: no rows are left, but at least one is needed.")
    assert said(cleaned(rows, "refuse", official=True))[0][0] == "error"


@pytest.mark.parametrize("wanted", [[True, False], [1, 0]])
def test_words_that_yaml_takes_for_flags_are_to_be_quoted(wanted: list[Any]) -> None:
    rows = Rows(np.ones((4, 1), np.float32), texts("yes", "no", "maybe", "no"))
    rule = "which is how YAML reads words such as yes and no; quote them: classes: ['no', 'yes']."
    assert [text for _, text in said(cleaned(rows, classes=wanted))[:2]] == [
        f"rows: no row has label {name}, {rule}" for name in wanted
    ]
    assert said(cleaned(Rows(np.ones((4, 1), np.float32), np.array([0, 1, 1, 0])), classes=wanted)) == []


def test_labels_that_look_the_same_get_a_remark() -> None:
    rows = Rows(np.ones((6, 1), np.float32), texts("cat", "Cat", "dog", "cat ", "a  b", "a b"))
    assert said(cleaned(rows)) == [
        ("warning", "rows: labels 'Cat', 'cat', 'cat ', 'a  b', 'a b' differ only by spaces or case.")
    ]
    assert said(cleaned(Rows(rows.X, texts("cat", "cats", "dog", "c at", "cat", "dog")))) == []


def test_long_labels_are_cut_everywhere() -> None:
    posts = [f"{i} somebody's long and confidential post" + " secret" * 50 for i in range(7)]
    rows = Rows(np.arange(14, dtype=np.float32)[:, None], texts(*(posts * 2)))
    found, split = parts(rows, list(range(6)), [6, 7], [13])
    texts_ = [finding.text for finding in check_parts(*found, split=split)]
    texts_ += [text for _, text in said(cleaned(rows, classes=["0 somebody", *posts[:2]]))]
    assert len(texts_) >= 4 and all("secret" not in text and len(text) < 400 for text in texts_)
    assert any("confid" in text and "…" in text for text in texts_)


def test_texts() -> None:
    rows = Rows(texts("a b", "", None, " \n", "c"), np.array([0, 1, 0, 1, 1]))
    empty = ("warning", "rows: the text is empty in rows 2, 4, counted from 1 without a header.")
    for missing in ("refuse", "impute"):
        text = (
            "rows: values are missing in the text (row 3, "
            "counted from 1 without a header): allowed only with dataset.missing=drop."
        )
        assert said(cleaned(rows, missing)) == [("error", text), empty]
    done = cleaned(rows, "drop")
    assert said(done) == [
        (
            "warning",
            "rows: values are missing in the text (row 3, counted from 1 without a header): 1 of 5 rows left out.",
        ),
        empty,
    ]
    assert done.rows.X.tolist() == ["a b", "", " \n", "c"]


def test_an_unknown_way_with_missing_values_names_the_nearest() -> None:
    with pytest.raises(DataError, match="missing='dorp' is unknown, nearest 'drop': use one of refuse, drop, impute"):
        cleaned(rows_of("dense", [[1], [2]]), "dorp")


def parts(rows: Rows, *numbers: list[int]) -> tuple[tuple[Rows, Rows, Rows], Split]:
    train, validation, test = (np.array(part, dtype=np.int64) for part in numbers)
    split = Split(train, validation, test, official_test=False)
    return (rows.take(split.train), rows.take(split.validation), rows.take(split.test)), split


def words(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(found.level, found.text) for found in findings]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_say_about_sound_parts_nor_about_empty_ones(kind: Kind) -> None:
    rows = rows_of(kind, np.arange(1, 17).reshape(8, 2), [0, 1] * 4)
    found, split = parts(rows, [0, 1, 2, 3], [4, 5], [6, 7])
    assert check_parts(*found, split=split) == []
    found, split = parts(rows, [0, 1, 2, 3], [], [])
    assert check_parts(*found, split=split) == []


@pytest.mark.parametrize(
    ("counts", "share"),
    [((95, 5), None), ((96, 4), "Label 1 has 4 % of the training rows (4 of 100)"), ((95, 4, 1), "Label 1 has 4 %"),
     ((4,) * 25, None), ((5,) * 24 + (2, 2), "Label 24 has 1.6 %"), ((30, *[3] * 23, 1), None)],
)  # fmt: skip
def test_a_small_class_is_named_with_the_remedy(counts: tuple[int, ...], share: str | None) -> None:
    # below 5 %, or half of an equal share where there are many classes
    y = np.repeat(np.arange(len(counts)), counts)
    found, split = parts(Rows(np.arange(2.0 * len(y)).reshape(-1, 2), y), [*range(len(y))], [], [])
    said = [text for _, text in words(check_parts(*found, split=split)) if "class_weight: balanced" in text]
    assert len(said) == (share is not None) and all(text.startswith(share or "") for text in said)


@pytest.mark.parametrize("named", [False, True])
def test_classes_that_are_too_small(named: bool) -> None:
    y = np.array([0, 0, 1, 1, 2, 0, 3, 0, 1, 2])
    rows = Rows(np.arange(10, dtype=np.float32)[:, None], texts(*"aabbcadabc") if named else y)
    found, split = parts(rows, [0, 1, 2, 3, 4], [5, 6], [7, 8, 9])
    b, c, d = ("'b'", "'c'", "'d'") if named else "123"
    assert words(check_parts(*found, split=split)) == [
        ("warning", f"Training has only one row of label {c} (row 5, counted from 1 without a header)."),
        ("error", f"Label {d} occurs in validation row 7, counted from 1 without a header, but not in training."),
        ("warning", f"No validation row has labels {b}, {c}."),
    ]


def test_row_numbers_of_the_source_survive_what_was_left_out() -> None:
    rows = rows_of("dense", [[1], [2], [3], [4]], [0, 1, 0, 1])
    test = rows_of("dense", [[9], [2], [3]], [0, 1, 1])
    split = Split(np.array([0, 1, 2, 3]), NONE, np.array([0, 1, 2]), official_test=True)
    found = check_parts(
        rows, rows.take(NONE), test, split=split, kept=np.array([10, 20, 30, 40]), kept_test=np.array([5, 6, 7])
    )
    assert [finding.text for finding in found] == [
        "1 of 3 test rows equal a training row with the same label: (test, training) row (7, 21), "
        "counted from 1 without a header.",
        "1 of 3 test rows equal a training row with another label: (test, training) row (8, 31), "
        "counted from 1 without a header.",
    ]
    own = Split(np.array([0, 1]), NONE, np.array([2, 3]), official_test=False)
    twin = rows_of("dense", [[1], [2], [1], [5]], [0, 1, 0, 1])
    found = check_parts(
        twin.take(own.train), twin.take(NONE), twin.take(own.test), split=own, kept=np.array([3, 5, 7, 9])
    )
    assert "row (8, 4)" in found[-1].text


@pytest.mark.parametrize("kind", [*KINDS, "text"])
def test_duplicates_equal_a_comparison_of_all_pairs(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "BLOCK", 60)
    random = np.random.default_rng(3)
    X = random.choice([0.0, -0.0, 1.0, 2.0, NAN], size=(120, 4)).astype(np.float32)
    y = random.integers(0, 3, 120)
    if kind == "text":
        rows = Rows(texts(*(str(row + 0.0) for row in X)), y)
    else:
        rows = rows_of(kind, X, y)
    found, split = parts(rows, list(range(40)), list(range(40, 70)), list(range(70, 120)))
    expected = {}
    for name, part in (("validation", split.validation), ("test", split.test)):
        same, other = 0, 0
        for i in part:
            twins = [j for j in split.train if np.array_equal(X[i], X[j], equal_nan=True)]
            same += any(y[i] == y[j] for j in twins)
            other += bool(twins) and all(y[i] != y[j] for j in twins)
        expected[name] = (same, other)
    counts = {
        name: tuple(
            int(finding.text.split(" of ")[0])
            for label in ("the same", "another")
            for finding in check_parts(*found, split=split)
            if f"{name} rows equal a training row with {label}" in finding.text
        )
        for name in expected
    }
    assert counts == expected and min(min(pair) for pair in expected.values()) > 0


def test_rows_of_one_key_are_still_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    # With one key for all, every pair is a candidate, and only the comparison of values can tell.
    for module in ("split_checks", "duplicates"):
        monkeypatch.setattr(f"ldsvm.datasets.{module}.keys_of", lambda X: np.zeros(len(X), dtype=np.uint64))
    rows = rows_of("dense", [[1, 0], [2, 0], [1, 0], [3, 0]], [0, 0, 0, 0])
    found, split = parts(rows, [0, 1], [], [2, 3])
    assert "1 of 2 test rows equal a training row with the same label" in check_parts(*found, split=split)[-1].text


def test_keys_do_not_depend_on_how_rows_are_stored() -> None:
    X = np.array([[0, 1, 0], [2, 0, 3], [0, 0, 0], [NAN, -1, 256]], np.float32)
    one = keys_of(X)
    assert len(set(one.tolist())) == 4
    for other in (untidy(X), csr_matrix(X), np.where(X == 0, -X, X), np.asfortranarray(X)):
        np.testing.assert_array_equal(keys_of(other), one)
    # 2 stored as 1 + 1, as SciPy allows; and one of the many patterns of bits that are NaN.
    stored = np.array([1, 1, 1, 3, NAN, -1, 256], np.float32)
    twice = csr_matrix((stored, [1, 0, 0, 2, 0, 1, 2], [0, 1, 4, 4, 7]), shape=X.shape)
    np.testing.assert_array_equal(keys_of(twice), one)
    other_nan = X.copy()
    other_nan[3, 0] = np.array([0x7FC00001], np.uint32).view(np.float32)[0]
    assert other_nan.tobytes() != X.tobytes()
    np.testing.assert_array_equal(keys_of(other_nan), one)
    pixels = np.array([[0, 255], [7, 0]], np.uint8)
    np.testing.assert_array_equal(keys_of(pixels), keys_of(pixels.astype(np.float32)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_callers_matrix_stays_as_it_is(kind: Kind) -> None:
    rows = rows_of(kind, [[0, 2], [3, 0], [0, 2], [3, 0]])
    names = ("data", "indices", "indptr") if kind == "sparse" else ("X",)
    before = [np.array(getattr(rows.X, name) if kind == "sparse" else rows.X) for name in names]
    found, split = parts(rows, [0, 1, 2, 3], [], [])
    check_parts(rows, *found[1:], split=split)
    cleaned(rows)
    for name, array in zip(names, before, strict=True):
        np.testing.assert_array_equal(getattr(rows.X, name) if kind == "sparse" else rows.X, array)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_with_one_value_in_training(kind: Kind) -> None:
    # Constant: 0 (always 7), 2 (always 0), 3 (7 or missing), 4 (missing); not: 1, and 5, which is 0 or 7.
    X = [[7, 1, 0, 7, NAN, 0], [7, 2, 0, NAN, NAN, 7], [7, 3, 0, 7, NAN, 7], [8, 4, 1, 8, 1, 8]]
    found, split = parts(rows_of(kind, X, [0, 0, 0, 0], tuple("abcdef")), [0, 1, 2], [], [3])
    (finding,) = check_parts(*found, split=split)
    text = "All training rows have the same value (or none) in columns 'a', 'c', 'd', 'e'."
    assert (finding.level, finding.text) == ("warning", text)


def test_constant_columns_of_pixels_and_no_word_about_a_single_row() -> None:
    X = np.array([[0, 1], [0, 2], [5, 3]], np.uint8)
    rows = Rows(X, np.array([0, 0, 0]))
    found, split = parts(rows, [0, 1], [], [2])
    assert [finding.text for finding in check_parts(*found, split=split)] == [
        "All training rows have the same value (or none) in column 0."
    ]
    found, split = parts(rows, [0], [], [1])
    assert not any("same value" in finding.text for finding in check_parts(*found, split=split))


def test_an_official_test_set_of_another_make_is_an_error() -> None:
    train = rows_of("dense", [[1, 2], [3, 4], [5, 7], [6, 8]])
    test = Rows(np.array([[1], [3]], np.float32), texts("0", "1"))
    split = Split(np.arange(4), NONE, np.arange(2), official_test=True)
    assert words(check_parts(train, train.take(NONE), test, split=split)) == [
        ("error", "Labels are whole numbers in training, but text in test rows."),
        ("error", "Inputs are dense with 2 columns in training, but dense with 1 columns in test rows."),
    ]
    empty = Rows(np.empty((0, 1), np.float32), texts())
    split = Split(np.arange(4), NONE, NONE, official_test=True)
    assert check_parts(train, train.take(NONE), empty, split=split) == []


def test_a_column_that_counts_the_rows_is_told() -> None:
    n = 50
    noise = np.random.default_rng(0).permutation(n)
    columns = {"noise": noise, "id": np.arange(n) + 1, "down": -5 * np.arange(n), "same": np.ones(n)}
    columns["nearly"] = np.where(np.arange(n) == 40, 0, np.arange(n))
    rows = Rows(np.float32([*columns.values()]).T.copy(), np.arange(n) % 2, tuple(columns))

    def said(rows: Rows, official: bool = False) -> list[str]:
        done = clean(rows, missing="refuse", classes=None, what="training data", official=official)
        return [finding.text for finding in done.findings]

    assert said(rows) == [
        "training data: columns 'id', 'down' number the rows; list columns that are not inputs in dataset.drop."
    ]
    assert "infinite" in said(Rows(np.full((n, 1), np.inf, dtype=np.float32), rows.y))[0]
    assert not said(rows, official=True) and not said(rows.take(noise)) and not said(rows.take(np.arange(19)))


def test_errors_are_raised_together_and_warnings_returned() -> None:
    warnings = [Finding("warning", "one."), Finding("warning", "two.")]
    assert refuse(warnings) == ["one.", "two."] and refuse([]) == []
    with pytest.raises(DataError) as caught:
        refuse([warnings[0], Finding("error", "first."), warnings[1], Finding("error", "second.")])
    assert str(caught.value) == "first.\nsecond."


@pytest.mark.slow
def test_memory_stays_far_below_the_data() -> None:
    X = np.zeros((30_000, 1_000), dtype=np.float32)  # 114 MiB, and a mask of it 29 MiB
    X[:, 0] = np.arange(30_000)
    rows = Rows(X, np.arange(30_000) % 2)
    test = Rows(X[:10].copy(), rows.y[:10])
    split = Split(np.arange(30_000), NONE, np.arange(10), official_test=True)
    tracemalloc.start()
    check_parts(rows, rows.take(NONE), test, split=split)
    cleaned(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20


WIDE = 2**31 - 1


def wide(*columns: list[int], values: list[float] | None = None) -> Rows:
    """Rows of 1, or of these values, in the columns that each row names, of 2,147,483,647 columns."""
    indices = np.concatenate([np.array(row, dtype=np.int64) for row in columns])
    data = np.ones(len(indices), np.float32) if values is None else np.array(values, np.float32)
    indptr = np.cumsum([0, *map(len, columns)])
    return Rows(csr_matrix((data, indices, indptr), shape=(len(columns), WIDE)), np.arange(len(columns)) % 2)


def test_memory_is_bounded_by_what_is_stored_however_many_columns_there_are() -> None:
    rows = wide([0, 2], [2, WIDE - 1], [0, 2], [2, 7], values=[1, 1, 1, 1, 1, 1, 1, NAN])
    split = Split(np.array([0, 1]), NONE, np.array([2, 3]), official_test=False)
    tracemalloc.start()
    findings = check_parts(rows.take(split.train), rows.take(NONE), rows.take(split.test), split=split)
    done = cleaned(rows, "impute")
    facts = summarise(rows, None)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()
    # Two columns vary in training: 0 and the last.
    assert [finding.text for finding in findings] == [
        "Training has only one row of labels 0, 1 (rows 1, 2, counted from 1 without a header).",
        "All training rows have the same value (or none) in columns 1, 2, 3, 4, 5 and 2,147,483,640 more.",
        "1 of 2 test rows equal a training row with the same label: (test, training) row (3, 1), "
        "counted from 1 without a header.",
    ]
    assert said(done) == [
        (
            "warning",
            "rows: values are missing in column 7 (row 4, counted from 1 without a header): 1 values to impute.",
        )
    ]
    assert facts["missing"] == {"total": 1, "columns": {"7": 1}} and facts["features"] == WIDE


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_constant_columns_are_told_whichever_they_are(kind: Kind) -> None:
    random = np.random.default_rng(4)
    for _ in range(30):
        X = random.choice([0.0, 1.0, NAN], p=[0.6, 0.3, 0.1], size=(3, 12)).astype(np.float32)
        constant = [j for j in range(12) if len(set(X[~np.isnan(X[:, j]), j].tolist())) <= 1]
        found, split = parts(rows_of(kind, X, [0, 0, 0]), [0, 1, 2], [], [])
        listed = listing("column", constant)
        expected = [f"All training rows have the same value (or none) in {listed}."] if constant else []
        assert [finding.text for finding in check_parts(*found, split=split)] == expected
