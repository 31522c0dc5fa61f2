# SPDX-License-Identifier: Apache-2.0
"""The Python library's observe(): who leads an election, now and with each change, for threads and asyncio."""

import asyncio
import contextlib
import socket

import pytest

import harness
from mishaps import kill_and_start
from parallel import in_thread
from python_library import crash, lockbroker, program, run, until
from lockbroker._choice import Choice
from lockbroker._observe import _Observation
from lockbroker._request import request

aio = lockbroker.aio


def connections(daemon):
    return int(daemon.info("clients")["connected_clients"])


def until_led_by(leaders, data):
    """What was told until then: with changes in between or without."""
    told = [next(leaders)]
    while told[-1] is None or told[-1].data != data:
        told.append(next(leaders))
    return told


def test_who_leads_and_each_change(here, clients):
    c = clients(here)
    leaders = lockbroker.observe("e")
    assert next(leaders) is None, "nobody leads, and that is known"
    first = c.call("CAMPAIGN", "e", "DATA", "one")
    assert next(leaders) == lockbroker.Leader(here.host, "one", first) == lockbroker.leader("e")
    late = lockbroker.observe("e")
    assert next(late).data == "one"
    assert c.call("RESIGN", "e") == 1
    assert next(leaders) is None and next(late) is None
    assert c.call("CAMPAIGN", "e", "DATA", "two") > first
    assert next(leaders).data == "two"
    leaders.close()
    late.close()


def test_tasks_are_told(here, clients):
    c = clients(here)

    async def main():
        async with contextlib.AsyncExitStack() as stack:
            leaders = aio.observe("e")
            stack.push_async_callback(leaders.aclose)
            assert await leaders.__anext__() is None
            told = asyncio.ensure_future(leaders.__anext__())
            assert not (await asyncio.wait([told], timeout=0.05))[0]
            token = c.call("CAMPAIGN", "e", "DATA", "one")
            assert await told == lockbroker.Leader(here.host, "one", token)

    run(main())


def test_of_another_host(daemons, zk, root):
    one, two = daemons(zk, root), daemons(zk, root)
    leaders = lockbroker.observe("e", socket=one.socket)
    with lockbroker.election("e", "of two", socket=two.socket) as held:
        told = until_led_by(leaders, "of two")[-1]
        assert (told.host, told.token) == (two.host, held.token)
    assert next(leaders) is None
    leaders.close()


def test_who_stops_leaves_no_connection(alone):
    before = connections(alone)
    for leader in lockbroker.observe("e"):
        assert leader is None
        break
    harness.wait_until(lambda: connections(alone) == before, "the connection to end")

    async def main():
        leaders = aio.observe("e")
        assert await leaders.__anext__() is None
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(leaders.__anext__(), 0.01)  # which cancels it
        await until(lambda: connections(alone) == before, "the connection to end")

    run(main())


def test_what_is_no_election(here, clients):
    clients(here).call("LOCK", "a")
    with pytest.raises(lockbroker.Mismatch):
        next(lockbroker.observe("a"))
    with pytest.raises(lockbroker.BadName):
        next(lockbroker.observe(".."))
    with pytest.raises(TypeError):
        lockbroker.observe(b"e")


def test_what_turns_out_to_be_no_election(daemons, zk, root, clients):
    """Another host knows; this one is told by ZooKeeper."""
    one, two = daemons(zk, root), daemons(zk, root)
    clients(two).call("LOCK", "a")
    with pytest.raises(lockbroker.Mismatch):
        for _ in lockbroker.observe("a", socket=one.socket):
            pass


def test_the_next_broker_is_observed_and_nobody_told_twice(alone, clients):
    leaders = lockbroker.observe("e")
    first = clients(alone).call("CAMPAIGN", "e", "DATA", "one")
    assert until_led_by(leaders, "one")[-1].token == first
    kill_and_start(alone)
    assert next(leaders) is None
    assert clients(alone).call("CAMPAIGN", "e", "DATA", "two") > first
    assert next(leaders).data == "two"
    leaders.close()


def test_a_leader_of_another_host_is_not_told_again_by_the_next_broker(daemons, zk, root):
    one, two = daemons(zk, root), daemons(zk, root)
    leaders = lockbroker.observe("e", socket=one.socket)
    with lockbroker.election("e", "of two", socket=two.socket):
        until_led_by(leaders, "of two")
        kill_and_start(one)
        told = in_thread(next, leaders)
        with one.client() as c:
            harness.wait_until(lambda: " cmd=observe " in c.call("CLIENT", "LIST"), "the observer to be back")
            harness.wait_until(lambda: isinstance(leader := c.call("LEADER", "e"), dict) and leader["data"] == "of two",
                               "its broker to know who leads")
    assert told() is None
    leaders.close()


def test_a_hand_over_is_not_seen(daemons, zk, root, clients):
    daemon = daemons(zk, root)
    c = clients(daemon)
    leaders = lockbroker.observe("e", socket=daemon.socket)
    c.call("CAMPAIGN", "e", "DATA", "one")
    until_led_by(leaders, "one")
    daemon.hand_over()
    assert c.call("RESIGN", "e") == 1
    assert next(leaders) is None
    leaders.close()


def test_a_crash_is_not_seen(daemons, zk, root):
    daemon = daemons(zk, root)
    leaders = lockbroker.observe("e", socket=daemon.socket)
    with lockbroker.election("e", "one", socket=daemon.socket) as held:
        assert until_led_by(leaders, "one")[-1].token == held.token
        crash(daemon)
        assert held.valid() > 0
    assert next(leaders) is None, "the leader is not told again"
    leaders.close()


def test_a_broker_that_does_not_come_back(alone):
    leaders = lockbroker.observe("e", patience=1)
    assert next(leaders) is None
    alone.kill()
    with pytest.raises(lockbroker.NoBroker):
        next(leaders)
    with pytest.raises(StopIteration):
        next(leaders)
    alone.start()


def test_a_forked_child_does_not_observe(alone):
    p = program(alone, """
        import lockbroker, os
        leaders = lockbroker.observe("e")
        print(next(leaders), flush=True)
        later = lockbroker.observe("e")
        if os.fork() == 0:
            assert next(later) is next(lockbroker.observe("e")) is None, "it observes for itself"
            try:
                next(leaders)
            except lockbroker.NotOwner as e:
                print("child")
            os._exit(0)
        os.wait()
        with lockbroker.election("e", "me"):
            print(next(leaders).data)
    """)
    assert p.communicate(timeout=harness.PATIENCE)[0] == "None\nchild\nme\n"
    assert p.returncode == 0


def event(token, data):
    return b">5\r\n$6\r\nleader\r\n$1\r\ne\r\n:%d\r\n$3\r\nweb\r\n$%d\r\n%s\r\n" % (token, len(data), data)


@pytest.mark.parametrize("answer", ["+OK", ":1", "*1\r\n:1", "%1\r\n+host\r\n+h"])
def test_an_answer_that_names_no_leader_is_no_broker_s(tmp_path, answer):
    path = str(tmp_path / "s")
    with socket.create_server(path, family=socket.AF_UNIX) as listener:

        def serve():
            with listener.accept()[0] as peer:
                peer.sendall(b"%0\r\n" + answer.encode() + b"\r\n")
                while peer.recv(4096):
                    pass

        served = in_thread(serve)
        with pytest.raises(lockbroker.ProtocolError):
            lockbroker.leader("e", socket=path)
        served()


@pytest.mark.parametrize("event", ["0", "1\r\n*0", "1\r\n+granted", "2\r\n+granted\r\n+e", "3\r\n+failed\r\n+e\r\n:1",
                                   "2\r\n+leader\r\n+e", "2\r\n%0\r\n%0", "4\r\n+lost\r\n*0\r\n_\r\n_"])
def test_an_event_of_another_shape_is_none(event):
    for grant in (_Observation(request("election", ["e"], "/nowhere")), Choice(request("any", ["e", "f"], "/nowhere"))):
        grant.feed(f">{event}\r\n".encode())
        assert not grant.ended and not grant.news.done


def test_of_what_nobody_has_taken_the_last_counts():
    """And the end of the connection comes after it."""
    seen = _Observation(request("election", ["e"], "/nowhere"))
    seen.feed(event(1, b"one") + event(2, b"two"))
    assert seen.take()[4] == "two" and not seen.news.done
    seen.feed(event(3, b"three"))
    seen.feed(b"")
    assert seen.take()[4] == "three" and seen.news.done
    assert seen.take() is lockbroker._grant.ENDED and seen.news.done
