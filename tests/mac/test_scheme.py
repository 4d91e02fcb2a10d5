"""Classes to SVMs and back, against slow loops."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from ldsvm.mac.scheme import Scheme


@pytest.mark.parametrize("kind", ["ovr", "ovo"])
def test_two_classes_are_one_svm(kind: str) -> None:
    # positive means the second class; zero belongs to the first, as in scikit-learn
    scheme = Scheme(2, kind)
    Y, part = scheme.signs(np.array([0, 1, 1]))
    assert scheme.n_svms == 1 and Y.ravel().tolist() == [-1, 1, 1] and part.all()
    scores = scheme.scores(np.array([[-0.5], [0.0], [0.1]]))
    assert scores.tolist() == [-0.5, 0.0, 0.1] and scheme.classes(scores).tolist() == [0, 0, 1]


def test_one_vs_all() -> None:
    scheme = Scheme(3)
    Y, part = scheme.signs(np.array([2, 0]))
    assert Y.tolist() == [[-1, -1, 1], [1, -1, -1]] and part.all() and scheme.n_svms == 3
    assert scheme.classes(scheme.scores(np.array([[0.1, -1, 0.3], [-3, -2, -5]]))).tolist() == [2, 1]


@pytest.mark.parametrize("K", [3, 4, 6])
def test_one_vs_one_signs_equal_a_double_loop(K: int) -> None:
    # SVM (i, j), i < j: rows of class i are positive, of class j negative, others take no part
    y = np.random.default_rng(K).permutation(np.arange(3 * K) % K)
    scheme = Scheme(K, "ovo")
    Y, part = scheme.signs(y)
    assert scheme.n_svms == K * (K - 1) // 2 == Y.shape[1]
    for m, (i, j) in enumerate(combinations(range(K), 2)):
        for n, label in enumerate(y):
            assert part[n, m] == (label in (i, j))
            if part[n, m]:
                assert Y[n, m] == (1 if label == i else -1)
    assert (part.sum(axis=1) == K - 1).all()


@pytest.mark.parametrize("K", [3, 4, 6])
def test_one_vs_one_votes_equal_a_double_loop(K: int) -> None:
    # most votes win; a tie goes to the larger sum of confidences
    rng = np.random.default_rng(K)
    decisions = rng.normal(size=(300, K * (K - 1) // 2)) * 2
    slow, ties = [], 0
    for row in decisions:
        votes, confidence = np.zeros(K), np.zeros(K)
        for value, (i, j) in zip(row, combinations(range(K), 2), strict=True):
            votes[i if value >= 0 else j] += 1
            confidence[i] += value
            confidence[j] -= value
        leaders = [k for k in range(K) if votes[k] == votes.max()]
        ties += len(leaders) > 1
        slow.append(max(leaders, key=lambda k: confidence[k]))
    scheme = Scheme(K, "ovo")
    assert scheme.classes(scheme.scores(decisions)).tolist() == slow
    assert ties > 20
