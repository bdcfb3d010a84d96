"""Helpers in other processes do what would be done here, and are not missed if they fail."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from compactproofs.errors import LedgerError
from compactproofs.search import crew as crew_module
from compactproofs.search.crew import Crew


class Worker:
    """What is called, here and there."""

    def __init__(self, number):
        self.number = number

    def add(self, x):
        return self.number + x, os.getpid()

    def refuse(self):
        raise LedgerError("refused")

    def end(self):
        os._exit(1)


class Watched:
    """How many calls are under way."""

    def __init__(self):
        self.under_way = 0

    def work(self):
        self.under_way += 1
        most = self.under_way
        for _ in range(2000):
            most = max(most, self.under_way)
            time.sleep(0)
        self.under_way -= 1
        return most


@pytest.fixture
def crew(monkeypatch):
    """A crew with one helper that is ready."""
    monkeypatch.setattr(crew_module, "_PATIENCE", 0.0)
    monkeypatch.setattr(crew_module, "available_cores", lambda: 2)
    with Crew(Worker(1), Worker, 1) as found:
        assert found.call("add", 1)[0] == 2
        (helper,) = found._hired
        deadline = time.monotonic() + 120
        while not helper.is_ready() and time.monotonic() < deadline:
            helper.pipe.poll(1)
        yield found


def test_a_free_helper_is_called(crew):
    (helper,) = crew._hired
    assert crew.call("add", 5) == (6, helper.process.pid)
    with pytest.raises(LedgerError, match="refused"):
        crew.call("refuse")
    assert crew.call("add", 7) == (8, helper.process.pid)


def test_a_busy_helper_is_not_waited_for(crew):
    busy = crew._free()
    assert crew.call("add", 5) == (6, os.getpid())
    crew._idle.append(busy)


def test_a_helper_that_ends_is_not_missed(crew):
    (helper,) = crew._hired
    helper.process.kill()
    helper.process.wait()
    assert crew.call("add", 5) == (6, os.getpid()) and crew.call("add", 6) == (7, os.getpid())


def test_helpers_end_with_the_crew(crew):
    (helper,) = crew._hired
    crew.__exit__(None, None, None)
    assert helper.process.poll() is not None
    assert crew.call("add", 5) == (6, os.getpid())


def test_nobody_is_hired_for_a_short_job_or_on_one_core(monkeypatch):
    with Crew(Worker(1), Worker, 1) as crew:
        crew.call("add", 1)
        assert crew._hired is None
    monkeypatch.setattr(crew_module, "_PATIENCE", 0.0)
    monkeypatch.setattr(crew_module, "available_cores", lambda: 1)
    with Crew(Worker(1), Worker, 1) as crew:
        assert crew.call("add", 1) == (2, os.getpid()) and crew._hired == []


def test_what_cannot_be_sent_is_done_here(monkeypatch):
    monkeypatch.setattr(crew_module, "_PATIENCE", 0.0)
    monkeypatch.setattr(crew_module, "available_cores", lambda: 2)
    with Crew(Worker(1), Worker, lambda: 1) as crew:
        assert crew.call("add", 1) == (2, os.getpid()) and crew._hired == []


def test_one_call_at_a_time_is_done_here(monkeypatch):
    """Two threads of one process would wait for the interpreter's lock."""
    monkeypatch.setattr(crew_module, "available_cores", lambda: 1)
    with Crew(Watched(), Watched) as crew, ThreadPoolExecutor(4) as pool:
        assert max(pool.map(lambda _: crew.call("work"), range(16))) == 1


def test_an_error_here_frees_the_place(monkeypatch):
    monkeypatch.setattr(crew_module, "available_cores", lambda: 1)
    with Crew(Worker(1), Worker, 1) as crew:
        for _ in range(2):
            with pytest.raises(LedgerError, match="refused"):
                crew.call("refuse")
        assert crew.call("add", 1) == (2, os.getpid())
