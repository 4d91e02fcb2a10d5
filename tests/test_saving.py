"""A model in a file: the same predictions and parameters come back, and no other file does."""

from __future__ import annotations

import io
import json
import os
import pickle
import tracemalloc
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

import ldsvm
from ldsvm import LDSVMClassifier
from ldsvm.saving import NotSaved

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
Y = np.arange(90) % 3
X[:, 0] += 2 * Y


def fitted(**changes: Any) -> LDSVMClassifier:
    return LDSVMClassifier(**{"n_basis": 10, "random_state": 0, **changes}).fit(X, Y)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"map": "linear", "multi_class": "ovo"},
        {"map": "adaptive_rbf", "center_steps": 50, "gamma": 0.2},
        {"n_components": 2, "init": RNG.normal(size=(90, 2)), "class_weight": {0: 1.0, 1: np.float64(2.0), 2: 1}},
    ],
    ids=["rbf", "linear", "adaptive", "array"],
)
def test_it_comes_back_as_it_was(tmp_path: Path, changes: dict[str, Any]) -> None:
    model = fitted(**changes)
    again = ldsvm.load(ldsvm.save(model, tmp_path / "model.npz"))
    for method in ("predict", "decision_function", "transform"):
        np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    one, other = vars(model), vars(again)
    assert one.keys() == other.keys()
    assert again.history_ == model.history_ and again.stop_reason_ == model.stop_reason_
    np.testing.assert_array_equal(clone(again).fit(X, Y).latent_coef_, model.latent_coef_)
    assert [file.name for file in tmp_path.iterdir()] == ["model.npz"]


@pytest.mark.parametrize("labels", [["a", "a\0", "ö"], [True, False, False], [3, -1, 7], [1.0, 2.0, 3.0]])
def test_labels_and_names_come_back(tmp_path: Path, labels: list[Any]) -> None:
    import pandas as pd

    frame, y = pd.DataFrame(X, columns=["a", "b", "c", "d"]), np.array(labels, dtype=object)[Y]
    y = y if isinstance(labels[0], str) else np.array(labels)[Y]
    model = LDSVMClassifier(n_basis=10, random_state=0).fit(frame, y)
    again = ldsvm.load(ldsvm.save(model, tmp_path / "m"))
    assert again.predict(frame).tolist() == model.predict(frame).tolist()
    assert again.classes_.dtype == model.classes_.dtype and again.feature_names_in_.dtype == object
    assert again.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize("later", [{}, {"gamma": 5.0}, {"n_basis": 20}, {"multi_class": "ovo"}])
def test_warm_start_goes_on_where_the_model_itself_would(tmp_path: Path, later: dict[str, Any]) -> None:
    model = fitted().set_params(warm_start=True, **later)
    again = ldsvm.load(ldsvm.save(model, tmp_path / "m"))
    np.testing.assert_array_equal(again.fit(X, Y).latent_coef_, model.fit(X, Y).latent_coef_)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "m")
    ldsvm.save(fitted(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder" / "m").is_file()


@pytest.mark.slow
def test_what_cannot_be_saved_is_one_sentence_and_leaves_the_old_file(tmp_path: Path) -> None:
    file = ldsvm.save(fitted(), tmp_path / "m")
    before = file.read_bytes()
    with pytest.raises(NotSaved, match=r"regressor.*allowed: map='rbf'"):
        ldsvm.save(fitted(map=Ridge()), file)
    with pytest.raises(NotSaved, match=r"parameter random_state=.* cannot be saved; allowed: numbers"):
        ldsvm.save(fitted(random_state=np.random.RandomState(0)), file)
    with pytest.raises(NotFittedError):
        ldsvm.save(LDSVMClassifier(), file)
    with pytest.raises(NotSaved, match="Ridge cannot be saved"):
        ldsvm.save(Ridge(), file)  # type: ignore[arg-type]
    for place in ("", "a\0b", tmp_path / ("n" * 300)):
        with pytest.raises(NotSaved, match="cannot be written"):
            ldsvm.save(fitted(), place)
    with pytest.raises(NotSaved, match="cannot be written"):
        ldsvm.save(fitted(), file / "m")
    assert file.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["m"]


def _changed(file: Path, **changes: Any) -> bytes:
    with np.load(file) as arrays:
        found = dict(arrays)
    facts = json.loads(found["facts"].tobytes())
    for name, value in changes.items():
        if isinstance(value, np.ndarray):
            found[name.replace("__", ".")] = value
        else:
            facts[name] = value
    found["facts"] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    stream = io.BytesIO()
    np.savez(stream, **found)
    return stream.getvalue()


@pytest.mark.slow
def test_no_other_file_is_read(tmp_path: Path) -> None:
    file = ldsvm.save(fitted(), tmp_path / "m")
    whole = file.read_bytes()
    stream = io.BytesIO()
    np.savez(stream, a=np.ones(3))
    wrong = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "pickle": pickle.dumps({"a": 1}),
        "other npz": stream.getvalue(),
        "text": b"hello",
        "other format": _changed(file, format="theirs"),
        "earlier": _changed(file, version=0),
        "SVMs": _changed(file, coef_=np.ones((3, 7))),
        "texts for weights": _changed(file, map__W=np.full((10, 2), "x")),
        "nothing for weights": _changed(file, map__W=np.full((10, 2), np.nan)),
        "widths": _changed(file, map__gamma=np.ones(3)),
        "negative width": _changed(file, map__gamma=np.array(-1.0)),
        "flat centres": _changed(file, map__centers=np.ones(10)),
        "labels": _changed(file, classes_=np.array([1, 2])),
        "labels out of order": _changed(file, classes_=np.array([2, 1, 3])),
        "basis": _changed(file, n_features_in_=3),
        "scheme": _changed(file, scheme=[3, "zzz"]),
        "history": _changed(file, history_=5),
        "names": _changed(file, names=["a"]),
        "no calibration": _changed(file, calibrator={"method": "platt", "columns": [[1.0]]}),
        "calibration of two classes": _changed(file, calibrator={"method": "temperature", "columns": [[1.0, 2.0]]}),
        "endless calibration": _changed(file, calibrator={"method": "temperature", "columns": [[float("inf")]]}),
        "unknown part": _changed(file, predict=np.ones(3)),
        "infinite SVMs": _changed(file, coef_=np.full((3, 2), np.inf)),
        "absurd SVMs": _changed(file, coef_=np.full((3, 2), 1e200)),
        "absurd weights": _changed(file, map__W=np.full((10, 2), 1e38)),
        "absurd centres": _changed(file, map__centers=np.full((10, 4), 1e30)),
        "no coordinates": _changed(file, n_components_=0, coef_=np.ones((3, 0)), map__W=np.ones((10, 0))),
        "no numbers": _changed(file, n_basis_="10"),
        "more labels": _changed(file, labels=["U", "a", "b", "c", "d"]),
        "labels of objects": _changed(file, labels=["O", "a", "b", 3]),
        "deep": _changed(file, params={"plain": {"C": -1.0}, "pairs": {}}),
    }
    for damaged in range(60):  # bytes that fell over on the way
        content = bytearray(whole)
        rng = np.random.default_rng(damaged)
        content[rng.integers(len(content))] ^= int(rng.integers(1, 256))
        (tmp_path / "damaged").write_bytes(content)
        with suppress(NotSaved):
            ldsvm.load(tmp_path / "damaged")
    for name, content in wrong.items():
        other = tmp_path / name
        other.write_bytes(content)
        with pytest.raises(NotSaved, match=r"was not written by ldsvm\.save") as caught:
            ldsvm.load(other)
        assert "\n" not in str(caught.value)
    (tmp_path / "later").write_bytes(_changed(file, version=99))
    with pytest.raises(NotSaved, match=r"has version 99 of the format; this program reads up to 3\."):
        ldsvm.load(tmp_path / "later")
    os.mkfifo(tmp_path / "pipe")
    compressed = io.BytesIO()
    np.savez_compressed(compressed, facts=np.zeros(10**7, np.uint8))
    (tmp_path / "bomb").write_bytes(compressed.getvalue())
    with pytest.raises(NotSaved, match="a part is compressed"):
        ldsvm.load(tmp_path / "bomb")
    for absent in (tmp_path / "absent", tmp_path, tmp_path / "pipe"):
        with pytest.raises(NotSaved, match="cannot be read"):
            ldsvm.load(absent)


def _peak(work: Any) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_no_more_memory_is_taken_than_the_file_is_large(tmp_path: Path) -> None:
    file = ldsvm.save(fitted(), tmp_path / "m")
    K = 2000  # labels which NumPy would make all as wide as the longest: 1.6 GB
    labels = ["U", "a" * 200_000, *(f"b{k:05}" for k in range(K - 1))]
    sizes = {"coef_": np.ones((K, 2)), "intercept_": np.ones(K), "scheme": [K, "ovr"]}
    wide = _changed(file, labels=labels, **sizes)
    promise = np.lib.format.magic(1, 0) + (118).to_bytes(2, "little")
    promise += f"{{'descr': '<f8', 'fortran_order': False, 'shape': (3, {2**28})}}".ljust(117).encode() + b"\n"
    stream = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(stream, "w") as new:  # 6 GB that are not there
        for name in old.namelist():
            new.writestr(name, promise + b"0" * 8 if name == "coef_.npy" else old.read(name))
    twice = io.BytesIO(file.read_bytes())
    with zipfile.ZipFile(twice, "a") as new, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # zipfile's, of the same name
        new.writestr("coef_.npy", b"")
    contents = {
        "2,000 labels of up to 200,000 letters take more than 64 MB": wide,
        r"coef_ of shape \(3, 268435456\) is not of its size": stream.getvalue(),
        "coef_ is there twice": twice.getvalue(),
    }
    for words, content in contents.items():
        file.write_bytes(content)

        def refused(words: str = words) -> None:
            with pytest.raises(NotSaved, match=words):
                ldsvm.load(file)

        assert _peak(refused) < 20 * len(content) + 1_000_000


def test_what_would_not_be_read_is_not_written(tmp_path: Path) -> None:
    model = fitted()
    model.latent_coef_ = model.latent_coef_ * 1e60
    with pytest.raises(NotSaved, match=r"the model cannot be saved \(weights and SVMs give decisions beyond 1e\+38"):
        ldsvm.save(model, tmp_path / "m")
    wide = fitted()
    wide.classes_ = np.array(["a" * 6_000_000, "b", "c"])
    with pytest.raises(NotSaved, match="3 labels of up to 6,000,000 letters take more than 64 MB"):
        ldsvm.save(wide, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_nothing_runs_when_a_file_is_read(tmp_path: Path) -> None:
    array = np.array([print], dtype=object)
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=True, facts=array)
    (tmp_path / "m").write_bytes(stream.getvalue())
    with pytest.raises(NotSaved, match=r"was not written by ldsvm\.save"):
        ldsvm.load(tmp_path / "m")
