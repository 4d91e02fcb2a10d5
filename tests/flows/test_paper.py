"""The list of the paper's experiments: all of them, whole and small, are files that load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows._cli import load_any
from flows.paper import Item, items, overview
from ldsvm.report.publish import EXTRACT, REPORT

ROOT = Path(__file__).resolve().parents[2]


def test_every_experiment_of_the_paper_is_listed_once() -> None:
    listed = [item.file for item in items()]
    assert sorted(listed) == sorted(str(p.relative_to(ROOT)) for p in (ROOT / "conf" / "experiments").glob("*.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("item", items(), ids=lambda item: Path(item.file).stem)
def test_it_loads_whole_and_small_and_small_is_quicker(item: Item) -> None:
    whole, small = (load_any(item.file, item.overrides(fast, [])) for fast in (False, True))
    assert whole.name == small.name == Path(item.file).stem
    assert whole.results != small.results and 0 < item.fast_minutes < item.minutes


def test_all_fits_into_three_hours_and_the_small_one_into_fifteen_minutes() -> None:
    assert sum(item.minutes for item in items()) <= 180
    assert sum(item.fast_minutes for item in items()) <= 15


def test_the_page_shows_the_claims_of_all_and_what_is_missing(tmp_path: Path) -> None:
    found = [Item("conf/digits.yaml", 1), Item("conf/experiments/pcmac.yaml", 1)]
    more = [f"paths.runs={tmp_path}"]
    folder = load_any("conf/digits.yaml", more).results
    folder.mkdir(parents=True)
    (folder / EXTRACT).write_text("<p>ours is good: NO, ours 9 %</p>")
    page = overview(found, False, more, found[1:])
    text = page.read_text("utf-8")
    assert page == tmp_path / "results" / "paper.html"
    assert "<p>ours is good: NO, ours 9 %</p>" in text
    assert f'href="{folder.name}/{REPORT}"' in text
    assert f"No result yet: python -m flows pipeline conf/experiments/pcmac.yaml paths.runs={tmp_path}" in text
    assert text.count("The last run did not finish") == 1


def test_the_page_is_there_when_nothing_else_is(tmp_path: Path) -> None:
    page = overview([Item("conf/digits.yaml", 1)], True, [f"paths.runs={tmp_path / 'new'}"])
    assert "No result yet" in page.read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "both"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_a_stop_waits_until_the_experiment_has_stopped(tmp_path: Path, number: signal.Signals, both: bool) -> None:
    # the experiment is a stand-in that takes its time to end, and tells how it was ended
    child = (
        "import signal, sys, time, pathlib; signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
        "place = pathlib.Path(sys.argv[1])\n"
        "try: (place / 'begun').touch(); time.sleep(300)\n"
        "except KeyboardInterrupt: time.sleep(1); (place / 'ended').touch(); sys.exit(130)"
    )
    parent = (
        "import sys, signal, subprocess; from flows import paper\n"
        "signal.signal(signal.SIGTERM, paper._terminated)\n"
        "try: paper._ended(subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[2]]))\n"
        "except KeyboardInterrupt: sys.exit(130)"
    )
    command = [sys.executable, "-c", parent, child, str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    end = time.monotonic() + 200
    while not (tmp_path / "begun").exists() and time.monotonic() < end:
        time.sleep(0.05)
    if both:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    assert process.wait(200) == 130
    assert (tmp_path / "ended").exists()
