# SPDX-License-Identifier: Apache-2.0
"""The library when its daemon was killed and another process goes on with its connection: the session page has moved. The
daemon of these tests is one of their own (fakebroker.py)."""

import os
import signal
import subprocess
import time

import pytest

import harness
from fakebroker import FOREVER, JEOPARDY, LOST, SAFE, Broker, Page, soon
from library import token_of


@pytest.fixture
def pages(tmp_path):
    first, second = Page(tmp_path / "first"), Page(tmp_path / "second")
    first.write(SAFE, soon(60))
    second.write(SAFE, soon(3600))
    return first, second


@pytest.fixture
def broker(pages, tmp_path, ending):
    made = ending(Broker(tmp_path / "socket", pages[0]))
    yield made
    assert made.requests.count("HELLO 3") <= 1, "nobody connects anew"


@pytest.fixture
def holder(broker, programs):
    """A program that holds the lock a."""
    p = programs(broker.socket).open()
    assert p.do("lock 0 a") == "OK 7"
    return p


def valid_ms(program):
    return token_of(program.do("valid 0 a"))


def follows(program):
    """It has the second page."""
    harness.wait_until(lambda: valid_ms(program) > 60000, "the page that is written now")


def move(broker, pages):
    pages[0].freeze()
    broker.page = pages[1]


def test_it_counts_until_its_safe_until_and_the_next_one_is_asked_for_once(pages, broker, holder):
    assert 50000 < valid_ms(holder) <= 60000
    broker.serves.clear()
    move(broker, pages)
    for _ in range(3):
        assert 50000 < valid_ms(holder) <= 60000, "nobody waits for the answer"
    broker.seen("HELLO")
    broker.serves.set()
    follows(holder)
    assert broker.requests == ["HELLO 3", "LOCK a REENTER", "HELLO"]
    pages[1].write(JEOPARDY, soon(30))
    assert 20000 < valid_ms(holder) <= 30000
    pages[1].write(LOST, 0, epoch=1)
    assert valid_ms(holder) == 0


def test_what_was_granted_in_an_earlier_session_is_void_on_the_next_page(pages, broker, holder):
    pages[1].write(SAFE, soon(3600), epoch=1)
    move(broker, pages)
    valid_ms(holder)
    harness.wait_until(lambda: valid_ms(holder) == 0, "the page that is written now")
    assert holder.do("unlock 0 a") == "OK 0"
    assert holder.do("lock 0 a") == "OK 7" and valid_ms(holder) > 60000


def test_when_all_that_it_proved_has_run_out_the_daemon_is_asked(pages, broker, holder):
    """A program that looks only now and then."""
    pages[0].write(SAFE, soon(-1))
    assert valid_ms(holder) == 0, "nobody says yet that there is another page"
    move(broker, pages)
    assert holder.do("valid 0 a") == "OK 5"
    assert broker.requests[-2:] == ["HELLO", "VALID a"]
    assert valid_ms(holder) > 60000
    assert holder.do("valid 0 b") == "OK 0" and broker.requests[-1] == "VALID a"


def test_a_request_brings_the_next_page_with_it(pages, broker, holder):
    move(broker, pages)
    assert holder.do("command 0 PING") == "'PONG'"
    assert broker.requests[-2:] == ["HELLO", "PING"]
    assert valid_ms(holder) > 60000


def test_answers_that_nobody_waits_for_are_told_apart(pages, broker, holder):
    """Unlocks before and after the question, and one of them fails."""
    for name in "bcd":
        assert holder.do(f"lock 0 {name}") == "OK 7"
    broker.serves.clear()
    assert holder.do("unlock 0 b") == "OK 0"
    move(broker, pages)
    assert 50000 < valid_ms(holder) <= 60000
    broker.answers["UNLOCK"] = "-LOST it is void"
    assert holder.do("unlock 0 c") == "OK 0"
    broker.serves.set()
    follows(holder)
    assert [r for r in broker.requests if r.startswith(("UNLOCK", "HELLO"))] == [
        "HELLO 3", "UNLOCK b LAZY", "HELLO", "UNLOCK c LAZY"]
    assert holder.do("lock 0 e") == "LOST Unlocking b: it is void"


def test_what_is_granted_after_the_crash_has_the_next_pages_session(pages, broker, holder):
    """The request was on its way when the daemon was killed: the library did not know yet that the page would move."""
    pages[1].write(SAFE, soon(3600), epoch=1)
    broker.serves.clear()
    holder.tell("lock 0 b")
    broker.seen("LOCK b REENTER")
    move(broker, pages)
    broker.serves.set()
    assert holder.hear() == "OK 7"
    assert holder.do("valid 0 b") == "OK 5", "the page that it knows says nothing of it"
    assert token_of(holder.do("valid 0 b")) > 60000


def test_a_page_that_was_half_written_proves_what_it_said_before(pages, broker, holder):
    assert 50000 < valid_ms(holder) <= 60000
    pages[0].tear()
    assert 50000 < valid_ms(holder) <= 60000
    assert holder.do("lock 0 b") == "OK 7"
    assert holder.do("valid 0 b") == "OK 5", "its session is not known"
    move(broker, pages)
    follows(holder)
    assert token_of(holder.do("valid 0 b")) > 60000


def test_a_page_that_cannot_be_found_is_done_without(pages, broker, holder):
    move(broker, pages)
    os.unlink(pages[1].path)
    valid_ms(holder)
    harness.wait_until(lambda: holder.do("valid 0 a") == "OK 5", "the daemon's own answer")
    assert broker.requests[-1] == "VALID a"


def test_it_moves_again(pages, broker, holder, tmp_path):
    move(broker, pages)
    follows(holder)
    third = Page(tmp_path / "third")
    third.write(SAFE, FOREVER)
    pages[1].freeze()
    broker.page = third
    harness.wait_until(lambda: valid_ms(holder) > 10 ** 9, "the third page")


def test_who_has_an_older_page_when_the_connection_ends_has_none(pages, broker, holder):
    """Nothing that the old one says counts on the next connection."""
    move(broker, pages)
    broker.answers["PING"] = "*-7"
    assert holder.do("command 0 PING").startswith("CONNECTION ")
    assert holder.do("valid 0 a").startswith("CONNECTION ")
    assert holder.do("event 0 0").startswith("LOST a 7 ")


# ---- the command ----


def run_under(broker, *argv):
    return harness.spawn([harness.program("lockbroker"), "-S", broker.socket, "lock", "a", "--", *argv],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ready(broker):
    """A command that runs, until it has got a line, which it prints."""
    p = run_under(broker, "sh", "-c", "echo ready; read line; echo $line")
    assert p.stdout.readline() == "ready\n"
    return p


def goes_on(p):
    out, err = p.communicate("done\n", timeout=harness.PATIENCE)
    assert (p.returncode, out, err) == (0, "done\n", "")


def test_a_command_goes_on_under_the_next_page(pages, broker):
    pages[0].write(SAFE, soon(10))  # before the command looks: it looks again when that is nearly over
    p = ready(broker)
    # The command may print before its number is told, and what has no answer yet keeps the page from being asked for.
    harness.wait_until(lambda: any(x.startswith("CLIENT SETINFO CHILD") for x in broker.answered), "the command's number")
    broker.serves.clear()
    move(broker, pages)
    broker.seen("HELLO")
    broker.serves.set()
    time.sleep(10)  # what the earlier page proves runs out, which only time does
    goes_on(p)
    assert broker.requests.count("HELLO") == 1


def test_a_command_that_was_stopped_while_the_proof_ran_out_goes_on(pages, broker):
    p = ready(broker)
    p.send_signal(signal.SIGSTOP)
    pages[0].write(SAFE, soon(-1))
    move(broker, pages)
    p.send_signal(signal.SIGCONT)
    broker.seen("HELLO")
    goes_on(p)


@pytest.mark.parametrize("what", ["nobody answers", "the session is another"])
def test_a_command_ends_when_nothing_proves_its_lock(pages, broker, what):
    p = run_under(broker, "sleep", "100")
    broker.seen("CLIENT SETINFO CHILD " + str(harness.wait_until(lambda: harness.children(p.pid), "the command")[0]))
    if what == "nobody answers":
        broker.serves.clear()
    else:
        pages[1].write(SAFE, soon(3600), epoch=1)
    pages[0].write(SAFE, soon(1))
    move(broker, pages)
    _, err = p.communicate(timeout=harness.PATIENCE)
    assert p.returncode == 79 and "there is no longer proof that it is held. Ending sleep." in err


def test_a_command_asks_the_broker_when_the_next_page_cannot_be_found(pages, broker):
    broker.answers["VALID"] = ":5000"
    p = ready(broker)
    pages[0].write(SAFE, soon(5))
    move(broker, pages)
    os.unlink(pages[1].path)
    broker.seen("VALID a")
    time.sleep(5)  # what the page proved runs out, which only time does
    goes_on(p)
