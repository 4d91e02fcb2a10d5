"""A process that can be stopped: answers, news, errors, time limits and deaths, each with a real process."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldsvm.experiment.search.failure import Kind
from ldsvm.experiment.search.worker import Here, Runner, Stopped, Tell, Worker
from ldsvm.methods import memory_limit
from ldsvm.methods.memory_limit import MIB, MemoryLimit


def twice(number: int, tell: Tell) -> int:
    for step in range(3):
        tell(step)
    return 2 * number


def fails(_: Tell) -> None:
    raise ValueError("no such thing")


def sleeps(_: Tell) -> None:
    time.sleep(300)


def dies(_: Tell) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leaves(_: Tell) -> None:
    os._exit(3)


def whoami(_: Tell) -> int:
    return os.getpid()


def takes(mib: int, _: Tell) -> float:
    kept = [np.ones(10 * MIB // 8) for _ in range(mib // 10)]
    return float(kept[-1][-1])


def crashes(mib: int, _: Tell) -> None:
    """Take memory as a library does that never looks whether it got it."""
    malloc = ctypes.CDLL(None).malloc
    malloc.restype = ctypes.c_void_p
    ctypes.memset(ctypes.c_void_p(malloc(mib * MIB)), 1, 1)


def resident(_: Tell) -> float:
    return memory_limit._sizes()["VmRSS"] / MIB


def allowance(_: Tell) -> int | None:
    return memory_limit.available()


def unpicklable(_: Tell) -> object:
    return lambda: None


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as found:
        yield found


@pytest.mark.slow
def test_both_runners_answer_and_tell_alike(worker: Worker) -> None:
    runners: list[Runner] = [Here(), worker]
    for runner in runners:
        news: list[int] = []
        assert runner.call(twice, 21, limit_s=200, tell=news.append) == 42
        assert news == [0, 1, 2]
        assert runner.call(twice, 1, limit_s=200) == 2
        with pytest.raises(ValueError, match="no such thing"):
            runner.call(fails, limit_s=200)


@pytest.mark.slow
def test_one_process_serves_many_calls_and_it_is_not_this_one(worker: Worker) -> None:
    first, second = worker.call(whoami, limit_s=200), worker.call(whoami, limit_s=200)
    assert first == second != os.getpid()


@pytest.mark.slow
def test_a_call_that_takes_too_long_is_stopped_and_the_next_one_works(worker: Worker) -> None:
    before, start = worker.call(whoami, limit_s=200), time.monotonic()
    with pytest.raises(Stopped, match=r"^stopped: time limit of 0\.3 s$") as caught:
        worker.call(sleeps, limit_s=0.3)
    assert caught.value.failure.kind is Kind.TIME_LIMIT
    assert time.monotonic() - start < 100
    assert worker.call(whoami, limit_s=200) != before
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("how", "words"), [(dies, "signal 9, as when memory runs out"), (leaves, "exit code 3")])
def test_a_process_that_dies_is_told_and_replaced(worker: Worker, how: object, words: str) -> None:
    with pytest.raises(Stopped, match=f"^stopped: its process ended with {words}$") as caught:
        worker.call(how, limit_s=200)  # type: ignore[arg-type]
    assert caught.value.failure.kind is Kind.ENDED
    assert worker.call(twice, 2, limit_s=200) == 4


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds private memory")
def test_a_call_that_takes_too_much_memory_is_stopped_and_its_process_goes_on(worker: Worker) -> None:
    number, before = worker.call(whoami, limit_s=200), worker.call(resident, limit_s=200)
    limit = MemoryLimit(150)
    assert worker.call(takes, 120, limit_s=200, memory=limit) == 1
    with pytest.raises(Stopped, match=r"^stopped: memory limit of 150 MiB$") as caught:
        worker.call(takes, 500, limit_s=200, memory=limit)
    assert caught.value.failure.kind is Kind.MEMORY_LIMIT
    assert worker.call(resident, limit_s=200) < before + 60  # libraries, and nothing of the 500
    assert worker.call(takes, 120, limit_s=200, memory=limit) == 1
    assert worker.call(takes, 500, limit_s=200) == 1
    assert worker.call(whoami, limit_s=200) == number


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds private memory")
def test_a_library_that_crashes_for_want_of_memory_is_told_with_the_limit(worker: Worker) -> None:
    with pytest.raises(Stopped, match=r"^stopped: its process ended with signal 11 under a memory limit of 100 MiB$"):
        worker.call(crashes, 500, limit_s=200, memory=MemoryLimit(100))
    assert worker.call(twice, 2, limit_s=200, memory=MemoryLimit(100)) == 4
    with pytest.raises(Stopped, match=r"ended with signal 9, as when memory runs out$"):
        worker.call(dies, limit_s=200)  # a limit is forgotten with its call


@pytest.mark.slow
def test_estimates_know_the_limit_of_the_call_only(worker: Worker) -> None:
    runners: list[Runner] = [Here(), worker]
    for runner in runners:
        free = runner.call(allowance, limit_s=200)
        assert runner.call(allowance, limit_s=200, memory=MemoryLimit(3)) == 3 * MIB
        assert (free is None) == (runner.call(allowance, limit_s=200, memory=MemoryLimit()) is None)
        assert free is None or free > 3 * MIB


@pytest.mark.slow
def test_an_answer_that_cannot_travel_is_an_error_and_not_a_hang(worker: Worker) -> None:
    with pytest.raises(RuntimeError, match=r"pickle|local object"):
        worker.call(unpicklable, limit_s=200)


@pytest.mark.slow
def test_the_process_outlives_the_thread_that_first_called() -> None:
    with Worker() as worker:
        numbers: list[int] = []
        thread = threading.Thread(target=lambda: numbers.append(worker.call(whoami, limit_s=200)))
        thread.start()
        thread.join()
        time.sleep(0.2)
        assert worker.call(whoami, limit_s=200) == numbers[0]


@pytest.mark.slow
def test_closing_ends_the_process_and_may_be_done_twice() -> None:
    worker = Worker()
    worker.close()
    number = worker.call(whoami, limit_s=200)
    worker.close()
    worker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_killed_parent_leaves_no_process(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_worker import sleeps, whoami\n"
        "from ldsvm.experiment.search.worker import Worker\n"
        "if __name__ == '__main__':\n"
        "    worker = Worker()\n"
        "    print(worker.call(whoami, limit_s=200), flush=True)\n"
        "    worker.call(sleeps, limit_s=200)\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(1000):
        if not _alive(child):
            return
        time.sleep(0.1)
    pytest.fail("the child outlived its parent by 100 seconds")


def _alive(number: int) -> bool:
    try:
        # A zombie that init has not collected yet is dead.
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["sent", "told", "started"])
def test_what_interrupts_a_call_leaves_no_answer_for_the_next_one(
    moment: str, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as Prefect's limit of a task does, in whatever line it meets; the next call is another method's
    class Late(BaseException):
        pass

    def interrupt(_: object) -> None:
        raise Late

    first = worker.call(whoami, limit_s=200)
    with monkeypatch.context() as patch:
        if moment == "sent":
            send = worker._pipe.send
            patch.setattr(worker, "_pipe", Sending(worker._pipe, lambda work: (send(work), interrupt(work))))
        if moment == "started":
            worker.close()
            patch.setattr(worker, "_receive", lambda *_: interrupt(None))
        with pytest.raises(Late):
            worker.call(twice, 1, limit_s=200, tell=interrupt)
        assert worker._process is None
    assert worker.call(twice, 21, limit_s=200) == 42
    assert worker.call(whoami, limit_s=200) != first


class Sending:
    """A pipe whose `send` is another."""

    def __init__(self, pipe: Any, send: Callable[[Any], Any]) -> None:
        self._pipe, self.send = pipe, send

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)
