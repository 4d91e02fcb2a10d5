"""Posts without headers, beside scikit-learn's own helpers, and PCA of sparse rows beside PCA of dense ones."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets._twenty_newsgroups import (
    strip_newsgroup_footer,
    strip_newsgroup_header,
    strip_newsgroup_quoting,
)
from sklearn.decomposition import PCA
from skops.io import dumps, get_untrusted_types, loads

from ldsvm.datasets import DataError, text
from ldsvm.datasets.text import DensifyingPCA, StripHeaders

RAW = os.environ.get("LDSVM_DATA_HOME")
ARCHIVE = Path(RAW or ".") / "20news" / "20news-bydate.tar.gz"

# No post of anybody: made up, with what posts have.
POSTS = [
    "From: a@b.example\nSubject: one\n\nThe first.\nIts second line.",
    "Subject:\n\nA header with an empty value.",
    "X-Mailer: none\n  continued: here\nLines: 2\n\n\nAn empty line more.\n\nAnd one.",
    "From: café\n\né and ÿ stay as they are\xa0.",
    "From: a@b.example\n\n",
]
BARE = [
    "",
    "\n\nno header",
    "http://a.example/b\n\nan address",
    "A name with spaces: no\n\nheader",
    "Note: one line",
    "12",
]


def strip(texts: list[str], **options: bool) -> list[str]:
    found = StripHeaders(**options).fit_transform(texts)
    assert found.dtype == object and found.shape == (len(texts),)
    return [str(one) for one in found]


def test_headers_end_at_the_first_empty_line() -> None:
    bodies = [strip_newsgroup_header(post) for post in POSTS]
    assert strip(POSTS) == bodies
    assert all(body != post for body, post in zip(bodies, POSTS, strict=True))


def test_lines_that_end_as_on_windows() -> None:
    assert strip(["From: a\r\nSubject: b\r\n\r\nbody\r\n\r\nmore"]) == ["body\r\n\r\nmore"]


def test_text_without_a_header_stays_as_it_is() -> None:
    assert strip(BARE) == BARE


def test_signatures() -> None:
    signed = "one\n-- \ntwo\n  ----\nthree\nfour"
    assert strip([signed], footers=True) == ["one\n-- \ntwo\n"]
    assert strip([signed], footers=True)[0].rstrip("\n") == strip_newsgroup_footer(signed)
    for kept in ("one - two\n- three\n\nfour", "----\none\ntwo", "", "one --\ntwo"):
        assert strip([kept], footers=True) == [kept]
    assert strip([signed]) == [signed]


def test_quotations() -> None:
    quoting = (
        "In article <1> somebody writes:\n> one\n| two\n>> three\nmine > yours\nHe said:\n four\nshe wrote: five\nsix"
    )
    assert strip([quoting], quotes=True) == ["mine > yours\n four\nsix"] == [strip_newsgroup_quoting(quoting)]
    assert strip([quoting]) == [quoting]


def test_everything_at_once_goes_from_the_outside_inwards() -> None:
    # The dashes in the header are no signature, and the name below the dashes is gone with its colon.
    post = "From: a\nX-Line:\n---\n\nbody\n> quoted\n---\nName: x\n\n"
    assert strip([post], footers=True, quotes=True) == ["body\n"]


def test_it_is_an_estimator_that_learns_nothing() -> None:
    step = StripHeaders(quotes=True)
    assert step.get_params() == {"footers": False, "quotes": True}
    assert clone(step).set_params(footers=True).get_params() == {"footers": True, "quotes": True}
    assert StripHeaders().transform(POSTS).tolist() == StripHeaders().fit(BARE).transform(POSTS).tolist()
    data = dumps(step)
    assert get_untrusted_types(data=data) == ["ldsvm.datasets.text.StripHeaders"]
    again = loads(data, trusted=["ldsvm.datasets.text.StripHeaders"])
    assert again.transform(POSTS).tolist() == step.transform(POSTS).tolist() and again.quotes is True


@pytest.mark.slow
@pytest.mark.skipif(not ARCHIVE.is_file(), reason="LDSVM_DATA_HOME has no 20news/20news-bydate.tar.gz")
def test_every_real_header_goes_as_scikit_learn_takes_it() -> None:
    with tarfile.open(ARCHIVE) as archive:
        files = (archive.extractfile(member) for member in archive if member.isfile())
        posts = [file.read().decode("latin-1") for file in files if file is not None]
    stripped = StripHeaders().transform(posts)
    # Only numbers may be shown of these texts, so no assertion has one in it. A few posts start without a header.
    headless = sum(new == old for new, old in zip(stripped, posts, strict=True))
    other = sum(new not in (old, strip_newsgroup_header(old)) for new, old in zip(stripped, posts, strict=True))
    assert (len(posts), headless, other) == (18_846, 22, 0)


def sparse_rows() -> csr_matrix:
    rng = np.random.RandomState(5)
    X = rng.rand(30, 12).astype(np.float32)
    return csr_matrix(np.where(X > 0.6, X, 0))


@pytest.mark.parametrize("n", [4, 0.9, 12])
def test_pca_of_sparse_rows_is_pca_of_the_same_rows_dense(n: float) -> None:
    X = sparse_rows()
    ours, theirs = DensifyingPCA(n, random_state=0), PCA(n, random_state=0).fit(X.toarray())
    Z = ours.fit_transform(X)
    np.testing.assert_allclose(Z, theirs.transform(X.toarray()), atol=1e-5)
    np.testing.assert_allclose(ours.transform(X), Z, atol=1e-5)
    np.testing.assert_allclose(clone(ours).fit(X).transform(X.toarray()), Z, atol=1e-5)
    assert Z.dtype == ours.transform(X).dtype == np.float32


def test_pca_refuses_sparse_rows_that_would_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"10,000 x 9,000 sparse inputs made dense, 343 MiB; allowed: 200 MiB, .* svd"):
        DensifyingPCA(2).fit(csr_matrix((10_000, 9_000), dtype=np.float32))
    monkeypatch.setattr(text, "LARGEST", 30 * 12 * 4)
    DensifyingPCA(2).fit(sparse_rows())
    monkeypatch.setattr(text, "LARGEST", 30 * 12 * 4 - 1)
    with pytest.raises(DataError, match="sparse inputs made dense"):
        DensifyingPCA(2).fit_transform(sparse_rows())
