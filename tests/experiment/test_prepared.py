"""Prepared arrays: complete or absent, rebuilt when damaged, no leak from validation or test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import issparse

from ldsvm.datasets import DataError, Split, load
from ldsvm.experiment import prepared as preparation
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.prepared import Prepared

ROOT = Path(__file__).resolve().parents[2]


def config(tmp_path: Path, *overrides: str) -> Config:
    return load_config("conf/digits.yaml", [f"paths.cache={tmp_path / 'cache'}", *overrides], root=ROOT)


def one(tmp_path: Path, *overrides: str) -> Prepared:
    (found,) = preparation.prepare(config(tmp_path, *overrides))
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of 60 rows with a group, a day, a gap in row 7 and words for labels, the same at every call."""
    file = tmp_path / "mine.csv"
    rows = [f"{i},{'' if i == 7 else i * 37 % 11},g{i % 12},2024-01-{i // 2 + 1:02d},{'ab'[i % 2]}" for i in range(60)]
    file.write_text("\n".join(["id,x,who,day,outcome", *rows]), encoding="utf-8")
    return file


def own(tmp_path: Path, table: Path, *overrides: str) -> Config:
    given = [
        "dataset.name=mine", f"dataset.path={table}", "dataset.label=outcome", "dataset.drop=[id]",
        "dataset.group=who", "dataset.time=day", "dataset.missing=impute",
    ]  # fmt: skip
    return config(tmp_path, *given, *overrides)


def test_parts_hold_every_sample_once_and_labels_fit(tmp_path: Path) -> None:
    found = one(tmp_path)
    data = load("digits", cache_dir=tmp_path / "raw")
    X = np.concatenate([found.arrays(part, "original")[0] for part in preparation.PARTS])
    assert found.sizes == {"train": 899, "validation": 449, "test": 449}
    assert sorted(map(bytes, X)) == sorted(map(bytes, data.X))
    assert np.array_equal(found.arrays("test", "parity")[1], found.arrays("test", "original")[1] % 2)


def test_the_row_numbers_are_kept_and_lead_back_to_the_data(tmp_path: Path) -> None:
    found = one(tmp_path, "dataset.classes=[3, 8]")
    data, split = load("digits", cache_dir=tmp_path / "raw"), Split.load(found.folder / "split.npz")
    for part in preparation.PARTS:
        X, y = found.arrays(part, "original")
        assert np.array_equal(X, data.X[getattr(split, part)])
        assert set(y.tolist()) == {3, 8}
    assert split.train.max() > found.sizes["train"] + found.sizes["validation"] + found.sizes["test"]


def test_several_splits_differ_and_each_is_what_its_seed_alone_gives(tmp_path: Path) -> None:
    found = preparation.prepare(config(tmp_path, "split.repeats=3"))
    assert len({prepared.split for prepared in found}) == 3
    assert [prepared.seed for prepared in found] == [0, 1, 2]
    assert one(tmp_path, "seed=2") == found[2]


def test_the_second_time_nothing_is_written(tmp_path: Path) -> None:
    first = one(tmp_path)
    times = {p: p.stat().st_mtime_ns for p in first.folder.iterdir()}
    assert one(tmp_path) == first
    assert {p: p.stat().st_mtime_ns for p in first.folder.iterdir()} == times


@pytest.mark.slow
def test_only_a_line_that_matters_prepares_anew(tmp_path: Path) -> None:
    first = one(tmp_path)
    for line in ("n_jobs=1", "title=another", "methods.ours.search.C=[1]", "judge.repeats=1"):
        assert one(tmp_path, line).folder == first.folder
    others = {one(tmp_path, line).folder for line in ("seed=1", "split.train=0.4", "features=[scale]")}
    assert len(others | {first.folder}) == 4


def test_facts_survive_the_way_through_a_file(tmp_path: Path) -> None:
    found = preparation.prepare(config(tmp_path, "split.repeats=2"))
    preparation.save(found, tmp_path / "facts.json")
    assert preparation.read(tmp_path / "facts.json") == found


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "cache" / ".digits-0123.part"
    left.mkdir(parents=True)
    (left / "X_train.npy").write_bytes(b"half")
    preparation.prepare(config(tmp_path))
    assert not left.exists()


def test_a_finished_folder_serves_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = one(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError("read-only file system")

    monkeypatch.setattr(preparation, "alone", refuse)
    assert one(tmp_path) == first
    with pytest.raises(DataError, match="prepared data cannot be kept there"):
        preparation.prepare(config(tmp_path, "seed=1"))


@pytest.mark.parametrize("place", ["a file", "a folder inside", "a link"])
def test_odd_things_in_the_cache_are_replaced(tmp_path: Path, place: str) -> None:
    found = one(tmp_path)
    if place == "a folder inside":
        (found.folder / "notes").mkdir()
    else:
        found.folder.rename(tmp_path / "moved")
        (tmp_path / "moved" / "sha256.json").write_text("[" * 100_000)
        found.folder.symlink_to(tmp_path / "moved") if place == "a link" else found.folder.write_text("x")
    with pytest.warns(UserWarning, match="is rebuilt"):
        assert one(tmp_path) == found
    assert found.arrays("test", "original")[0].shape == (449, 64)


@pytest.mark.parametrize("harm", ["cut", "gone", "list", "more"])
def test_a_damaged_folder_is_rebuilt_with_a_warning(tmp_path: Path, harm: str) -> None:
    found = one(tmp_path)
    file = found.folder / {"list": "sha256.json", "more": "X_more.npy"}.get(harm, "X_train.npy")
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:100] if file.exists() else b"x")
    with pytest.warns(UserWarning, match="is rebuilt"):
        preparation.prepare(config(tmp_path))
    assert found.arrays("train", "original")[0].shape == (899, 64)


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(DataError, match="cannot be written"):
        preparation.prepare(config(tmp_path))
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [".lock"]


def test_principal_axes_come_from_the_training_part_only(tmp_path: Path) -> None:
    plain = one(tmp_path)
    found = one(tmp_path, "features=[{pca: {n_components: 5}}]")
    X = np.asarray(plain.arrays("train", "original")[0], dtype=float)
    axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:5]
    expected = (plain.arrays("test", "original")[0] - X.mean(axis=0)) @ axes.T
    assert np.allclose(np.abs(found.arrays("test", "original")[0]), np.abs(expected), atol=1e-4)
    assert (found.n_features, found.folder) != (plain.n_features, plain.folder)
    assert found.features[0].startswith("pca: 5 components")


def test_the_whole_model_takes_the_data_as_they_came(tmp_path: Path) -> None:
    from sklearn.svm import SVC

    plain, found = one(tmp_path), one(tmp_path, "features=[scale, {pca: {n_components: 20}}]")
    model = SVC().fit(*found.arrays("train", "original"))
    raw, _ = plain.arrays("test", "original")
    assert np.array_equal(found.whole(model).predict(raw), model.predict(found.arrays("test", "original")[0]))
    assert plain.whole(model) is model
    assert np.array_equal(found.example(), plain.arrays("train", "original")[0][:5])


def test_texts_become_sparse_features_and_the_example_shows_no_post(tmp_path: Path) -> None:
    words = {"cat": ["purr", "fur", "paw"], "dog": ["bark", "bone", "paw"]}
    for name, kind in words.items():
        (tmp_path / "texts" / name).mkdir(parents=True)
        for i in range(12):
            text = f"{kind[i % 3]} {kind[(i + 1) % 3]} number{i} {name}"
            (tmp_path / "texts" / name / f"{i}.txt").write_text(text, encoding="utf-8")
    given = ["dataset.name=pets", f"dataset.path={tmp_path / 'texts'}", "features=[{tfidf: {min_df: 2}}]"]
    found = one(tmp_path, *given)
    X, y = found.arrays("train", "original")
    assert issparse(X) and X.dtype == np.float32 and X.shape == (12, found.n_features)
    assert set(y.tolist()) == {"cat", "dog"}
    assert list(found.example()) == list(preparation.EXAMPLES)
    assert found.whole("model").steps[0][1].transform(["bark bone"]).nnz == 2


def test_a_users_table_is_imputed_by_the_training_part(tmp_path: Path, table: Path) -> None:
    (found,) = preparation.prepare(own(tmp_path, table))
    X, y = found.arrays("train", "original")
    assert found.sizes == {"train": 30, "validation": 15, "test": 15}
    assert (X.shape, y.dtype.kind, found.dataset["name"]) == ((30, 1), "U", "mine")
    split = Split.load(found.folder / "split.npz")
    part = next(part for part in preparation.PARTS if 7 in getattr(split, part))
    here = np.flatnonzero(getattr(split, part) == 7)
    median = np.median([i * 37 % 11 for i in split.train if i != 7])
    assert found.arrays(part, "original")[0][here] == median
    assert any("missing in column 'x' (row 8, counted from 1 without a header)" in note for note in found.notes)


def test_the_whole_model_knows_the_columns_by_name(tmp_path: Path, table: Path) -> None:
    from pandas import DataFrame
    from sklearn.svm import SVC

    for steps in ("[]", "[scale]"):
        (found,) = preparation.prepare(own(tmp_path, table, f"features={steps}", "dataset.drop=[]"))
        whole = found.whole(SVC().fit(*found.arrays("train", "original")))
        example = found.example()
        assert list(example.columns) == ["id", "x"] == found.columns
        assert len(whole.predict(example)) == 5
        with pytest.raises(ValueError, match="feature names"):
            whole.predict(DataFrame(example, columns=["x", "id"]))


def test_a_wrong_time_is_told_by_its_row_in_the_file(tmp_path: Path, table: Path) -> None:
    lines = table.read_text().splitlines()
    lines[11] = lines[11].replace("2024-01-06", "garbage")  # row 10, after row 7 is dropped
    table.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"dataset\.time day: row 11, counted from 1 without a header, "):
        preparation.prepare(own(tmp_path, table, "dataset.missing=drop", "split.kind=time"))


def test_a_test_set_that_is_not_asked_for_is_told(tmp_path: Path, table: Path) -> None:
    (found,) = preparation.prepare(own(tmp_path, table, f"dataset.test_path={table}"))
    assert any("dataset.test_path are not used" in note for note in found.notes)


def test_groups_stay_together_and_time_goes_forward(tmp_path: Path, table: Path) -> None:
    (grouped,) = preparation.prepare(own(tmp_path, table, "split.kind=grouped"))
    groups = [set(getattr(Split.load(grouped.folder / "split.npz"), part) % 12) for part in preparation.PARTS]
    assert not groups[0] & groups[1] and not groups[1] & groups[2] and not groups[0] & groups[2]
    (timed,) = preparation.prepare(own(tmp_path, table, "split.kind=time"))
    days = [getattr(Split.load(timed.folder / "split.npz"), part) // 2 for part in preparation.PARTS]
    assert days[0].max() < days[1].min() and days[1].max() < days[2].min()


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        (["features=[{pca: {n_components: 65}}]"], "at most 64"),
        (["split.test=official"], "no official test set"),
        (["split.train=5000", "split.validation=10", "split.test=10"], "5000"),
        (["split.kind=grouped"], "dataset.group"),
        (["split.kind=time"], "dataset.time"),
        (["dataset.classes=[3, 11]"], "11"),
        (["features=[{tfidf: {min_df: 2}}]"], "tfidf"),
        (["dataset={name: mine, path: nowhere.csv}"], "nowhere.csv"),
    ],
)
def test_impossible_wishes_are_one_sentence(tmp_path: Path, overrides: list[str], part: str) -> None:
    with pytest.raises(DataError) as caught:
        preparation.prepare(config(tmp_path, *overrides))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_value_is_refused_by_row_and_column(tmp_path: Path, table: Path) -> None:
    with pytest.raises(DataError, match=r"'x' \(row 8, counted from 1 without a header\)"):
        preparation.prepare(own(tmp_path, table, "dataset.missing=refuse"))
    (found,) = preparation.prepare(own(tmp_path, table, "dataset.missing=drop"))
    assert sum(found.sizes.values()) == 59
