# SPDX-License-Identifier: Apache-2.0
"""One name as several kinds at once: exactly one kind is granted, and no mistake keeps those out who are right."""

import itertools
import os

import pytest

import harness

RACES = int(os.environ.get("LOCKBROKER_RACES", "24"))
SOON = 20000  # milliseconds: a wait that is expected to end well before
ASKS = {
    "LOCK": lambda name: ["LOCK", name, "WAIT", SOON],
    "ACQUIRE": lambda name: ["ACQUIRE", name, "LIMIT", 2, "WAIT", SOON],
    "CAMPAIGN": lambda name: ["CAMPAIGN", name, "DATA", "x", "WAIT", SOON],
}
ENDS = {"LOCK": "UNLOCK", "ACQUIRE": "RELEASE", "CAMPAIGN": "RESIGN"}


def race(peers, name, kinds):
    """The kind that was granted."""
    for peer, kind in zip(peers, kinds):
        peer.send(*ASKS[kind](name))
    replies = [peer.reply() for peer in peers]
    granted = [i for i, reply in enumerate(replies) if not isinstance(reply, harness.Error)]
    assert len(granted) == 1 and replies[granted[0]] is not None, (name, kinds, replies)
    assert all(reply.code == "MISMATCH" for i, reply in enumerate(replies) if i not in granted), (name, kinds, replies)
    winner = granted[0]
    wrong = peers[1 - winner].call(*ASKS[kinds[1 - winner]](name))
    assert wrong.code == "MISMATCH", (name, kinds, wrong)
    peers[winner].call(ENDS[kinds[winner]], name)
    return kinds[winner]


def races(peers):
    pairs = itertools.cycle(itertools.permutations(ASKS, 2))
    return {race(peers, f"race-{i}", next(pairs)) for i in range(RACES)}


def test_of_two_kinds_at_once_one_is_granted(broker, clients):
    assert len(races([clients(broker), clients(broker)])) > 1


def test_of_two_kinds_on_two_hosts_one_is_granted(two_hosts, clients):
    assert len(races([clients(daemon) for daemon in two_hosts])) > 1


@pytest.mark.parametrize("mistake", ["LOCK", "CAMPAIGN"])
def test_mistakes_refuse_no_permit_that_is_free(two_hosts, clients, mistake):
    """The other host has only ever been asked for the name by mistake."""
    one, two = two_hosts
    holder, wrong, right = clients(one), clients(two), clients(two)
    assert holder.call("ACQUIRE", "s", "LIMIT", 2) == 1
    for _ in range(RACES):
        wrong.send(*ASKS[mistake]("s"))
        right.send(*ASKS["ACQUIRE"]("s"))
        assert wrong.reply().code == "MISMATCH"
        assert right.reply() == 1
        assert right.call("RELEASE", "s") == 0


def test_a_mistake_refuses_no_lock(two_hosts, clients):
    one, two = two_hosts
    holder, wrong, right = clients(one), clients(two), clients(two)
    assert holder.call("LOCK", "a", "SHARED")
    for _ in range(RACES):
        wrong.send(*ASKS["ACQUIRE"]("a"))
        right.send("LOCK", "a", "SHARED", "WAIT", SOON)
        assert wrong.reply().code == "MISMATCH"
        assert not isinstance(right.reply(), harness.Error)
        assert right.call("UNLOCK", "a") == 0
