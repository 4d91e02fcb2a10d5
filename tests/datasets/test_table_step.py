"""The step for tables with mixed columns: known values by hand, what it does not depend on, and its sentences."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from pandas import DataFrame, NaT, Series, Timestamp, isna
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import QuantileTransformer, RobustScaler, StandardScaler, TargetEncoder

from ldsvm import LDSVMClassifier
from ldsvm.datasets import DataError
from ldsvm.datasets.features import describe, fit_transform, pipeline, transform
from ldsvm.datasets.steps import parse
from ldsvm.datasets.table_parts import PARTS
from ldsvm.experiment.storing import dumps, loads

ROLES = {"age": "number", "pay": "number", "paid": "yes/no", "town": "category", "zip": "category", "day": "date"}


def table(n: int = 120, seed: int = 0, **more: Any) -> DataFrame:
    """Columns of all roles but text, with gaps in each, 40 values of zip, and two rare towns (of 2 rows each)."""
    rng = np.random.default_rng(seed)
    age, pay = rng.normal(40, 10, n), np.exp(rng.normal(8, 2, n))
    paid, days = rng.integers(0, 2, n).astype(float), Timestamp("2023-11-05") + rng.integers(0, 400, n).astype("m8[D]")
    town = rng.choice(["Ulm", "Bonn", "Köln"], n).astype(object)
    codes = np.array([f"{i % 40:03}" for i in rng.permutation(n)], dtype=object)
    age[::7], paid[3::9], codes[5::30] = np.nan, np.nan, None
    town[1::8], town[[0, 4]], town[[10, 20]] = None, "Au", "Ep"
    words = {"town": Series(town, dtype=object), "zip": Series(codes, dtype=object)}  # not pandas's strings
    columns = {"age": age, "pay": pay, "paid": paid, **words, "day": days.astype("M8[us]")}
    return DataFrame({**columns, **more}).assign(day=lambda t: t["day"].where(t.index % 11 != 2, NaT))


def labels(n: int = 120, classes: int = 2, seed: int = 1) -> Any:
    return np.random.default_rng(seed).choice(["a", "b", "c"][:classes], n).astype(object)


def made(roles: dict[str, str], *steps: Any, seed: int = 0, **params: Any) -> Any:
    return pipeline(
        parse([{"table": params}, *steps]) if params or steps else (), kind="table", missing="refuse", seed=seed,
        roles=roles,
    )  # fmt: skip


def columns_of(pipe: Any, group: str) -> Any:
    return pipe[0].columns_.output_indices_[group]


# numbers


def test_a_table_of_numbers_is_imputed_and_scaled_as_by_hand() -> None:
    X, new = table(), table(seed=2)
    roles = {"age": "number", "pay": "number"}
    pipe = made(roles, rare=1000)  # too few gaps for a column of them
    found = fit_transform(pipe, X)
    median, mean, deviation = np.median(X["age"].dropna()), {}, {}
    for name in roles:
        filled = X[name].fillna(median).to_numpy()
        mean[name], deviation[name] = filled.mean(), filled.std()
    for got, rows in ((found, X), (transform(pipe, new), new)):
        expected = [(rows[name].fillna(median) - mean[name]) / deviation[name] for name in roles]
        np.testing.assert_allclose(got, np.column_stack(expected), rtol=1e-5, atol=1e-6)
        assert got.dtype == np.float32 and got.flags.c_contiguous
    assert describe(pipe) == ["table: 2 features: 2 from 2 numbers"]


@pytest.mark.parametrize(
    ("name", "scaler"),
    [
        ("standard", StandardScaler()),
        ("robust", RobustScaler()),
        ("quantile", QuantileTransformer(n_quantiles=120, output_distribution="normal")),
    ],
)
def test_numbers_are_scaled_by_the_step_that_is_named(name: str, scaler: Any) -> None:
    X = table()
    found = fit_transform(made({"pay": "number"}, numbers=name), X)
    np.testing.assert_allclose(found, scaler.fit_transform(X[["pay"]]), rtol=1e-5, atol=1e-6)


def test_robust_scaling_leaves_no_column_as_large_as_it_is() -> None:
    # four fifths of zeros: the quartiles are equal, and dividing by their distance would do nothing
    X = table().assign(gain=np.where(np.arange(120) % 5, 0, 1e5))
    pipe = made({"gain": "number", "pay": "number"}, numbers="robust")
    found = fit_transform(pipe, X)
    np.testing.assert_allclose(found[:, 0], RobustScaler().fit_transform(X[["pay"]])[:, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[:, 1], StandardScaler().fit_transform(X[["gain"]])[:, 0], rtol=1e-5)
    assert describe(pipe) == ["table: 2 features: 1 from 1 number, 1 from 1 number with equal quartiles"]


def test_gaps_of_their_own_are_the_mean_and_a_column_of_gaps() -> None:
    X = table()
    gaps = X["age"].isna().to_numpy()
    known = X["age"].to_numpy()
    found = fit_transform(made({"age": "number"}, gaps="own", rare=1000), X)
    scaled = np.where(gaps, 0, (known - np.nanmean(known)) / np.nanstd(known))
    np.testing.assert_allclose(found, np.column_stack([scaled, gaps]), rtol=1e-5, atol=1e-6)


def test_frequent_gaps_have_a_column_and_rare_ones_have_none() -> None:
    X = table()
    X.loc[[2, 30, 31, 50], "pay"] = np.nan  # 4 rows, below the 10 of the default
    pipe = made({"pay": "number", "paid": "yes/no", "age": "number", "day": "date"})
    found = fit_transform(pipe, X)
    np.testing.assert_array_equal(
        found[:, columns_of(pipe, "gap")], X[["pay", "paid", "age", "day"]].isna().iloc[:, 1:][["age", "paid", "day"]]
    )
    assert list(pipe[0].get_feature_names_out()[columns_of(pipe, "gap")]) == ["gap__age", "gap__paid", "gap__day"]


# categories


def test_rare_and_unseen_categories_give_the_same_row_and_gaps_one_of_their_own() -> None:
    pipe = made({"town": "category"})
    X = table()
    found = fit_transform(pipe, X)
    assert list(pipe[0].get_feature_names_out()) == [
        f"category__town_{name}" for name in ("Bonn", "Köln", "Ulm", "None", "infrequent_sklearn")
    ]
    new = DataFrame({"town": np.array(["Ulm", "Au", "Ep", "never seen", None, float("nan")], dtype=object)})
    rows = transform(pipe, new)
    assert rows.tolist() == [[0, 0, 1, 0, 0], *[[0, 0, 0, 0, 1]] * 3, *[[0, 0, 0, 1, 0]] * 2]
    np.testing.assert_array_equal(found[X["town"].isna(), 3], 1)


def test_without_rare_categories_unseen_ones_are_zeros() -> None:
    pipe = made({"town": "category"}, rare=1)
    fit_transform(pipe, table())
    assert transform(pipe, DataFrame({"town": ["never seen"]})).tolist() == [[0] * 6]  # five towns and the gap


@pytest.mark.parametrize("classes", [2, 3])
def test_target_encoding_leaves_each_training_row_out_and_can_be_repeated(classes: int) -> None:
    X, y = table(), labels(classes=classes)
    pipe = made({"zip": "category"})
    found = fit_transform(pipe, X, y=y)
    again = transform(pipe, X)
    assert found.shape == (120, 1 if classes == 2 else 3)
    assert np.abs(found - again).max() > 0.1
    np.testing.assert_array_equal(fit_transform(made({"zip": "category"}), X, y=y), found)
    assert np.abs(fit_transform(made({"zip": "category"}, seed=1), X, y=y) - found).max() > 0.01
    # of later rows, as scikit-learn has it: a gap is a value, an unseen value has the mean of all rows
    plain = TargetEncoder(target_type="binary" if classes == 2 else "multiclass").fit(X[["zip"]].to_numpy(), y)
    new = np.array([["003"], [None], ["never seen"]], dtype=object)
    scale = pipe[0].columns_.named_transformers_["many"]["scale"]
    expected = (plain.transform(new) - scale.mean_) / scale.scale_
    np.testing.assert_allclose(transform(pipe, DataFrame(new, columns=["zip"])), expected, rtol=1e-4, atol=1e-5)
    assert describe(pipe) == [
        f"table: {_several(found.shape[1])}: {found.shape[1]} from the target-encoded column 'zip'"
    ]


def _several(features: int) -> str:
    return "1 feature" if features == 1 else f"{features} features"


def test_labels_that_mean_nothing_do_not_show_in_cross_fitted_features() -> None:
    # each category has one row: encoded with its own label it would give the label away
    X = DataFrame({"id": np.array([f"v{i}" for i in range(200)], dtype=object)})
    y = np.arange(200) % 2
    found = fit_transform(made({"id": "category"}), X, y=y)
    assert np.abs(found).max() == 0 or len(np.unique(found)) <= 5  # one mean for each fold


def test_classes_of_fewer_rows_than_folds_are_encoded() -> None:
    y = labels()
    y[:2] = "c"
    assert np.isfinite(fit_transform(made({"zip": "category"}), table(), y=y)).all()


def test_how_many_values_are_many_is_a_parameter() -> None:
    X, y = table(), labels()
    pipe = made({"town": "category", "zip": "category"}, many=5)  # towns: 5 and the gap
    assert fit_transform(pipe, X, y=y).shape == (120, 2)
    pipe = made({"town": "category", "zip": "category"}, many=41, rare=1)
    assert fit_transform(pipe, X).shape == (120, 6 + X["zip"].nunique(dropna=False))


# dates, text


def test_parts_of_known_dates() -> None:
    # a Sunday, a leap day (Thursday), New Year's Eve before 1970 (Wednesday), at noon; the first one counts as 0
    days = ["2023-01-01", "2024-02-29", "1969-12-31T12:00", None]
    dates = DataFrame({"day": np.array(days, dtype="M8[us]")})
    pipe = made({"day": "date"})
    fit_transform(pipe, dates)
    found = pipe[0].columns_.named_transformers_["date"]["parts"].transform(dates)
    by_hand = [
        [2023, 0, 6, 53 * 365 + 13 + 0.5],
        [2024, 1, 3, 54 * 365 + 13 + 0.5 + 31 + 28],
        [1969, 11, 2, 0],
    ]
    for row, (year, month, weekday, since) in zip(found[:3], by_hand, strict=True):
        angles = 2 * math.pi * month / 12, 2 * math.pi * weekday / 7
        expected = [year, *(f(angle) for angle in angles for f in (math.sin, math.cos)), since]
        np.testing.assert_allclose(row, expected, atol=1e-12)
    assert np.isnan(found[3]).all()
    assert list(pipe[0].get_feature_names_out()) == [f"date__day_{part}" for part in PARTS]


def test_text_is_word_counts_beside_the_others() -> None:
    X = table()[:6].assign(note=["good soup", "bad soup", "", "good good day", "soup", "bad one"])
    pipe = made({"age": "number", "note": "text"}, max_features=3)
    found = fit_transform(pipe, X)
    assert found.dtype == np.float32 and found.shape == (6, 4)
    np.testing.assert_allclose(np.linalg.norm(found[:, 1:], axis=1) ** 2, [1, 1, 0, 1, 1, 1], atol=1e-6)
    assert {name.split("__")[1] for name in pipe[0].get_feature_names_out()[1:]} == {"bad", "good", "soup"}
    assert describe(pipe)[0] == "table: 4 features: 1 from 1 number, 3 from 1 text"
    assert np.count_nonzero(transform(pipe, X[:1].assign(note="good"))[0, 1:]) == 1


def test_many_words_become_components_that_keep_distances() -> None:
    texts = [f"word{i % 12} soup word{i % 9}x " + (f"rare{i}" if i > 99 else "") for i in range(200)]
    X = DataFrame({"note": texts})
    pipe = made({"note": "text"})
    found = fit_transform(pipe, X)
    counts = TfidfVectorizer(dtype=np.float32).fit_transform(texts)
    assert counts.shape[1] > 100 and found.shape == (200, 100)
    by_hand = TruncatedSVD(100, random_state=0).fit(counts)
    np.testing.assert_allclose(found, by_hand.transform(counts), atol=1e-5)
    np.testing.assert_array_equal(transform(pipe, X), found)
    np.testing.assert_array_equal(fit_transform(made({"note": "text"}), X), found)


# what it does not depend on, and what is left out


@pytest.mark.slow
def test_order_of_columns_and_further_ones_do_not_matter() -> None:
    X, y = table(), labels()
    pipe = made(ROLES)
    expected = fit_transform(pipe, X, y=y)
    other = X[["zip", "day", "paid", "town", "pay", "age"]].assign(id=range(120)).set_index(X.index[::-1])
    np.testing.assert_array_equal(fit_transform(made(ROLES), other, y=y), expected)
    np.testing.assert_array_equal(transform(pipe, other), transform(pipe, X))


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_each_feature_is_known_by_its_column(classes: int) -> None:
    # a column that changes alone changes its own features and no others
    notes = np.array(["late parcel", "price too high", "thanks"], dtype=object)[np.arange(120) % 3]
    X, roles = table(words=Series(notes, dtype=object)), {**ROLES, "words": "text"}
    pipe = made(roles, numbers="robust", many=10)
    Phi = fit_transform(pipe, X, y=labels(classes=classes))
    found = np.array(pipe[0].columns_of_features())
    assert len(found) == Phi.shape[1] and set(found) == set(roles)
    before = transform(pipe, X)
    for name in roles:
        other = X.assign(**{name: X[name].to_numpy()[np.roll(np.arange(len(X)), 5)]})
        changed = (transform(pipe, other) != before).any(axis=0)
        np.testing.assert_array_equal(changed, found == name, err_msg=name)


def test_columns_without_a_training_value_are_left_out() -> None:
    X = table().assign(age=np.nan, town=None, note=" . ", day=NaT)
    X["day"] = X["day"].astype("M8[us]")
    pipe = made({**ROLES, "note": "text"})
    found = fit_transform(pipe, X, y=labels())
    assert describe(pipe)[0].endswith("; columns 'age', 'town', 'day', 'note' left out, without a training value")
    assert found.shape == (120, 4)  # pay, paid, its gaps, zip
    new = table(seed=3).assign(note="words")
    np.testing.assert_array_equal(transform(pipe, new), transform(pipe, new.assign(age=0.0)))
    with pytest.raises(DataError, match=r"None of the 1 columns has a training value; allowed: at least one\."):
        fit_transform(made({"age": "number"}), X)


def test_other_types_of_pandas_mean_the_same() -> None:
    X, y = table(), labels()
    pipe = made(ROLES)
    fit_transform(pipe, X, y=y)
    other = X.assign(
        age=X["age"].astype("Float64"),
        pay=[float(value) for value in X["pay"]],
        paid=[None if isna(value) else bool(value) for value in X["paid"]],
        town=X["town"].astype("string"),
        zip=X["zip"].astype("category"),
        day=[None if isna(value) else value.to_pydatetime() for value in X["day"]],
    )
    np.testing.assert_array_equal(transform(pipe, other), transform(pipe, X))


# stored with the model


@pytest.mark.slow
@pytest.mark.parametrize("gaps", ["median", "own"])
@pytest.mark.parametrize("numbers", ["standard", "quantile", "robust"])
@pytest.mark.parametrize("text", [False, True])
def test_the_stored_model_takes_the_table_as_it_came(text: bool, numbers: str, gaps: str) -> None:
    note = np.array([f"word{i % 7} soup{i % 2}" for i in range(120)], dtype=object)
    X, new, y = table(note=note), table(seed=5, note=note[::-1]), labels(classes=3)
    roles = {**ROLES, "note": "text"} if text else ROLES
    pipe = made(roles, gaps=gaps, numbers=numbers)
    features = fit_transform(pipe, X, y=y)
    classifier = LDSVMClassifier(n_basis=10, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning):  # one iteration does not converge
        model = Pipeline([*pipe.steps, ("model", classifier.fit(features, y))])
    again = loads(dumps(model))
    np.testing.assert_array_equal(again.decision_function(new), model.decision_function(new))
    np.testing.assert_array_equal(again.decision_function(new), again[-1].decision_function(transform(pipe, new)))
    told = loads(dumps(pipe))
    assert describe(told) == describe(pipe)
    with pytest.warns(ConvergenceWarning):
        refitted = clone(model).fit(X, y)  # by scikit-learn alone
    np.testing.assert_array_equal(refitted.decision_function(new), model.decision_function(new))
    np.testing.assert_array_equal(transform(told, new), transform(pipe, new))


# sentences


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        (
            "age",
            "old",
            "Row 13, counted from 1 without a header, column 'age' is 'old'; allowed: a number, or a missing value.",
        ),
        (
            "age",
            "3",
            "Row 13, counted from 1 without a header, column 'age' is '3'; allowed: a number, or a missing value.",
        ),
        (
            "age",
            -math.inf,
            "Row 13, "
            "counted from 1 without a header, column 'age' is -inf; allowed: a number within ±3.4e38, or a missing "
            "value.",
        ),
        (
            "paid",
            0.5,
            "Row 13, counted from 1 without a header, column 'paid' is 0.5; allowed: 0 for no, 1 for yes, or "
            "a missing value.",
        ),
        (
            "paid",
            "yes",
            "Row 13, counted from 1 without a header, column 'paid' is 'yes'; allowed: a number, or a missing value.",
        ),
        (
            "town",
            3,
            "Row 13, counted from 1 without a header, column 'town' is 3; allowed: a word, or a missing value.",
        ),
        (
            "day",
            "2024-01-01",
            "Row 13, counted from 1 without a header, column 'day' is '2024-01-01'; allowed: a date, or "
            "a missing value.",
        ),
        (
            "note",
            1.5,
            "Row 13, counted from 1 without a header, column 'note' is 1.5; allowed: a text, which may be empty.",
        ),
    ],
)
def test_a_cell_of_another_type_is_named(column: str, value: Any, told: str) -> None:
    roles = {**ROLES, "note": "text"}
    X, y = table(note="good soup"), labels()
    pipe = made(roles)
    fit_transform(pipe, X, y=y)
    bad = X.assign(**{column: X[column].astype(object)})
    bad.loc[2, column] = value
    rows = np.arange(120) + 10
    for act in (lambda: transform(pipe, bad, rows), lambda: fit_transform(made(roles), bad, rows, y=y)):
        with pytest.raises(DataError, match=rf"^{re.escape(told)}$"):
            act()
    bad.loc[5, column] = value
    with pytest.raises(
        DataError, match=r"^Row 3, counted from 1 without a header, column .*, and 1 more in this column; allowed: "
    ):
        Pipeline(pipe.steps).transform(bad)  # as scikit-learn calls it, without numbers of rows


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda X: X.drop(columns=["age", "day"]), "The table has no columns 'age', 'day'; allowed: tables with all"),
        (lambda X: X.to_numpy(), "The inputs are ndarray, without names of columns; allowed: a pandas"),
        (lambda X: X[["age", *ROLES]], "The table has column 'age' more than once; allowed: once."),
    ],
)  # fmt: skip
def test_tables_without_the_columns_of_training_are_refused(change: Any, told: str) -> None:
    pipe = made(ROLES)
    fit_transform(pipe, table(), y=labels())
    with pytest.raises(DataError, match=f"^{re.escape(told)}"):
        transform(pipe, change(table()))


@pytest.mark.parametrize(
    ("steps", "kind", "told"),
    [
        (["table"], "dense", "features.table needs a table with roles of its columns, but the inputs are dense numb"),
        (["table"], "text", "features.table needs a table with roles of its columns, but the inputs are texts; all"),
        (["scale", "table"], "table", "features.table comes after another step; allowed: as the first step, and once."),
        (["table", "table"], "table", "features.table comes after another step; allowed: as the first step, and once."),
        (["tfidf"], "table", "features.tfidf needs texts, but the inputs are a table; allowed: steps for numbers."),
    ],
)  # fmt: skip
def test_the_step_is_for_tables_and_first(steps: list[Any], kind: str, told: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(told)}"):
        pipeline(parse(steps), kind=kind, missing="refuse", seed=0, roles=ROLES)


def test_the_step_is_first_also_where_the_file_does_not_name_it() -> None:
    for missing in ("impute", "refuse"):
        pipe = pipeline(parse(["scale"]), kind="table", missing=missing, seed=3, roles=ROLES)
        assert [name for name, _ in pipe.steps] == ["table", "scale"] and pipe[0].random_state == 3
        assert pipe[1].with_mean  # what the step makes is dense


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("gaps", ["median", "own"], ["mean", None, True, ["own"]]),
        ("numbers", ["standard", "quantile", "robust"], ["minmax", 1]),
        ("rare", [1, 20, 0.05], [0, 1.0, 0.0, -0.1, True, "5", math.nan]),
        ("many", [1, 30], [0, 2.0, None, True]),
        ("max_features", [1, 5000], [0, 2.0, None, True]),
    ],
)
def test_values_of_parameters_that_are_allowed(key: str, good: list[Any], bad: list[Any]) -> None:
    X, y = table(note="good soup"), labels()
    for value in good:
        fit_transform(made({**ROLES, "note": "text"}, **{key: value}), X, y=y)
    for value in bad:
        with pytest.raises(DataError, match=rf"^features\.table\.{key} is .*; allowed: "):
            parse([{"table": {key: value}}])


def test_roles_and_labels_that_are_needed() -> None:
    with pytest.raises(
        DataError, match=r"^The role 'categry' of column 'a' is unknown \(did you mean \"category\"\?\); "
    ):
        made({"a": "categry"})
    with pytest.raises(DataError, match=r"^The table has no columns to learn from; allowed: at least one\.$"):
        made({})
    with pytest.raises(DataError, match=r"^Columns of many values are encoded by the labels, and there are none; "):
        fit_transform(made(ROLES), table())


def test_later_steps_work_on_what_the_step_makes() -> None:
    X, y = table(), labels()
    found = fit_transform(made(ROLES, {"pca": {"n_components": 3}}, "normalize"), X, y=y)
    assert found.shape == (120, 3)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-6)
