"""Tables, figures and the page."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from ldsvm.experiment.compare.judge import Score
from ldsvm.experiment.compare.outcome import Outcome
from ldsvm.experiment.compare.results import Result
from ldsvm.experiment.config.load import load_config
from ldsvm.experiment.config.schema import Config
from ldsvm.experiment.search.failure import Failure, Kind
from ldsvm.experiment.search.trial import Trial
from ldsvm.report import build, claims, html, tables
from ldsvm.report.claims import Claim
from ldsvm.report.plotting import contest as plotting
from ldsvm.report.plotting.base import Drawing
from ldsvm.report.plotting.projections import Panel, projections
from ldsvm.report.studies.base import Page, Table

ROOT = Path(__file__).resolve().parents[2]
SCORE = Score(0.0223, 0.0121, 0.0405, 10, 449, 1200, 3400, 51200, 1.44, 0.81, [0, 1], [0.01, 0.03], [[99, 1], [3, 97]])
FIRST = Result(
    "p", "ours", "ldsvm",
    [Trial({"C": 1.0}, 0, 0.031, 1200, 0.5, "converged"),
     Trial({"C": 1e-3}, 1, failure=Failure(Kind.FAULT, "ValueError: a|b"))],
    params={"C": 1.0}, valid_error=0.031, train_s=0.4321, search_s=12.34, peak_mib=33.6, score=SCORE,
    history=[{"iteration": i, "nested": 9.0 / (i + 1), "penalised": 8.0, "train_error": 0.1} for i in range(3)],
)  # fmt: skip
FAILED = Result("p", "NN", "nearest_neighbour", [], failure=Failure(Kind.ACCIDENT, "SearchFailed: none <worked>"))
BAD = Outcome(Path("bad"), (FAILED,))
LINEAR = Outcome(
    Path("linear"),
    (Result(
        "p", "linear SVM", "linear_svm", [], valid_error=0.1, train_s=0.1, train_alone_s=0.2, search_s=3.0,
        score=Score(0.1, 0.05, 0.2, 1, 10, None, None, 8, 1.0, 1.0, [0], [0.1], [[9]]),
    ),),
)  # fmt: skip
SECOND = replace(
    FIRST, split=1, params={"C": 10.0}, valid_error=0.011, train_s=0.6,
    score=replace(SCORE, error=0.0423, predict_us=2.0, n_basis=1300),
)  # fmt: skip
GOOD, TWICE = Outcome(Path("good"), (FIRST,)), Outcome(Path("twice"), (FIRST, SECOND))


class Check(HTMLParser):
    """Notes open tags and everything that would be loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.pictures: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.loaded += [str(v) for k, v in attrs if k in ("src", "href")]
        if tag == "img":
            self.pictures.append(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_rows_say_what_was_measured() -> None:
    header, rows = tables.detail([GOOD])
    assert dict(zip(header, rows[0], strict=True)) == {
        "method": "ours", "error %": "2.23", "95 % interval": "1.21 – 4.05", "basis functions": "1,200",
        "train s": "0.43", "predict µs/sample": "1.4", "search s": "12", "basis functions, summed over SVMs": "3,400",
        "train s, one thread": "–", "predict µs, all threads": "0.8", "validation error %": "3.10",
        "parameters kB": "51.2", "train MiB": "33.6", "chosen": "C=1",
    }  # fmt: skip
    assert tables.main([GOOD]) == (header[:7], [row[:7] for row in rows])


def test_the_last_row_is_what_the_largest_class_alone_would_give() -> None:
    # 30 rows of one class, 10 and 20 of the others: always answering the first is wrong in half of the cases
    uneven = replace(SCORE, classes=[0, 1, 2], confusion=[[30, 0, 0], [5, 5, 0], [0, 20, 0]])
    one = Outcome(Path("one"), (replace(FIRST, score=uneven),))
    mean = Outcome(
        Path("mean"),
        (replace(FIRST, score=uneven), replace(SECOND, score=replace(uneven, confusion=[[9, 1], [0, 30]]))),
    )
    for outcome, error in ((one, "50.00"), (mean, "37.50")):
        header, rows = tables.detail([BAD, outcome])
        assert rows[-1] == ["always largest class", error, *["–"] * (len(header) - 2)]
        assert tables.main([BAD, outcome])[1][-1] == rows[-1][: len(rows[-1]) - len(tables.MORE)]
        assert len(tables.more([BAD, outcome])[1]) == 1
    assert len(tables.detail([BAD])[1]) == 1  # nothing was judged


def test_what_the_first_table_leaves_out_is_in_the_second() -> None:
    header, rows = tables.detail([GOOD])
    (first, (main, _)), (second, (more,)) = tables.main([GOOD]), tables.more([GOOD, BAD])
    assert [*first, *second[1:], header[-1]] == header
    assert [*main, *more[1:], rows[0][-1]] == rows[0]


def test_several_splits_are_a_mean_with_their_standard_deviation() -> None:
    header, rows = tables.detail([TWICE])
    row = dict(zip(header, rows[0], strict=True))
    assert (row["error %"], row["std of 2 splits"]) == ("3.23", f"{100 * np.std([0.0223, 0.0423], ddof=1):.2f}")
    assert (row["basis functions"], row["predict µs/sample"], row["train s"]) == ("1,250", "1.7", "0.52")
    assert (row["validation error %"], row["chosen"]) == ("2.10", "C=1 or 10")


def test_a_mean_over_the_splits_that_succeeded_is_no_result() -> None:
    half = Outcome(Path("half"), (FIRST, replace(FAILED, split=1)))
    assert not half.judged
    assert half.failure == "SearchFailed: none <worked> (split 1, 1 of 2 failed)"
    assert tables.detail([half])[1][0][1] == "failed"


def test_a_failed_method_is_a_row_with_its_reason() -> None:
    header, (row,) = tables.detail([BAD])
    assert (row[0], row[1], row[-1], len(row)) == ("NN", "failed", "SearchFailed: none <worked>", len(header))


def test_published_figures_stand_beside_ours() -> None:
    figures = [{"method": "ours", "error": 2.5, "std": 0.1, "n_basis": 900, "source": "s"},
               {"method": "elsewhere", "error": 1.0, "source": "s"}]  # fmt: skip
    header, rows = tables.published(published(figures), [GOOD])
    assert "published iterations" not in header
    assert rows == [
        ["ours", "2.50 (0.10)", "2.23", "-0.27", "900", "3,400"],
        ["elsewhere", "1.00", "–", "–", "–", "–"],
    ]
    header, rows = tables.published(published([{**figures[0], "iterations": 18}, figures[1]]), [GOOD])
    assert [row[6:] for row in rows] == [["18", "2"], ["–", "–"]]
    assert {len(row) for row in rows} == {len(header)}


def published(figures: list[dict[str, Any]]) -> Config:
    return load_config("conf/digits.yaml", [f"published={figures}"], root=ROOT)


def test_markdown_keeps_its_columns_and_csv_its_cells() -> None:
    header, rows = tables.trial_rows(FIRST)
    text = tables.markdown(header, rows)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()} == {len(header) + 1}
    assert tables.to_csv(["a", "b"], [["1,000", 'x"y']]) == 'a,b\n"1,000","x""y"\n'


@pytest.mark.slow
@pytest.mark.parametrize(("n_latent", "n_classes"), [(1, 2), (1, 12), (2, 10), (5, 2), (5, 12)])
def test_figures_are_pictures_and_the_same_each_time(n_latent: int, n_classes: int) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    Z = rng.normal(size=(60, n_latent)) + y[:, None]
    by_scores = Z[:, :1] * [1.0, -1.0] if n_classes > 2 else None
    first = plotting.latent_space(Z, y, "t", by_scores)
    assert first.png.startswith(b"\x89PNG") and first.svg.startswith(b"<?xml")
    assert first == plotting.latent_space(Z, y, "t", by_scores)


@pytest.mark.slow
def test_a_large_set_is_drawn_in_part() -> None:
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(2 * plotting.MOST_POINTS, 2)), np.arange(2 * plotting.MOST_POINTS) % 3
    assert plotting.latent_space(Z, y, "t").png.startswith(b"\x89PNG")


@pytest.mark.slow
def test_importances_are_drawn_by_column_the_first_twenty() -> None:
    shares = {f"column {i} with a name of more than forty letters": 1 / (i + 1) for i in range(30)}
    config, unused = load_config("conf/digits.yaml", root=ROOT), cast(Any, None)
    found = Outcome(Path("x"), (replace(FIRST, importances=shares, history=[]),))
    (picture,) = build.pictures(config, config.problems[0], unused, found)
    assert picture.name == "importances_ours" and picture.caption.startswith("The 20 most important of 30 columns: ")
    assert picture.drawing.png.startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stop", "said"),
    [("early_stopping", "the validation error stopped improving."), (None, "of an unknown reason.")],
)
def test_a_training_says_in_words_why_it_stopped(stop: str | None, said: str) -> None:
    config, unused = load_config("conf/digits.yaml", root=ROOT), cast(Any, None)
    found = Outcome(Path("x"), (replace(FIRST, stop_reason=stop, importances={}),))
    (picture,) = build.pictures(config, config.problems[0], unused, found)
    assert picture.caption.endswith(f"Training stopped because {said}")


@pytest.mark.slow
def test_figures_bear_missing_values_and_failed_methods() -> None:
    assert plotting.convergence(FIRST.history, "t").png.startswith(b"\x89PNG")
    assert plotting.overview([GOOD, BAD, LINEAR], "t").png.startswith(b"\x89PNG")
    assert plotting.overview([TWICE, BAD], "t").png.startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4, 7])
def test_projections_have_a_panel_for_each_method_the_same_each_time(count: int) -> None:
    rng, y = np.random.default_rng(0), np.arange(60) % 3
    finer = np.arange(60) % 9  # the seventh method has learnt labels of its own
    panels = [Panel(f"m{i}: $", rng.normal(size=(60, 1 + i % 4)), y if i < 6 else finer, y) for i in range(count)]
    first = projections(panels, "t")
    assert first == projections(panels, "t")
    assert all(f">m{i}: $<".encode() in first.svg for i in range(count))
    assert first.svg.count(b">1</text>") == (2 if count == 7 else 1)  # the legend, and that panel
    assert first.svg.count(b">8</text>") == (1 if count == 7 else 0)


@pytest.mark.slow
def test_figures_leave_no_global_state() -> None:
    def figures() -> list[int]:
        return sys.modules["matplotlib.pyplot"].get_fignums() if "matplotlib.pyplot" in sys.modules else []

    before = figures()  # of others, such as MLflow's evaluate
    plotting.overview([GOOD], "t")
    assert figures() == before


PICTURE = html.Picture("a", Drawing(b"png", b"svg"), 'alt "with" <marks>', "below")
CLAIMS = claims.table([Claim("<b>holds", True, "1 %")])
END = {"machine": {"k": "<b>"}, "configuration": "a < b"}
DATA = {"protocol": "2 %", "sizes": "s", "data": {"k": "<b>"}, "remarks": ["<b>"]}
LOSERS = [GOOD, replace(BAD, results=(replace(FAILED, notes=["<b>"]),))]


def study() -> str:
    page = Page("<b> 2 %", [], [Table("H & H", ["method", "x"], [["NN", "<b>"]], note="<b>")], [PICTURE], "2 %")
    return html.render("study.html", title="A <title>", page=page, claims=CLAIMS, **END)


def contest() -> str:
    config = published([{"method": "ours", "error": 2.5, "source": "<b>"}])
    part = build.part(config, config.problems[0], LOSERS) | {"overall": [], "pictures": [PICTURE], "claims": CLAIMS}
    return html.render("contest.html", title="A <title>", opening=["<b> 2 %"], problems=[part], **DATA, **END)


def curves() -> str:
    part = {"name": "H & H", "series": [("at <b>", LOSERS)], "pictures": [PICTURE], "table": tables.main(LOSERS)}
    return html.render("curves.html", title="A <title>", problems=[part | {"claims": CLAIMS}], **DATA, **END)


@pytest.mark.parametrize("page", [study, contest, curves])
def test_the_page_is_well_formed_escaped_and_needs_nothing_else(page: Callable[[], str]) -> None:
    text = page()
    check = Check()
    check.feed(text)
    assert check.open == []
    assert len(check.loaded) == 1
    assert all(address.startswith("data:image/png;base64,") for address in check.loaded)
    assert check.pictures[0]["alt"] == 'alt "with" <marks>'
    assert "<script" not in text
    assert "@import" not in text
    assert "url(" not in text
    assert "<b>" not in text
    assert "<title>A &lt;title&gt;</title>" in text
    assert "<p>2\u00a0%</p>" in text
    assert "<pre>a &lt; b</pre>" in text
