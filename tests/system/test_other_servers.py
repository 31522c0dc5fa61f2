# SPDX-License-Identifier: Apache-2.0
"""Servers that are not Apache's, or are old: a relay before a real server answers as they do. What they lack is found out,
named once, and replaced; the tokens grow all the same."""

import struct
import subprocess

import pytest

import fakezk
import harness
from fakezk import BAD_ARGUMENTS, CREATE, CREATE2, CREATE_CONTAINER, UNIMPLEMENTED, WATCH_OPERATIONS, Lesser
from harness import FAST, FAST_TICK_MS

OPERATORS = True


def zeros(_stat):
    return bytes(fakezk.STAT_BYTES)


def of_the_root(stat):
    """The number of the transaction that made another znode, as its parent."""
    return struct.pack(">q", 1) + stat[8:]


CREATE2_WORD, STAT_WORD, CONTAINER_WORD = "create2", "the Stat of create2", "createContainer"

# name: how the relay behaves, and what the broker finds lacking
SERVERS = {
    # No operation on watches may ever be asked for: half of these servers close the connection at it.
    "refuses containers": (dict(lacks={CREATE_CONTAINER: BAD_ARGUMENTS}), [CONTAINER_WORD]),
    "knows no containers": (dict(lacks={CREATE_CONTAINER: UNIMPLEMENTED}), [CONTAINER_WORD]),
    "closes at containers": (dict(lacks={CREATE_CONTAINER: Lesser.CLOSE}, restores=False), [CONTAINER_WORD]),
    "refuses create2": (dict(lacks={CREATE2: UNIMPLEMENTED, CREATE_CONTAINER: UNIMPLEMENTED}), [CREATE2_WORD, CONTAINER_WORD]),
    "closes at create2": (dict(lacks={CREATE2: Lesser.CLOSE, CREATE_CONTAINER: Lesser.CLOSE}, restores=False),
                          [CREATE2_WORD, CONTAINER_WORD]),
    "never answers create2": (dict(lacks={CREATE2: Lesser.DROP, CREATE_CONTAINER: Lesser.DROP}), [CREATE2_WORD, CONTAINER_WORD]),
    "answers create2 with zeros": (dict(stat=zeros), [STAT_WORD]),
    "answers create2 with another czxid": (dict(stat=of_the_root, lacks={CREATE_CONTAINER: BAD_ARGUMENTS}),
                                           [STAT_WORD, CONTAINER_WORD]),
}


@pytest.fixture
def lesser(own_zk, ending):
    def make(zk=None, **how):
        relay = ending(Lesser(zk or own_zk(tick_ms=FAST_TICK_MS), **how))
        for code in WATCH_OPERATIONS:
            relay.lacks.setdefault(code, Lesser.CLOSE)
        return relay

    return make


def lacks(daemon):
    return daemon.info()["zookeeper_lacks"]


def take_turns(pair, name, words=("LOCK", "UNLOCK"), rounds=3):
    tokens = []
    for _ in range(rounds):
        for c in pair:
            tokens.append(c.call(words[0], name))
            assert c.call(words[1], name) == 0, tokens
    return tokens


def lines_about(daemon, word):
    return [line for line in daemon.log().splitlines() if f" lacks {word} (" in line]


@pytest.mark.parametrize("kind", SERVERS)
def test_two_hosts_contend_and_tokens_grow_over_an_expiry(kind, lesser, daemons, clients):
    how, missing = SERVERS[kind]
    relay = lesser(**how)
    alpha, beta = (daemons(relay, host=host, **FAST) for host in ("alpha", "beta"))
    a, b = clients(alpha), clients(beta)
    tokens = take_turns((a, b), "turns")
    # Both at once: the one that waits has made its znode before the other's goes.
    for _ in range(2):
        tokens.append(a.call("LOCK", "turns"))
        b.send("LOCK", "turns")
        harness.wait_queued(beta, "turns", 1)
        a.call("UNLOCK", "turns")
        tokens.append(b.reply())
        b.call("UNLOCK", "turns")
    # The session of a holder that stands still expires, and a later one of its host is granted more.
    tokens.append(a.call("LOCK", "turns"))
    b.send("LOCK", "turns")
    harness.wait_queued(beta, "turns", 1)
    alpha.kill()
    tokens.append(b.reply())
    b.call("UNLOCK", "turns")
    alpha.start()
    tokens += take_turns((clients(alpha), b), "turns", rounds=1)
    assert tokens == sorted(set(tokens)), tokens
    for daemon in (alpha, beta):
        assert lacks(daemon) == ", ".join(missing)
    for word in missing:
        assert len(lines_about(beta, word)) == 1, beta.log()
    assert not set(relay.asked) & set(WATCH_OPERATIONS)


@pytest.mark.parametrize("kind", ["closes at create2", "answers create2 with zeros"])
def test_elections_and_semaphores_work_there(kind, lesser, daemons, clients):
    relay = lesser(**SERVERS[kind][0])
    pair = [clients(daemons(relay, host=host, **FAST)) for host in ("alpha", "beta")]
    assert pair[0].call("CAMPAIGN", "leader", "DATA", "x") > 0
    assert pair[0].call("RESIGN", "leader") == 1
    for _ in range(2):
        for c in pair:
            assert c.call("ACQUIRE", "permits", "LIMIT", 1) is not None
            c.call("RELEASE", "permits")


def test_check_names_what_a_server_lacks(lesser, daemons, clients):
    relay = lesser(**SERVERS["refuses create2"][0])
    d = daemons(relay, **FAST)
    clients(d).call("LOCK", "a")
    done = subprocess.run([harness.program("lockbroker"), "--socket", d.socket, "check"], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0 and "the server lacks create2, createContainer" in done.stdout, done.stdout


def test_a_server_without_numbers_of_transactions_is_refused(lesser, daemons, clients):
    """Nothing is granted there: no token can be made."""
    relay = lesser(stat=zeros, get_stat=zeros)
    d = daemons(relay, has_session=False, **FAST)
    harness.wait_until(lambda: "tokens are made of this number" in d.info()["trouble"], "the server to be refused")
    for _ in range(5):
        assert not isinstance(clients(d).call("LOCK", "a", "WAIT", 500), int)


def test_a_server_that_is_exchanged_is_found_out(own_zk, lesser, daemons, clients):
    """For one at the same address that can do less, under an open session."""
    relay = lesser(own_zk(tick_ms=FAST_TICK_MS))
    d = daemons(relay, **FAST)
    c = clients(d)
    tokens = take_turns([c], "turns")
    assert lacks(d) == "" and CREATE not in relay.asked
    relay.lacks.update({CREATE2: UNIMPLEMENTED, CREATE_CONTAINER: UNIMPLEMENTED})
    tokens += take_turns([c], "turns") + take_turns([c], "others")
    harness.wait_until(lambda: lacks(d) == "create2, createContainer", "it to be found out")
    assert tokens[:6] == sorted(set(tokens[:6])) and CREATE in relay.asked
