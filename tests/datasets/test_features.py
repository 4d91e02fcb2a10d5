"""Features: what an experiment file may say, what the steps compute, and that they go with the model."""

from __future__ import annotations

import math
import os
import re
import tarfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from ldsvm.datasets import DataError, flaws
from ldsvm.datasets.features import describe, fit_transform, pipeline, transform
from ldsvm.datasets.steps import Step, parse

RAW = os.environ.get("LDSVM_DATA_HOME")
ARCHIVE = Path(RAW or ".") / "20news" / "20news-bydate.tar.gz"
TRAIN = ["a red disk and a blue disk", "the red drive", "disk drive drive", "", "ÿ é x", "Blue café"]
NEW = ["red red unseen", "nothing known", "café DRIVE"]


def texts(*values: str) -> Any:
    return np.array(values, dtype=object)


def made(*entries: Any, kind: str = "dense", missing: str = "refuse", seed: int = 0) -> Any:
    return pipeline(parse(list(entries)), kind=kind, missing=missing, seed=seed)


def numbers(rows: int = 40, columns: int = 7, seed: int = 0) -> Any:
    """Columns of unequal means and scales, so that a swap shows."""
    rng = np.random.RandomState(seed)
    return (rng.randn(rows, columns) * (1 + np.arange(columns)) + np.arange(columns)).astype(np.float32)


def thin(rows: int = 40, columns: int = 7, seed: int = 0) -> Any:
    X = numbers(rows, columns, seed)
    return csr_matrix(np.where(X > 1, X, 0))


# what the experiment file says


def test_steps_are_read_in_their_order() -> None:
    steps = parse(["strip_headers", {"tfidf": {"min_df": 6, "ngram_range": [1, 2]}}, {"pca": {"n_components": 0.98}}])
    assert [step.name for step in steps] == ["strip_headers", "tfidf", "pca"]
    assert steps[1:] == (Step("tfidf", {"min_df": 6, "ngram_range": [1, 2]}), Step("pca", {"n_components": 0.98}))
    assert parse(None) == parse([]) == ()
    assert parse([{"scale": None}]) == parse([{"scale": {}}]) == parse(["scale"]) == (Step("scale"),)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("tfidf", "features is 'tfidf'; allowed: a list of steps such as [strip_headers, tfidf: {min_df: 6}]."),
        ({"pca": {"n_components": 3}}, "features is {'pca': {'n_components': 3}}; allowed: a list of steps such as "),
        ([{"scale": None, "minmax": None}], "features[0] is {'scale': None, 'minmax': None}; allowed: one step, \""),
        (["scale", 3], "features[1] is 3; allowed: one step, "),
        (["tf_idf"], 'features[0] "tf_idf" is unknown (did you mean "tfidf"?); allowed: strip_headers, tfidf, pca, '),
        ([{1: {}}], 'features[0] "1" is unknown; allowed: strip_headers, '),
        ([{"pca": 0.98}], "features.pca is 0.98; allowed: parameters by name, such as {n_components: …}."),
        ([{"minmax": True}], "features.minmax is True; allowed: no parameters."),
        ([{"minmax": {"clip": True}}], "features.minmax.clip is unknown; allowed: no parameters."),
        (
            [{"tfidf": {"mindf": 6}}],
            'features.tfidf.mindf is unknown (did you mean "min_df"?); allowed: min_df, max_df',
        ),
        (["svd"], "features.svd needs n_components: a whole number of at least 1."),
        ([{"pca": {"whiten": True}}], "features.pca needs n_components: a whole number of at least 1, or a fraction"),
        ([{"scale": {"with_mean": "no"}}], "features.scale.with_mean is 'no'; allowed: true or false."),
    ],
)
def test_what_is_no_step_gets_one_sentence(value: Any, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        parse(value)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("min_df", [1, 6, 0.01], [0, -1, 1.0, 1.5, 0.0, True, "6", None, math.nan]),
        ("max_df", [1, 0.5, 1.0], [0, 1.5, 0.0, True, None, math.nan]),
        ("max_features", [1, 5000], [0, 2.0, None, True]),
        ("ngram_range", [[1, 2], [1, 1], (2, 3)], [2, [1], [2, 1], [0, 1], [1, 2.0], "12"]),
        ("token_pattern", [r"\w+", "(a)b"], ["(", "(a)(b)", 3, None]),
        ("stop_words", [None, "english"], ["german", ["a"], True]),
        ("norm", [None, "l1", "l2"], ["l3", 2]),
        ("sublinear_tf", [True, False], [1, "yes", None]),
    ],
)
def test_values_that_are_allowed_are_those_that_scikit_learn_takes(key: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        pipe = pipeline(parse([{"tfidf": {key: value}}]), kind="text", missing="refuse", seed=0)
        pipe.fit(["ab ab abc ab", "abc ab ab", "xy abb"] * 4 + ["once here too"])
    for value in bad:
        with pytest.raises(DataError, match=rf"^features\.tfidf\.{key} is .*; allowed: "):
            parse([{"tfidf": {key: value}}])


@pytest.mark.parametrize("value", [0, -2, 1.0, 0.0, 1.5, "mle", None, True])
def test_components_are_a_number_or_a_fraction(value: Any) -> None:
    with pytest.raises(DataError, match=r"^features\.pca\.n_components is .* or a fraction of the variance"):
        parse([{"pca": {"n_components": value}}])


# the pipeline


def test_nothing_to_do_is_no_pipeline() -> None:
    assert made() is made(kind="sparse") is None
    assert [name for name, _ in made(missing="impute").steps] == ["impute"]


def test_steps_keep_their_names_and_repetitions_are_numbered() -> None:
    pipe = made("scale", {"pca": {"n_components": 2}}, "scale", "scale", missing="impute")
    assert [name for name, _ in pipe.steps] == ["impute", "scale", "pca", "scale-2", "scale-3"]
    assert [line.split(":")[0] for line in (fit_transform(pipe, numbers()), describe(pipe))[1][1:]] == [
        "scale", "pca", "scale-2", "scale-3",
    ]  # fmt: skip
    assert [name for name, _ in made("tfidf", kind="text", missing="impute").steps] == ["tfidf"]


@pytest.mark.parametrize(
    ("entries", "kind", "message"),
    [
        (["tfidf"], "dense", "features.tfidf needs texts, but the inputs are dense numbers"),
        (["strip_headers"], "sparse", "features.strip_headers needs texts, but the inputs are sparse numbers"),
        (["tfidf", "tfidf"], "text", "features.tfidf comes after tfidf, which leaves no texts"),
        (["tfidf", "strip_headers"], "text", "features.strip_headers comes after tfidf"),
        (["normalize", "tfidf"], "text", "features.normalize needs numbers, but the inputs are texts; allowed: after"),
        ([], "text", "The inputs are texts, but features has no step that turns texts into numbers; add tfidf."),
        (["strip_headers"], "text", "The inputs are texts, but features has no step"),
        (["minmax"], "sparse", "features.minmax would fill the zeros of sparse inputs; allowed: max_abs"),
        (["tfidf", "minmax"], "text", "features.minmax would fill the zeros"),
        ([{"scale": {"with_mean": True}}], "sparse", "features.scale.with_mean is True, which would fill the zeros"),
    ],
)
def test_steps_that_do_not_fit_are_refused(entries: list[Any], kind: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        made(*entries, kind=kind)


DENSE: list[Any] = [
    {"pca": {"n_components": 3}}, {"pca": {"n_components": 0.9, "whiten": True}}, {"svd": {"n_components": 3}},
    "scale", {"scale": {"with_mean": False}}, "minmax", "max_abs", "normalize",
]  # fmt: skip
SPARSE = [entry for entry in DENSE if entry != "minmax"]


@pytest.mark.parametrize(
    ("entry", "kind"),
    [*((entry, "dense") for entry in DENSE), *((entry, "sparse") for entry in SPARSE)],
)
def test_every_step_keeps_float32_and_is_what_scikit_learn_computes(entry: Any, kind: str) -> None:
    X, new = (numbers(), numbers(9, seed=1)) if kind == "dense" else (thin(), thin(9, seed=1))
    pipe = made(entry, kind=kind, missing="impute")
    for ours, theirs in (
        (fit_transform(pipe, X), clone(pipe).fit_transform(X)),
        (transform(pipe, new), pipe.transform(new)),
    ):
        assert ours.dtype == theirs.dtype == np.float32
        if hasattr(ours, "indptr"):
            assert ours.format == "csr" and ours.indices.dtype == ours.indptr.dtype == np.int32
            np.testing.assert_array_equal(ours.toarray(), theirs.toarray())
        else:
            assert ours.flags.c_contiguous
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert transform(pipe, X).shape[1] == len(pipe[-1].get_feature_names_out())


def test_wide_indices_and_bytes_become_float32() -> None:
    X = thin()
    wide = csr_matrix(X)
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    found = fit_transform(made("max_abs", kind="sparse"), wide)
    assert found.indices.dtype == found.indptr.dtype == np.int32
    pixels = np.array([[0, 200], [255, 100]], dtype=np.uint8)
    bright = fit_transform(made("minmax"), pixels)
    assert bright.dtype == np.float32 and bright.tolist() == [[0, 1], [1, 0]]


def test_scaling_by_hand() -> None:
    X, new = numbers(), numbers(5, seed=1)
    pipe = made("scale")
    Z = fit_transform(pipe, X)
    mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    np.testing.assert_allclose(Z, (X - mean) / deviation, atol=1e-5)
    np.testing.assert_allclose(transform(pipe, new), (new - mean) / deviation, atol=1e-5)
    S = fit_transform(made("scale", kind="sparse"), thin())
    assert S.nnz == thin().nnz
    np.testing.assert_allclose(S.toarray() * thin().toarray().std(axis=0), thin().toarray(), rtol=1e-4)


def test_a_constant_column_becomes_zero() -> None:
    X = numbers()
    X[:, 2], X[:, 5] = 0.1, 1e6 + 0.3  # neither is a float32, nor a mean that rounding leaves alone
    for step in ("scale", "minmax"):
        Z = fit_transform(made(step), X)
        assert np.isfinite(Z).all() and not Z[:, [2, 5]].any() and Z[:, [0, 1, 3, 4, 6]].std(axis=0).all()
    assert fit_transform(made("normalize"), np.zeros((2, 3), np.float32)).tolist() == [[0] * 3] * 2


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("size", [1e-40, 1e-20, 1e-7, 1, 1e20, 1e38])
def test_rows_of_any_size_get_length_one(kind: str, size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flaws, "BLOCK", 20)  # several blocks
    X = np.random.default_rng(0).uniform(-3, 3, size=(11, 7))
    X[X < -1] = 0
    X[4] = 0
    scaled = (X * size).astype(np.float32)
    exact = scaled.astype(np.float64) / size  # what float32 left of them, of an ordinary size
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    Z = fit_transform(made("normalize", kind=kind), csr_matrix(scaled) if kind == "sparse" else scaled)
    np.testing.assert_allclose(_array(Z), exact / np.where(lengths, lengths, 1), rtol=1e-6, atol=1e-12)


HUGE = np.array([[3e38, 1], [-3e38, 2], [3e38, 4], [-3e38, 3]], np.float32)


def refused(message: str, pipe: Any, X: Any, new: Any = None) -> None:
    """The fit, or after it the transformation of new inputs, is refused, and says nothing else."""
    if new is not None:
        fit_transform(pipe, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=f"^{re.escape(message)}") as caught:
            fit_transform(pipe, X) if new is None else transform(pipe, new)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_results_beyond_float32_are_refused_with_step_and_rows() -> None:
    beyond = "beyond ±3.4e38, the range of float32, in row"
    tiny = np.array([[1e-5, 0], [2e-5, 1], [3e-5, 2], [5e-5, 3]], np.float32)
    outlier = np.array([[1e-5, 0], [3e38, 1], [0, 0], [-3e38, 0]], np.float32)
    for step in ("scale", "max_abs"):
        refused(
            f"features.{step}: the results are {beyond}s 2, 4, counted from 1 without a header;",
            made(step),
            tiny,
            outlier,
        )
    sparse = made("max_abs", kind="sparse")
    refused(
        f"features.max_abs: the results are {beyond}s 2, 4, counted from 1 without a header",
        sparse,
        csr_matrix(tiny),
        csr_matrix(outlier),
    )
    refused("features.minmax: the range of the training values is beyond 3.4e38", made("minmax"), HUGE)
    gaps = np.vstack([np.abs(HUGE), [[np.nan, 1]]]).astype(np.float32)
    refused(
        f"dataset.missing=impute: the results are {beyond} 5, counted from 1 without a header;",
        made(missing="impute"),
        gaps,
    )


def test_rows_are_told_by_their_numbers_in_the_source() -> None:
    rows, pipe = np.array([3, 7, 9, 12]), made("scale")
    X = np.array([[1e-5], [2e-5], [3e-5], [5e-5]], np.float32)
    with pytest.raises(DataError, match=r"in rows 8, 13, counted from 1 without a header; allowed: finite numbers"):
        fit_transform(made("scale"), np.array([[1], [np.nan], [2], [np.nan]], np.float32), rows)
    with pytest.raises(DataError, match=r"no text in row 10, counted from 1 without a header; allowed: texts"):
        fit_transform(made("tfidf", kind="text"), np.array(["a b", "c", None, "d"], dtype=object), rows)
    fit_transform(pipe, X, rows)
    with pytest.raises(
        DataError, match=r"^features\.scale: the results are .* in row 13, counted from 1 without a header; allowed"
    ):
        transform(pipe, np.array([[0], [1], [2], [3e38]], np.float32), rows)


@pytest.mark.parametrize("entry", ["scale", "max_abs", "normalize"])
def test_large_values_that_fit_are_computed(entry: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = fit_transform(made(entry), HUGE)
    np.testing.assert_allclose(Z[:, 0], [1, -1, 1, -1], rtol=1e-5)


def test_more_sparse_columns_than_steps_keep_numbers_for() -> None:
    X = csr_matrix((np.ones(2, np.float32), [5, 2**31 - 2], [0, 1, 2]), shape=(2, 2**31 - 1))
    refused("The sparse inputs have 2,147,483,647 columns; allowed", made("max_abs", kind="sparse"), X)


# texts


def reference(
    documents: list[str], vocabulary_of: list[str], min_df: int, sublinear: bool
) -> dict[str, dict[int, float]]:
    """Weights of words by word and document number, by definition: tf (1 + ln((1 + n) / (1 + df))), rows scaled."""
    split = [[word for word in re.split(r"\W+", document.lower()) if len(word) > 1] for document in documents]
    fitted = [{word for word in re.split(r"\W+", document.lower()) if len(word) > 1} for document in vocabulary_of]
    df = Counter(word for words in fitted for word in words)
    weights: dict[str, dict[int, float]] = {word: {} for word in sorted(df) if df[word] >= min_df}
    for i, words in enumerate(split):
        row = {}
        for word, count in Counter(words).items():
            if word in weights:
                tf = 1 + math.log(count) if sublinear else count
                row[word] = tf * (1 + math.log((1 + len(vocabulary_of)) / (1 + df[word])))
        length = math.sqrt(sum(weight**2 for weight in row.values()))
        for word, weight in row.items():
            weights[word][i] = weight / length
    return weights


@pytest.mark.parametrize("min_df", [1, 2])
@pytest.mark.parametrize("sublinear", [False, True])
def test_tfidf_is_its_definition_fitted_on_the_training_part_only(min_df: int, sublinear: bool) -> None:
    pipe = made({"tfidf": {"min_df": min_df, "sublinear_tf": sublinear}}, kind="text")
    for X, documents in ((fit_transform(pipe, texts(*TRAIN)), TRAIN), (transform(pipe, texts(*NEW)), NEW)):
        expected = reference(documents, TRAIN, min_df, sublinear)
        assert list(pipe[0].get_feature_names_out()) == list(expected)
        assert X.dtype == np.float32 and X.format == "csr" and X.indices.dtype == np.int32
        assert pipe.transform(documents).dtype == np.float32
        dense = np.array([[column.get(i, 0.0) for column in expected.values()] for i in range(len(documents))])
        np.testing.assert_allclose(X.toarray(), dense, rtol=1e-6)
    assert "unseen" not in pipe[0].vocabulary_ and not {"café", "red"} - set(reference(TRAIN, TRAIN, 1, False))


def test_documents_without_a_known_word_are_zero_and_counted() -> None:
    pipe = made({"tfidf": {"min_df": 2}}, kind="text")
    X = fit_transform(pipe, texts(*TRAIN))
    assert np.flatnonzero(np.diff(X.indptr) == 0).tolist() == [3, 4]
    assert describe(pipe) == ["tfidf: 4 words, 2 of 6 training documents without any of them"]
    assert transform(pipe, texts("", "unseen", "red")).toarray().any(axis=1).tolist() == [False, False, True]


def test_ngrams_and_patterns_reach_the_vectorizer() -> None:
    pipe = made({"tfidf": {"ngram_range": [2, 2], "lowercase": False, "token_pattern": r"\w+"}}, kind="text")
    fit_transform(pipe, texts("A b c", "b c"))
    assert sorted(pipe[0].vocabulary_) == ["A b", "b c"]
    assert describe(pipe) == ["tfidf: 2 terms, 0 of 2 training documents without any of them"]


@pytest.mark.parametrize(
    ("params", "documents", "told"),
    [
        ({"min_df": 3}, ["ab cd", "ab", "ef", "x"], "min_df 3 and max_df 1.0 leaves no word of the 4 training"),
        ({"min_df": 7}, ["ab cd", "ab", "ef"], "min_df 7 and max_df 1.0 leaves no word of the 3 training"),
        ({"min_df": 2, "max_df": 1}, ["ab", "ab", "ef"], "min_df 2 and max_df 1 leaves no word of the 3 training"),
        ({"max_df": 0.1}, ["ab", "ab"], "min_df 1 and max_df 0.1 leaves no word of the 2 training"),
        ({}, ["", " . "], "min_df 1 and max_df 1.0 leaves no word of the 2 training"),
        ({"stop_words": "english"}, ["the", "and the"], "leaves no word of the 2 training"),
    ],
)
def test_a_vocabulary_without_words_is_one_sentence(params: Any, documents: list[str], told: str) -> None:
    with pytest.raises(DataError, match=rf"^features\.tfidf with .*{re.escape(told)} documents; allowed: [^\n]*\.$"):
        fit_transform(made({"tfidf": params}, kind="text"), texts(*documents))


def test_headers_go_before_words_are_counted() -> None:
    posts = texts("From: header@a.example\n\nbody words", "no header", "Subject: header\n\n")
    pipe = made("strip_headers", "tfidf", kind="text")
    X = fit_transform(pipe, posts)
    assert sorted(pipe[1].vocabulary_) == ["body", "header", "no", "words"] and X[2].nnz == 0
    assert describe(pipe)[0] == "strip_headers: 2 of 3 training documents shortened, 1 without text"


def test_what_is_no_text_is_named_by_its_row() -> None:
    pipe = made("tfidf", kind="text")
    with pytest.raises(
        DataError, match=r"^The inputs have no text in rows 2, 4, counted from 1 without a header; allowed"
    ):
        fit_transform(pipe, np.array(["ab", None, "cd", 3.5], dtype=object))


# components


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_fraction_of_the_variance_is_counted_by_an_svd(kind: str) -> None:
    X = numbers(30, 9) if kind == "dense" else thin(30, 9)
    full = X if kind == "dense" else X.toarray()
    variance = np.linalg.svd(full - full.mean(axis=0), compute_uv=False) ** 2
    shares = np.cumsum(variance) / variance.sum()
    needed = int(np.argmax(shares >= 0.8)) + 1
    pipe = made({"pca": {"n_components": 0.8}}, kind=kind)
    assert fit_transform(pipe, X).shape == (30, needed) and 1 < needed < 9
    assert describe(pipe) == [f"pca: {needed} components, {100 * shares[needed - 1]:.1f} % of the variance"]


def test_randomness_comes_from_the_seed() -> None:
    X = numbers(600, 520)  # large enough for a randomised solver
    for entry in ({"pca": {"n_components": 5}}, {"svd": {"n_components": 5}}):
        first, again, other = (fit_transform(made(entry, seed=seed), X) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert np.any(first != other)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("entry", "shape", "told"),
    [
        (
            {"pca": {"n_components": 8}},
            (40, 7),
            "pca.n_components is 8; allowed: at most 7 for this training set, or a",
        ),
        ({"pca": {"n_components": 6}}, (5, 7), "pca.n_components is 6; allowed: at most 5 for this training set, or a"),
        ({"pca": {"n_components": 5, "whiten": True}}, (5, 7), "pca.n_components is 5; allowed: at most 4 for"),
        ({"svd": {"n_components": 8}}, (40, 7), "svd.n_components is 8; allowed: at most 7 for this training set."),
        ({"svd": {"n_components": 6}}, (5, 7), "svd.n_components is 6; allowed: at most 5 for this training set."),
    ],
)
def test_too_many_components_name_the_limit(entry: Any, shape: tuple[int, int], told: str, kind: str) -> None:
    X = numbers(*shape) if kind == "dense" else thin(*shape)
    with pytest.raises(DataError, match=re.escape(f"features.{told}")):
        fit_transform(made(entry, kind=kind), X)
    [(name, params)] = entry.items()
    fewer = {name: {**params, "n_components": params["n_components"] - 1}}
    assert fit_transform(made(fewer, kind=kind), X).shape == (shape[0], params["n_components"] - 1)


@pytest.mark.parametrize("X", [np.ones((4, 3), np.float32), csr_matrix((4, 3), dtype=np.float32), np.ones((1, 3))])
@pytest.mark.parametrize("name", ["pca", "svd"])
def test_inputs_that_do_not_vary_have_no_components(name: str, X: Any) -> None:
    pipe = made({name: {"n_components": 1}}, kind="sparse" if hasattr(X, "indptr") else "dense")
    with pytest.raises(DataError, match=rf"features\.{name}: the {X.shape[0]} training rows are all equal"):
        fit_transform(pipe, X)


# missing values


def gaps() -> tuple[Any, Any]:
    X, new = numbers(11, 5), numbers(4, 5, seed=1)
    X[[0, 3, 4], 1] = X[2, 4] = X[:, 3] = np.nan
    new[0, 1] = new[1, 2] = new[2, 3] = new[3] = np.nan  # column 2 has no gap in training
    return X, new


def test_missing_values_become_training_medians() -> None:
    X, new = gaps()
    # The middle of the sorted values, by hand; a column without values is 0.
    columns = [sorted(value for value in column.tolist() if value == value) for column in X.T]
    medians = np.array([(c[(len(c) - 1) // 2] + c[len(c) // 2]) / 2 if c else 0 for c in columns])
    pipe = made(missing="impute")
    np.testing.assert_allclose(fit_transform(pipe, X), np.where(np.isnan(X), medians, X), rtol=1e-6)
    # With other validation values around them, the gaps get the same medians: only training rows have a say.
    for validation in (new, new * 100):
        expected = np.where(np.isnan(validation), medians, validation)
        expected[:, 3] = np.where(np.isnan(validation[:, 3]), 0, validation[:, 3])
        np.testing.assert_allclose(transform(pipe, validation), expected, rtol=1e-6)
    assert describe(pipe) == ["imputed 15 values in 3 columns, 1 of them without any training value and now 0"]


def test_missing_values_of_sparse_rows_count_their_zeros() -> None:
    # Column 0: 0, 0, 5, 7, gap has the median 2.5; column 1: 0, 0, 0, gap, 4 has 0; column 2 has only gaps.
    dense = np.array([[0, 0, 1], [0, 0, 1], [5, 0, 1], [7, np.nan, 1], [np.nan, 4, 1]], dtype=np.float32)
    dense[:, 2] = np.nan
    pipe = made("max_abs", missing="impute", kind="sparse")
    X = fit_transform(pipe, csr_matrix(dense))
    expected = np.array([[0, 0, 0], [0, 0, 0], [5 / 7, 0, 0], [1, 0, 0], [2.5 / 7, 1, 0]])
    np.testing.assert_allclose(X.toarray(), expected, rtol=1e-6)
    assert describe(pipe)[0] == "imputed 7 values in 3 columns, 1 of them without any training value and now 0"


def test_what_is_not_finite_is_named_by_its_rows() -> None:
    X = numbers(30)
    X[[3, 5, 7, 9, 11, 13, 29], 2] = np.nan
    told = (
        r"missing or infinite values in rows 4, 6, 8, 10, 12 and 2 more, "
        r"counted from 1 without a header; allowed: finite numbers, and missing ones with"
    )
    for bad, kind in ((X, "dense"), (csr_matrix(X), "sparse")):
        with pytest.raises(DataError, match=told):
            fit_transform(made("max_abs", kind=kind), bad)
        pipe = made("max_abs", kind=kind, missing="impute")
        fit_transform(pipe, bad)
        worse = bad.copy()
        worse[4, 1] = np.inf
        with pytest.raises(
            DataError,
            match=r"^The inputs have infinite values in row 5, "
            r"counted from 1 without a header; allowed: finite numbers\.$",
        ):
            transform(pipe, worse)


def test_an_error_of_scikit_learn_becomes_one_sentence_that_names_the_step() -> None:
    pipe = made("max_abs", "scale")
    fit_transform(pipe, numbers())
    with pytest.raises(DataError, match=r"^features\.max_abs: X has 6 features, but [^\n]*\.$"):
        transform(pipe, numbers(columns=6))


# stored with the model


@pytest.mark.parametrize("how", ["skops", "joblib"])
@pytest.mark.parametrize("kind", ["text", "dense", "sparse"])
def test_the_stored_model_takes_the_inputs_as_they_came(kind: str, how: str, tmp_path: Path) -> None:
    if kind == "text":
        X, new = texts(*(f"From: a\n\n{text}" for text in TRAIN)), texts(*NEW)
        pipe = made("strip_headers", "tfidf", {"pca": {"n_components": 3}}, "scale", "scale", kind=kind)
        trusted = ["ldsvm.datasets.text.DensifyingPCA", "ldsvm.datasets.text.StripHeaders"]
    else:
        X, new = (part if kind == "dense" else csr_matrix(part) for part in gaps())
        steps: list[Any] = ["minmax", {"pca": {"n_components": 2}}] if kind == "dense" else ["max_abs", "normalize"]
        pipe = made(*steps, kind=kind, missing="impute")
        trusted = [*(["ldsvm.datasets.unit_rows.UnitRows"] if kind == "sparse" else []), "numpy.dtype"]
    y = np.arange(X.shape[0]) % 2
    features = fit_transform(pipe, X)
    model = Pipeline([*pipe.steps, ("model", LinearSVC(C=10).fit(features, y))])
    again, told = (through(how, one, trusted, tmp_path) for one in (model, pipe))
    np.testing.assert_array_equal(again.decision_function(new), model.decision_function(new))
    np.testing.assert_allclose(
        model.decision_function(new), model[-1].decision_function(transform(pipe, new)), rtol=1e-4
    )
    assert describe(told) == describe(pipe) and len(describe(pipe)) == len(pipe.steps)
    np.testing.assert_array_equal(_array(transform(told, new)), _array(transform(pipe, new)))
    refitted = clone(model).fit(X, y)  # an ordinary pipeline: the same from the raw inputs by scikit-learn alone
    np.testing.assert_array_equal(refitted.predict(new), model.predict(new))


def through(how: str, fitted: Any, trusted: list[str], folder: Path) -> Any:
    if how == "joblib":
        import joblib

        joblib.dump(fitted, folder / "model")
        return joblib.load(folder / "model")
    from skops.io import dumps, get_untrusted_types, loads

    data = dumps(fitted)
    assert get_untrusted_types(data=data) == trusted
    return loads(data, trusted=trusted)


def _array(X: Any) -> Any:
    return X.toarray() if hasattr(X, "indptr") else X


@pytest.mark.slow
@pytest.mark.skipif(not ARCHIVE.is_file(), reason="LDSVM_DATA_HOME has no 20news/20news-bydate.tar.gz")
def test_the_real_hardware_groups() -> None:
    posts: dict[str, list[str]] = {"train": [], "test": []}
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            part = re.fullmatch(r"20news-bydate-(train|test)/comp\.sys\.(ibm\.pc|mac)\.hardware/\d+", member.name)
            if part:
                file = archive.extractfile(member)
                assert file is not None
                posts[part[1]].append(file.read().decode("latin-1"))
    pipe = made({"tfidf": {"min_df": 6}}, kind="text")
    X, new = fit_transform(pipe, texts(*posts["train"])), transform(pipe, texts(*posts["test"]))
    assert describe(pipe) == ["tfidf: 3,052 words, 0 of 1,168 training documents without any of them"]
    assert X.shape == (1168, 3052) and new.shape == (777, 3052)
