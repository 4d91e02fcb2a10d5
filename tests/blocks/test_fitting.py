"""Fits on blocks of rows: the model does not depend on how the rows lie, or on who works on them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans

from ldsvm import LDSVMClassifier, RowBlocks, fit_path
from ldsvm.blocks import BlockError, OnRay, Serial, Threads
from ldsvm.blocks.executors import Local, WorkerLost
from ldsvm.blocks.regressions import Fixed
from ldsvm.blocks.shard import Shard
from ldsvm.mac.scheme import Scheme
from ldsvm.maps import kmeans
from ldsvm.maps.kmeans import thinned
from ldsvm.maps.rbf import Gaussians
from ldsvm.solvers import block_svm
from tests.blocks.conftest import cut, far, model

Data = tuple[np.ndarray, np.ndarray]
pytestmark = pytest.mark.slow
MAPS: dict[str, dict[str, Any]] = {
    "kmeans": {},
    "random": {"centers": "random"},
    "linear": {"map": "linear"},
    "one against one": {"multi_class": "ovo", "n_components": 4},
    "weights": {"class_weight": "balanced"},
    "balanced": {"class_weight": "balanced", "n_components": 3, "init": "random"},
}


@pytest.mark.parametrize("params", MAPS.values(), ids=MAPS)
def test_blocks_and_executors_do_not_change_the_model(params: dict[str, Any], train: Data, valid: Data) -> None:
    params = {**params, "max_iter": 3}
    one = model(**params).fit(cut(train), eval_set=valid)
    for rows, executor in [
        (cut(train, 500), Serial()),
        (cut(train, 100, 101, 500, 800), Serial(memory=0)),  # read and computed anew in every pass
        (cut(train, 100, 101, 500, 800), Serial(memory=500_000)),  # inputs are kept, features are not
        (cut(train, 100, 101, 500, 800), Threads(2)),
        (cut(train, 300, 600), Threads(3)),
    ]:
        other = model(**params).fit(rows, eval_set=valid, executor=executor)
        # with pairs of classes few rows tell the bias, so rounding shows more
        assert far(other, one) < (1e-5 if "multi_class" in params else 1e-8), executor
        errors, wanted = ([h["valid_error"] for h in found.history_] for found in (other, one))
        # from random centroids some SVMs are b = -1, whatever the row: there labels tie, and rounding decides
        np.testing.assert_allclose(errors, wanted, atol=0.01 if "init" in params else 0.0)
        assert other.stop_reason_ == one.stop_reason_ and other.best_iter_ == one.best_iter_


@pytest.mark.parametrize("name", ["random", "linear", "one against one", "weights"])
def test_it_is_the_model_of_rows_in_memory(name: str, train: Data, valid: Data) -> None:
    params = {**MAPS[name], "centers": "random"}
    memory = model(**params).fit(*train, eval_set=valid)
    blocks = model(**params).fit(cut(train, 200, 450), eval_set=cut(valid, 50), executor=Threads(2))
    # features in float32 there, in float64 here; with pairs of classes few rows tell the bias
    assert far(blocks, memory) < (1e-3 if "multi_class" in params else 1e-5)
    keys = ["iteration", "mu", "nested", "penalised", "distance", "train_error", "valid_error"]
    for a, b in zip(blocks.history_, memory.history_, strict=True):
        np.testing.assert_allclose([a[k] for k in keys], [b[k] for k in keys], rtol=1e-5)
        assert a["kkt"] is None or a["kkt"] < 1e-8
        assert a["gap"] < 1e-8


def test_arrays_are_one_block_where_an_executor_is_asked_for(train: Data, whole: LDSVMClassifier) -> None:
    assert far(model().fit(*train, executor=Serial()), whole) == 0.0


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("executor", [Serial(), Serial(memory=0), Threads(2)], ids=str)
def test_learned_centres_lower_the_objective_and_help(
    executor: Any, follows: bool, train: Data, valid: Data
) -> None:  # fmt: skip
    rows, size = cut(train, 300, 700), {"n_basis": 20, "max_iter": 3}
    params = {"map": "adaptive_rbf", "center_steps": 400, "z_follows": follows}
    fixed = model(**size).fit(rows, executor=executor)
    learned, same = (model(**size, **params).fit(rows, executor=executor) for _ in range(2))
    assert far(same, learned) == 0.0
    for before, after in zip(learned.history_, learned.history_[1:], strict=False):
        if before["mu"] == after["mu"]:
            assert after["penalised"] <= before["penalised"] * (1 + 1e-9)
    assert learned.score(*valid) > fixed.score(*valid) + 0.03


@pytest.mark.parametrize(("follows", "steps"), [(False, 50), (True, 50), (True, 1)])  # of one step little is kept
def test_one_block_learns_the_centres_that_memory_does(follows: bool, steps: int, train: Data) -> None:
    params = {"map": "adaptive_rbf", "n_basis": 20, "centers": "random", "center_steps": steps, "max_iter": 2}
    blocks, memory = (model(z_follows=follows, **params).fit(*rows) for rows in ((cut(train),), train))
    assert far(blocks, memory) < 1e-3
    for a, b in zip(blocks.history_, memory.history_, strict=True):
        np.testing.assert_allclose(a["penalised"], b["penalised"], rtol=1e-4)


def test_two_classes_with_names(train: Data, valid: Data) -> None:
    (X, y), (A, c) = train, valid
    names, held = (np.where(part % 2 == 0, "even", "odd") for part in (y, c))
    found = model(C=1.0).fit(cut((X, names), 333), eval_set=(A, held), executor=Threads(2))
    memory = model(C=1.0, centers="random").fit(X, names)
    assert list(found.classes_) == ["even", "odd"] and found.latent_coef_.shape == (1, 1)
    assert abs(found.score(A, held) - memory.score(A, held)) < 0.05


def test_bytes_are_numbers(train: Data) -> None:
    X, y = train
    small = np.round(X * 16).astype(np.uint8)
    params = {"centers": "random", "gamma": 0.002}
    assert far(model(**params).fit(cut((small, y), 400)), model(**params).fit(small.astype(float), y)) < 1e-5
    linear = model(map="linear").fit(cut((small, y), 400))
    assert far(linear, model(map="linear").fit(small.astype(float), y)) < 1e-5


def test_centres_are_those_of_lloyds_steps(train: Data) -> None:
    X, _ = train
    found = model(n_basis=9).fit(cut(train, 10, 500), executor=Threads(2)).centers_
    drawn = np.sort(np.random.RandomState(0).choice(len(X), 9, replace=False))
    centers = X[drawn].astype(np.float32).astype(float)
    for _ in range(20):
        nearest = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        moved = np.stack([X[nearest == m].mean(axis=0) for m in range(9)])
        shift, centers = ((moved - centers) ** 2).sum(), moved
        if shift <= 1e-4 * X.var(axis=0).mean():
            break
    np.testing.assert_allclose(found, centers, atol=1e-6)


def test_many_rows_for_a_centre_are_thinned_in_k_means_the_same_for_all_blocks(
    train: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kmeans, "PER_CENTRE", 5)
    one, other = (model().fit(rows, executor=Threads(2)) for rows in (cut(train, 450), cut(train, 1, 331, 650)))
    memory = model().fit(*train)
    assert np.array_equal(one.centers_, other.centers_) and np.array_equal(one.centers_, memory.centers_)


def test_centres_are_the_same_to_the_last_bit_in_memory_and_by_blocks() -> None:
    # without clusters the steps go on to the last; where rounding gives a row to another centre, all later ones differ
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6_000, 20)).astype(np.float32), np.arange(6_000) % 2
    small = model(n_basis=40, max_iter=1)
    one, other = (small.fit(*rows).centers_ for rows in ((cut((X, y), 1, 331, 650),), (X, y)))
    assert np.array_equal(one, other)
    start = X[np.sort(np.random.RandomState(0).choice(6_000, 40, replace=False))]
    assert np.array_equal(one, kmeans.kmeans(X.astype(float), start, np.ones(6_000), 1.0))
    peer = KMeans(40, init=start, n_init=1, max_iter=20, algorithm="lloyd").fit(X)
    np.testing.assert_allclose(one, peer.cluster_centers_, atol=1e-5)


@pytest.mark.parametrize(("memory", "reads"), [(0, True), (100_000, False), (10_000_000, False)])
def test_rows_that_k_means_looks_at_are_read_once_where_there_is_memory(
    memory: int, reads: bool, train: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, seen = RowBlocks.read, []

    def noting(self: RowBlocks, i: int) -> Any:
        seen.append(i)
        return read(self, i)

    with Serial(memory=memory).team(cut(train, 400), None, 1) as team:
        team.call("look", 1e18)
        team.tell("draw", 7)  # 66 KB of 461
        monkeypatch.setattr(RowBlocks, "read", noting)
        sums, counts = team.sum("nearest", train[0][:2])
        assert seen == ([0, 1] if reads else [])
        team.tell("draw", 0)
        assert team.shards[0].drawn is None
    X = train[0][thinned(0, len(train[0]), 7)]
    nearer = ((X[:, None] - train[0][:2]) ** 2).sum(axis=2).argmin(axis=1)
    assert counts.tolist() == np.bincount(nearer).tolist()
    np.testing.assert_allclose(sums, [X[nearer == m].sum(axis=0) for m in (0, 1)])


def apart() -> Data:
    """Rows of three classes, most of which come to lie beyond every margin."""
    X, y = np.random.default_rng(0).normal(size=(900, 4)), np.arange(900) % 3
    X[np.arange(900), y] += 4.0
    return X, y


def test_features_are_computed_once_an_iteration_and_again_only_of_rows_whose_z_has_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, z_step = Gaussians.__call__, Shard.z_step
    rows, moved, found = [0], [0], []

    def computed(self: Gaussians, X: Any, dtype: Any) -> Any:
        rows[0] += len(X)
        return plain(self, X, dtype)

    def stepped(self: Shard, *args: Any) -> float:
        worst = z_step(self, *args)
        moved[0] = np.count_nonzero((self.Z != self.F).any(axis=1))
        return worst

    def count(info: dict[str, Any]) -> None:
        found.append((rows[0], moved[0]))
        rows[0] = 0

    monkeypatch.setattr(Gaussians, "__call__", computed)
    monkeypatch.setattr(Shard, "z_step", stepped)
    model(C=10.0).fit(cut(apart(), 400), executor=Serial(memory=0), callback=count)
    assert found[0] == (2 * 900, 0)  # for the Gram matrix and Phi'Z, and for F
    assert all(computed == 900 + some for computed, some in found[1:])
    assert 0 < found[-1][1] < 0.5 * 900


def test_a_worker_lost_while_a_basis_is_told_leaves_no_trace(train: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    # the others have the new basis already, and F of the old one
    params = {"map": "adaptive_rbf", "n_basis": 20, "center_steps": 60, "z_follows": True, "max_iter": 3}
    wanted = model(**params).fit(cut(train, 400), executor=Serial())
    plain, number, seen = Local._each, 0, []

    def losing(self: Local, calls: Any) -> Any:
        answers = plain(self, calls)
        seen.extend(call for call, _ in calls if call == "use")
        if calls[0][0] == "use" and len(seen) == number:
            raise WorkerLost("gone")
        return answers

    monkeypatch.setattr(Local, "_each", losing)
    for number in range(1, 6):
        seen.clear()
        found = model(**params).fit(cut(train, 400), executor=Serial())
        assert len(seen) > number and far(found, wanted) < 1e-3, number  # float32 gradients make rounding larger


def test_pairs_of_rare_classes_among_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = apart()
    y = np.where(np.arange(900) < 720, 0, y)  # some 60 rows each of the others, fewer than are worked on at least
    params = {"multi_class": "ovo", "C": 10.0, "centers": "random"}
    wanted = model(**params).fit(cut((X, y), 400))
    monkeypatch.setattr(block_svm, "MANY", 500)
    found = model(**params).fit(cut((X, y), 400))
    np.testing.assert_allclose([h["nested"] for h in found.history_], [h["nested"] for h in wanted.history_], rtol=1e-6)


def test_the_step_from_the_last_weights_is_the_ridge_solution() -> None:
    rows = cut(apart(), 300)
    near = model(C=10.0).fit(rows)
    mapping, svms = near.map_, (near.latent_coef_, near.intercept_)
    with Serial(memory=0).team(rows, None, 1) as team:
        team.call("look", 1e18)
        team.call("begin", 0, near.classes_, Scheme(3), np.ones(3), 10.0, "batched")
        team.call("use", mapping.basis)
        team.call("map", mapping.W)
        team.call("z_step", *svms, 2.0)
        gram, cross = team.sum("normal")
        np.testing.assert_allclose(team.sum("cross"), cross - gram @ mapping.W, atol=1e-9 * np.abs(cross).max())
        steps = Fixed(team, mapping.basis, 0.1, 1)
        whole = steps.fit(2.0, None, *svms)
        step = steps.fit(0.5, whole, *svms)  # with another ridge
        Phi, Z = mapping.basis(apart()[0], np.float64).astype(np.float32).astype(float), team.shards[0].Z
    for found, mu in ((whole, 2.0), (step, 0.5)):
        wanted = np.linalg.solve(Phi.T @ Phi + 2 * 0.1 / mu * np.eye(60), Phi.T @ Z)
        np.testing.assert_allclose(found.W, wanted, atol=1e-8 * np.abs(wanted).max())


def test_equal_rows_are_one_centre_and_it_is_said() -> None:
    X = np.tile(np.arange(6.0)[:, None], (20, 2))
    y = X[:, 0] > 2
    with pytest.warns(UserWarning, match=r"n_basis=50 is more than the 6 distinct training rows"):
        found = model(n_basis=50, C=10.0).fit(cut((X, y), 60))
    assert found.n_basis_ == 6 and found.score(X, y) == 1.0


def test_rows_that_are_often_equal_still_give_as_many_centres_as_are_asked_for() -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(100, 2)), 30, axis=0)
    rows = cut((X, X[:, 0] > 0), 1000)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="n_basis")
        found = model(n_basis=80, centers="random", max_iter=1).fit(rows)
    assert len(np.unique(found.centers_, axis=0)) == 80


def test_columns_of_uneven_scale_are_told(train: Data) -> None:
    X, y = train
    X[:, 5] *= 1e4
    with pytest.warns(UserWarning, match="the scales of the columns of X differ so much that gamma='scale'"):
        model(max_iter=1).fit(cut((X, y), 500))


def test_a_callback_stops_the_run_and_sees_what_moved(train: Data) -> None:
    seen: list[dict[str, Any]] = []
    found = model().fit(cut(train, 500), callback=lambda info: seen.append(info) or len(seen) == 3)  # type: ignore[func-returns-value]
    assert found.stop_reason_ == "callback" and found.n_iter_ == 2
    assert all(info["calls"] > 4 and info["bytes_down"] == info["bytes_up"] == info["lost"] == 0 for info in seen)
    assert all(0 <= info["seconds_fastest"] <= info["seconds_slowest"] for info in seen)


def test_it_is_a_classifier_like_others_afterwards(train: Data, valid: Data) -> None:
    from sklearn.base import clone

    found = model().fit(cut(train, 500), eval_set=valid)
    assert found.predict(valid[0]).shape == (400,) and found.transform(valid[0]).shape == (400, 9)
    assert found.n_features_in_ == 64 and not hasattr(found, "feature_names_in_")
    again = clone(found).fit(*train)
    assert again.score(*valid) > 0.85
    with pytest.raises(ValueError, match="X has 3 features"):
        found.predict(valid[0][:, :3])


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (
            {"n_basis": None},
            "n_basis=None needs all rows in one array; allowed with blocks of rows: 'scale' and whole numbers",
        ),
        ({"init": "pca"}, "init='pca' needs all rows"),
        ({"init": np.zeros((900, 9))}, "init='an array' needs all rows"),
        ({"early_stopping": True}, "early_stopping=True .* False, with validation rows as eval_set"),
        ({"warm_start": True}, "warm_start=True needs all rows"),
        ({"g_solver": "libsvm"}, "g_solver='libsvm' needs all rows"),
    ],
)
def test_what_needs_all_rows_is_refused(params: dict[str, Any], words: str, train: Data) -> None:
    with pytest.raises(ValueError, match=words):
        model(**params).fit(cut(train))


def test_somebody_elses_regressor_is_refused(train: Data) -> None:
    from sklearn.linear_model import Ridge

    with pytest.raises(ValueError, match=r"map=Ridge\(\) needs all rows"):
        model(map=Ridge()).fit(cut(train))


def test_arguments_that_do_not_go_together_are_refused(train: Data) -> None:
    X, y = train
    with pytest.raises(ValueError, match="y must be left out"):
        model().fit(cut(train), y)
    with pytest.raises(ValueError, match="sample_weight is not supported with blocks"):
        model().fit(cut(train), sample_weight=np.ones(900))
    with pytest.raises(ValueError, match="eval_set must be RowBlocks, or a pair"):
        model().fit(cut(train), eval_set=X)
    for executor, words in (("ray", "'ray'"), (Threads, "Threads")):
        with pytest.raises(ValueError, match=f"executor={words} is not an executor; allowed"):
            model().fit(cut(train), executor=executor)
    with pytest.raises(ValueError, match="fit_path does not support RowBlocks"):
        fit_path(model(), cut(train), None, [0.1])
    with pytest.raises(ValueError, match="got RowBlocks; RowBlocks go with RowBlocks"):
        model().fit(X, y, eval_set=cut(train))
    with pytest.raises(ValueError, match="y contains one class only"):
        model().fit(cut((X, np.zeros(900, int)), 400))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Threads(0), "workers=0 must be a whole number of at least 1"),
        (lambda: Threads("2"), "workers='2' must be"),  # type: ignore[arg-type]
        (lambda: OnRay(-1), "workers=-1 must be"),
        (lambda: OnRay(1, threads=0), "threads=0 must be"),
        (lambda: Serial("1GB"), "memory='1GB' must be a number of bytes, or None"),  # type: ignore[arg-type]
        (lambda: Threads(1, memory=-1), "memory=-1 must be"),
        (lambda: OnRay(1, memory=float("nan")), "memory=nan must be"),
    ],
)
def test_executors_that_cannot_be_are_refused_at_once(make: Any, words: str) -> None:
    with pytest.raises(BlockError, match=words):
        make()


def test_random_numbers_are_drawn_as_in_memory_and_used_up(train: Data) -> None:
    params = {"centers": "random", "init": "random"}
    assert far(model(**params).fit(cut(train, 400)), model(**params).fit(*train)) < 1e-4
    state = np.random.RandomState(3)
    first, second = (model(random_state=state, **params).fit(cut(train, 400)) for _ in range(2))
    assert not np.array_equal(first.centers_, second.centers_)


def test_a_failed_fit_leaves_the_model_as_it_was(train: Data, valid: Data) -> None:
    found = model().fit(*train)
    before = found.predict(valid[0])
    with pytest.raises(ValueError, match="label 10"):
        found.fit(cut(train), eval_set=(valid[0], valid[1] + 2))
    assert np.array_equal(found.predict(valid[0]), before) and found.n_features_in_ == 64


def test_one_worker_for_each_block_at_most() -> None:
    rng = np.random.default_rng(0)
    blocks = [(rng.normal(size=(n, 2)), rng.integers(2, size=n)) for n in (1000, 1, 1, 500)]
    rows = RowBlocks.arrays(blocks)
    for parts in range(1, 9):
        divided = rows.divided(parts)
        assert len(divided) == min(parts, 4)
        assert all(part.blocks for part in divided)
        assert sum((part.blocks for part in divided), ()) == rows.blocks


def test_blocks_without_rows_do_no_harm(train: Data, whole: LDSVMClassifier) -> None:
    rows = cut(train, 0, 400, 400, 900)
    assert far(model().fit(rows, executor=Threads(3)), whole) < 1e-8


def test_the_public_name_is_the_same_class() -> None:
    from ldsvm import blocks

    assert blocks.RowBlocks is RowBlocks and isinstance(model(), LDSVMClassifier)
