# SPDX-License-Identifier: Apache-2.0
"""What the benchmark measures with must itself be right: it counts what was done, and finds out what is no lock."""

import contextlib
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
import time

import pytest

import harness
import pages

sys.path.insert(0, os.path.join(harness.SOURCE, "tests", "bench"))

import bench  # noqa: E402
import costs  # noqa: E402
import crowd  # noqa: E402
import fleet_table  # noqa: E402
import legs  # noqa: E402
import lines  # noqa: E402
import logged  # noqa: E402
import measure  # noqa: E402
import profile  # noqa: E402
import report  # noqa: E402
import scenarios  # noqa: E402
import services  # noqa: E402
import slow  # noqa: E402
import takeover  # noqa: E402
import targets  # noqa: E402
import ways  # noqa: E402

pytestmark = pytest.mark.plain_only("it is about measurements")


def load(peer, target, processes, names, *more, enough=lambda figures: figures["pairs"] > 0):
    """For longer when that shows too little: on a busy machine a fifth of a second is soon over."""
    for seconds in ("0.2", "3", "15"):
        status, figures = load_once(peer, target, processes, names, seconds, *more)
        if not isinstance(figures, dict) or enough(figures):
            break
    return status, figures


def handed_on(figures):
    return figures["hand_offs"] > 0


def excludes(status, figures):
    """No two had the lock at once, and one had it after another."""
    return status == 0 and figures["overlaps"] == 0 and figures["hand_offs"] > 0


def load_once(peer, target, processes, names, seconds, *more):
    done = harness.run([harness.program("tests/bench-load"), "--peer", peer, "--target", target, "--processes",
                        str(processes), "--names", names, "--seconds", seconds, *more], timeout=harness.PATIENCE * 3)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


@contextlib.contextmanager
def unless_missing():
    """A program that a test needs may not be installed, or may not start."""
    try:
        yield
    except services.Missing as e:
        pytest.skip(str(e))


class Run:
    """Stands for a run of the benchmark: there is nothing to complain of."""

    def complain(self, complaint):
        assert not complaint


@pytest.fixture
def null():
    service = services.Null()
    yield service
    service.end()


@pytest.mark.parametrize("peer", ["lockbroker", "library"])
def test_the_broker_under_load(broker, peer):
    for processes, names in ((1, "own"), (4, "own"), (4, "one"), (2, "new")):
        status, figures = load(peer, broker.socket, processes, names,
                               **({"enough": handed_on} if names == "one" else {}))
        assert status == 0 and figures["pairs"] > 0 and figures["overlaps"] == 0
        assert 0 < figures["p50_us"] <= figures["p99_us"] <= figures["p999_us"] <= figures["longest_us"] * 1.02
        assert (figures["hand_offs"] > 0) == (names == "one")
    assert broker.info("locks")["grants"] == "0"


def test_a_lock_that_is_held_for_a_while_is_held_by_one(two_hosts):
    status, figures = load("library", two_hosts[0].socket, 6, "one", "--target", two_hosts[1].socket, "--hold", "2000",
                           enough=lambda figures: figures["pairs"] > 1)
    assert status == 0 and figures["overlaps"] == 0 and figures["pairs"] > 1


def test_shares_of_hosts_are_told_apart(two_hosts):
    status, figures = load("lockbroker", two_hosts[0].socket, 4, "one", "--target", two_hosts[1].socket)
    assert status == 0 and len(figures["by_target"]) == 2 and sum(figures["by_target"]) == figures["pairs"]


def test_the_null_broker_is_a_lock_in_the_order_of_asking(null):
    for more in ([], ["--order"]):
        status, figures = load("null", null.target, 8, "one", *more, enough=handed_on)
        assert excludes(status, figures)
    assert figures["overtaken"] <= 8


@pytest.mark.parametrize("peer", ["library", "flock", "mutex"])
def test_pairs_are_counted_without_times(broker, tmp_path, peer):
    target = broker.socket if peer == "library" else str(tmp_path)
    status, figures = load(peer, target, 2, "own", "--bare")
    assert status == 0 and sum(figures["by_target"]) == figures["pairs"] and figures["p50_us"] == 0


@pytest.mark.parametrize("peer", ["library", "flock"])
def test_readers_of_one_lock_have_it_together(broker, tmp_path, peer):
    target = broker.socket if peer == "library" else str(tmp_path)
    status, figures = load(peer, target, 4, "one", "--shared", "--hold", "20000", enough=lambda figures: figures["readers"] > 1)
    assert status == 0 and 1 < figures["readers"] <= 4
    status, figures = load(peer, target, 4, "one", "--shared", "--bare")
    assert status == 0 and sum(figures["by_target"]) == figures["pairs"] and figures["p50_us"] == 0


def test_pairs_without_times_are_counted_one_by_one_where_they_take_long(broker):
    status, figures = load("library", broker.socket, 2, "own", "--bare", enough=lambda figures: figures["pairs"] % 64)
    assert status == 0 and figures["pairs"] % 64 > 0


def test_the_time_of_pairs_without_times_begins_when_all_have_had_their_lock(broker):
    """The first lock may take longer than the load: here the readers wait until a writer unlocks."""
    prefix = f"first-{os.getpid()}"
    argv = [harness.program("tests/bench-load"), "--peer", "library", "--target", broker.socket, "--processes", "2", "--names",
            "one", "--shared", "--bare", "--warm", "0.2", "--seconds", "0.1", "--prefix", prefix]
    with broker.client() as writer:
        writer.call("LOCK", f"bench-{prefix}-one")
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            harness.wait_queued(broker, f"bench-{prefix}-one", 2)
            with broker.client() as another:  # for longer than the load is
                assert another.call("LOCK", f"bench-{prefix}-one", "WAIT", 500) is None
            writer.call("UNLOCK", f"bench-{prefix}-one")
            figures = json.loads(process.stdout.read())
        assert process.returncode == 0 and figures["pairs"] > 0


def test_a_row_that_was_too_slow_for_a_single_pair_is_told_too():
    run, results = Run(), report.Results()
    run.rounds, run.seconds, run.results = 1, 1, results
    run.rows = [measure.Row(targets.LIBRARY, "library", []), measure.Row(targets.DELEGATED, "library", [])]
    for row, pairs_s in zip(run.rows, (0, 500)):
        row.measure = lambda *_, pairs_s=pairs_s, **__: {"pairs_s": pairs_s}
    scenarios.bare(run)
    assert results.get("bare", targets.READERS, targets.LIBRARY, "pairs_s") == 0
    assert results.get("bare", targets.READERS, targets.DELEGATED, "pair_ns") > 0
    assert any("32 readers" in what for what, *_ in targets.tell(results))
    assert targets.LIBRARY in report.section_table(results, "bare", {"pairs_s": ("pairs/s", 0), "pair_ns": ("ns", 0)})


def test_a_short_round_judges_counts_and_no_times():
    results = report.Results()
    results.add("idle", "10000", targets.PLAIN, {"bytes_per_client": 1e6})
    for row in (targets.PLAIN, targets.NULL):
        results.add("pinned", "1 process", row, {"pairs_s": 1})
    for judges, of_time in ((False, "not judged"), (True, "met")):
        verdicts = {what: verdict for what, _, _, verdict in targets.tell(results, judges)}
        assert verdicts[f"1: one process, pinned, {targets.PLAIN} / null"] == of_time
        assert verdicts["7: bytes for an idle client, of 10,000"] == "NOT MET"


class NoRoom(threading.Thread):
    """Grants and releases one lock at a time, and ends a connection that asks for many."""

    def __init__(self):
        super().__init__(daemon=True)
        self.dir = harness.fast_tmp("no-room.")
        for directory in (os.environ["LOCKBROKER_RUN"], self.dir):
            os.chmod(directory, os.stat(directory).st_mode | 0o011)
        self.path = os.path.join(self.dir, "socket")
        self.listener = socket.create_server(self.path, family=socket.AF_UNIX)
        os.chmod(self.path, 0o666)
        self.start()

    def run(self):
        client, _ = self.listener.accept()
        while b"MLOCK" not in (asked := client.recv(65536)) and asked:
            client.send(b":1\r\n")
        client.send(b"-LIMIT there is no room\r\n")
        client.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two other users")
@pytest.mark.parametrize("who, status", [("app", 0), ("users", 1)])
def test_a_connection_that_ones_own_user_has_cost_is_no_failure(who, status):
    done = harness.run([harness.program("tests/bench-neighbours"), NoRoom().path, "spin", "1", "1", "60", who],
                       timeout=harness.PATIENCE * 3)
    assert done.returncode == status and "there is no room" in done.stderr
    if not status:
        found = json.loads(done.stdout)
        assert found["refused"] > 1 and found["lost"] == 0


@pytest.mark.parametrize("more", [["one", "--bare"], ["new", "--bare", "--shared"]])
def test_a_load_that_would_prove_nothing_is_refused(tmp_path, more):
    status, usage = load("flock", str(tmp_path), 2, *more)
    assert status == 64 and "--shared" in usage


def test_a_peer_without_readers_is_not_measured_with_them(null):
    status, usage = load("null", null.target, 2, "own", "--shared")
    assert status == 64 and "--shared" in usage


def test_a_mutex_in_memory_is_a_lock(tmp_path):
    assert excludes(*load("mutex", str(tmp_path), 4, "one", "--hold", "1000", enough=handed_on))


@pytest.mark.parametrize("more", [[], ["--delegation"], ["--held"], ["--delegation", "--held"]])
def test_a_lock_that_was_had_often_is_taken_by_another_process(broker, more):
    figures = measure.run([harness.program("tests/bench-taken"), "--target", broker.socket, "--rounds", "5", *more], False)
    assert figures["rounds"] == 5 and 0 < figures["p50_us"] <= figures["p99_us"]
    assert broker.info("locks")["grants"] == "0"


def test_what_is_no_lock_is_found_out(zk):
    status, figures = load("create", zk.address, 4, "one", "--hold", "5000", enough=lambda figures: figures["overlaps"])
    assert status == 1 and figures["overlaps"] > 0


@pytest.mark.parametrize("peer", ["recipe", "relay"])
def test_the_recipe_is_a_lock_as_it_is_and_behind_a_socket(zk, peer):
    assert excludes(*load(peer, zk.address, 4, "one", "--hold", "2000"))


def test_the_processes_of_a_load_are_those_that_they_have_forked_too(zk):
    seen = []
    row = measure.Row("", "relay", [zk.address])
    row.measure(2, "one", 0.5, during=lambda load: seen.extend(harness.wait_until(
        lambda: len(found := costs.workers(load)) == 4 and found, "four processes")))
    assert len(set(seen)) == 4
    harness.wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in seen), "them to end with the load")


def test_a_service_that_is_not_there_fails_the_load(tmp_path):
    status, complaint = load("lockbroker", str(tmp_path / "none"), 2, "own")
    assert status == 1 and "No such file" in complaint


def test_figures_are_told_as_medians_with_their_spread():
    results = report.Results()
    for value in (90, 100, 130):
        results.add("free", "1 process", "null broker", {"pairs_s": value, "by_target": [1]})
    results.add("free", "1 process", "lockbroker", {"pairs_s": 50})
    table = report.main_table(results, "free", ["1 process"], "null broker").splitlines()
    assert table[1].split() == ["null", "broker", "100", "±20%", "1.00"]
    assert table[2].split() == ["lockbroker", "50", "0.50"]


def test_a_reconnection_is_measured_until_all_is_found_again():
    figures = slow.reconnect(Run(), slow.network.Network(), 20, 50, 200000)
    assert figures["found_s"] >= figures["proven_ms"] / 1000 > 0
    assert figures["megabytes"] > 0 and figures["drops"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a daemon a journal")
def test_holds_reach_the_journal_of_the_daemon_that_logs_them_and_of_no_other():
    run, failures = Run(), []
    run.failed = failures.append
    daemons = {"lockbroker": {row: logged.Logging(grants) for row, grants in ((targets.LOGGED, 1), (targets.NOT_LOGGED, 0))}}
    try:
        logged.check(run, daemons)
        assert failures == [f"{targets.LOGGED}: the journal has 0 holds"], "nothing was held yet"
        found = when_it_is_fast_enough(lambda seconds: logged.turn(daemons, "32 processes", seconds * 0.1))
        failures.clear()
        harness.wait_until(lambda: daemons["lockbroker"][targets.LOGGED].journal.holds, "a line of a hold")
        logged.check(run, daemons)
        assert not failures
        assert all(figures["cpu_us"] > 0 and figures["pairs_s"] > 0 for figures in found.values())
        assert found[targets.LOGGED]["of_off"] == found[targets.LOGGED]["cpu_us"] / found[targets.NOT_LOGGED]["cpu_us"]
    finally:
        assert [daemon.end() for daemon in daemons["lockbroker"].values()] == [None, None]


def test_the_bytes_of_a_turn_are_counted_in_steps():
    """The recipe lists at the hand-off; a host that knows that it is second does not."""
    net, listed = crowd.network.Network(), 50 * crowd.queues.NAME_BYTES
    ours, recipe = (crowd.turn(Run(), net, host, 50) for host in (crowd.Ours, crowd.Recipe))
    assert ours["join_bytes"] > listed and recipe["join_bytes"] > listed
    assert ours["next_bytes"] > listed > ours["hand_off_bytes"]
    assert recipe["hand_off_bytes"] > listed > recipe["next_bytes"]


# ---- the ways ----

class Echo(threading.Thread):
    """Serves one connection: it answers with what it is sent, until that ends."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        with self.listener, self.listener.accept()[0] as client:
            while data := client.recv(65536):
                client.sendall(data)


def answer(client, data):
    """All that comes back, and after how many seconds the first byte came."""
    began = time.monotonic()
    sending = threading.Thread(target=client.sendall, args=(data,))
    sending.start()
    found = client.recv(65536)
    took = time.monotonic() - began
    while len(found) < len(data):
        found += client.recv(65536)
    sending.join()
    return found, took


def test_a_way_delivers_everything_in_order_and_not_too_early():
    way_us, data = 20000, os.urandom(1 << 20)
    way = services.Way(Echo().port, way_us)
    try:
        with socket.create_connection(("127.0.0.1", way.port)) as client:
            for sent in (b"x", data):
                found, took = answer(client, sent)
                assert found == sent and took >= 2 * way_us / 1e6
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
        delivered = way.delivered()
        assert delivered["pieces"] > 2 and way_us * 0.98 <= delivered["p50_us"] <= delivered["p99_us"]
        assert way.delivered()["pieces"] == 0
    finally:
        way.end()


def test_a_round_counts_if_its_way_was_right():
    assert [ways.counts(1000, us) for us in (999, 1000, 1070, 1071)] == [False, True, True, False]


def test_hosts_that_are_some_way_off_hand_a_lock_on(zk):
    run, way_us = Run(), 2000
    run.results = report.Results()
    for kind, *where in ((ways.Hosts, targets.RECIPE), (ways.Ours, run, "lockbroker")):
        hosts = kind(*where, zk.port, 2, way_us)
        try:
            figures = hosts.measure(4 * way_us)
            assert figures["overlaps"] == 0
            if figures["hand_offs"]:  # on a busy machine a second may not be enough
                assert figures["hand_off_us"] >= 2 * way_us * 0.98  # from host to server to host
        finally:
            hosts.end()


class Notes:
    """What a scenario adds to the results of a run."""

    def __init__(self, rounds=1):
        self.results, self.rounds, self.failures = report.Results(), rounds, []
        self.failed = self.failures.append


@pytest.fixture
def tc(tmp_path, monkeypatch):
    """Writes what `tc` does instead."""
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        pytest.skip("no network of its own can be made here")
    program = tmp_path / "tc"
    program.touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return lambda does: program.write_text(f"#!/bin/sh\n{does}\n")


def test_a_row_is_measured_in_a_network_of_its_own(tc):
    """All rounds are measured, and none counts, because nothing was delayed."""
    tc("exit 0")
    run = Notes(rounds=2)
    ways.by_netem(run, 2, 20000)
    assert not run.failures
    told = sorted(note.split(", ")[1] for note in run.results.notes)
    assert told == ["ZooKeeper recipe in C"] * 2 + ["lockbroker"] * 2, run.results.notes
    assert all("a round does not count" in note for note in run.results.notes)


def test_without_netem_the_row_is_left_out_and_a_note_says_why(tc):
    tc("echo 'Error: Specified qdisc kind is unknown.' >&2; exit 2")
    run = Notes()
    ways.by_netem(run, 2, 1000)
    assert not run.failures
    assert run.results.notes == ["ways, 2 x 1, 1 ms each way, held 4 ms, netem: left out, tc: Error: Specified qdisc kind is unknown."]


def test_etcds_lock_service_is_a_lock():
    with unless_missing():
        server = services.Etcd()
    try:
        assert excludes(*load("etcd", server.target, 4, "one", "--hold", "2000", enough=handed_on))
    finally:
        server.end()


# ---- the takeover ----

def holder(peer, target, seconds=0):
    return [*takeover.python(peer), target, f"takeover-{os.getpid()}", str(seconds)]


def take_over(case, peer, target, seconds=0, **more):
    argv = holder(peer, target, seconds)
    return takeover.turn(case, argv, argv, bound_s=0, **more)


def test_the_lock_of_a_killed_holder_passes_on(broker):
    assert take_over(takeover.PROCESS, "lockbroker", broker.socket, limit_s=harness.PATIENCE)["takeover_ms"] > 0


def test_a_stopped_holder_keeps_its_lock_and_goes_on_alone(broker):
    assert take_over(takeover.STOPPED, "lockbroker", broker.socket, limit_s=0.3) == {"kept_s": 0.3, "holders": 1}


def test_a_lease_that_is_shorter_than_the_work_has_two_holders(broker):
    figures = take_over(takeover.LONGER, "lockbroker-lease", broker.socket, 2, limit_s=harness.PATIENCE)
    assert figures["takeover_ms"] > 0 and figures["holders"] == 2


def test_a_holder_that_checks_before_each_step_ends_with_its_lease(broker):
    working = takeover.Holder(holder("lockbroker-checks", broker.socket, 2))
    try:
        working.ask()
        with pytest.raises(measure.Failed, match="Lost"):
            working.says("never")
    finally:
        working.end()


def test_a_follower_that_does_not_wait_is_found_out():
    def is_found_out():
        """On a busy machine it may be late, as if it had waited."""
        try:
            take_over(takeover.PROCESS, "none", "", limit_s=harness.PATIENCE)
        except measure.Failed as e:
            assert "did not wait" in str(e)
            return True
        return False

    harness.wait_until(is_found_out, "somebody to notice")


def test_a_dead_host_acknowledges_nothing():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with harness.spawn(["/usr/bin/python3", "-c", "import socket, sys; s = socket.create_connection(('127.0.0.1', "
                            f"{listener.getsockname()[1]})); sys.stdin.read()"], stdin=subprocess.PIPE) as process:
            server, _ = listener.accept()
            with server:
                takeover.deafen(process.pid)
                server.sendall(b"are you there?")
                harness.wait_until(lambda: server.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[2], "a retransmission")
                process.kill()


# ---- the fleet ----

def fleet_load(daemons, locks, seconds):
    done = harness.run([harness.program("tests/bench-fleet"), str(locks), "0.1", seconds, *[d.socket for d in daemons]],
                       timeout=harness.PATIENCE * 3)
    begun, figures = done.stdout.splitlines() or ["", "{}"]
    return done.returncode, begun, json.loads(figures), done.stderr


def test_hosts_hand_locks_on_and_each_has_its_share(two_hosts):
    for seconds in ("0.3", "3", "15"):  # until that is long enough on a busy machine
        status, begun, figures, _ = fleet_load([*two_hosts, *two_hosts], 1, seconds)
        assert status == 0 and begun == "begin" and figures["overlaps"] == 0
        if min(figures["by_target"]) > 1:
            break
    assert figures["hand_offs"] > 0 and min(figures["by_target"]) > 1 and sum(figures["by_target"]) == figures["pairs"]
    assert 0 < figures["p50_us"] <= figures["p99_us"] <= figures["longest_us"] * 1.02


def test_hosts_that_share_no_lock_are_found_out():
    """Each of two daemons without a ZooKeeper grants the lock for itself."""
    daemons = [services.Lockbroker(), services.Lockbroker()]
    try:
        status, _, figures, _ = fleet_load(daemons, 1, "0.3")
        assert status == 1 and figures["overlaps"] > 0
    finally:
        assert [daemon.end() for daemon in daemons] == [None, None]


def test_a_host_that_is_not_there_fails_the_load(broker, tmp_path):
    class Nobody:
        socket = str(tmp_path / "none")

    status, _, figures, complaint = fleet_load([broker, Nobody], 1, "0.3")
    assert status == 1 and not figures and "No such file" in complaint


def test_each_run_of_a_fleet_is_a_column_of_the_table(tmp_path):
    """Fewer hosts first; a figure that a run does not have is a dash, and one that failed is said."""
    about = {"locks": 8, "timeout_ms": 15000, "seconds": 20, "machine": "m", "at": "t", "version": "v"}
    for hosts, failures in ((200, ["no"]), (20, [])):
        (tmp_path / f"{hosts}.json").write_text(json.dumps(about | {
            "hosts": hosts, "failures": failures, "figures": {
                "hand-offs": {"hand_offs_s": hosts * 10}, "questions": {"who_in": 61} if failures else {}}}))
    lines = fleet_table.table(str(tmp_path)).splitlines()
    assert lines[0] == "|  | 20 hosts | 200 hosts |"
    assert "| hand-offs a second | 200 | 2,000 |" in lines and "| `hosts`: s; packets to the server | - | - |" in lines
    assert any(line.startswith("| `who`") and line.endswith(" | - | -; 61 |") for line in lines)
    assert [line.endswith("FAILED") for line in lines[-2:]] == [False, True]


# ---- the profile ----

def null_row(null):
    return measure.Row("null broker", "null", [null.target], null.pids)


def when_it_is_fast_enough(measure_for):
    """What measure_for(seconds) returns: a load may end, on a busy machine, before it was looked at."""
    for seconds in (1, 5):
        try:
            return measure_for(seconds)
        except costs.TooSlow:
            pass
    return measure_for(20)


def counted(pairs):
    if not pairs:
        raise costs.TooSlow("not a pair in its time")
    return pairs


def test_all_time_of_the_cores_is_somebodys(null):
    cpus = os.sched_getaffinity(0)
    if not costs.usage(null.pids):
        pytest.skip("this kernel does not count for how long a process ran, and waited")

    def look(seconds):
        window = costs.Window({"service": null.pids}, cpus, seconds * 0.3)
        pairs_s = null_row(null).measure(2, "one", seconds, warm=0.5, during=window)["pairs_s"]
        return window.figures(counted(pairs_s)), pairs_s

    found, pairs_s = when_it_is_fast_enough(look)
    parts = [found[f"{program}_{way}_us"] for program in ("service", "load") for way in ("user", "system")]
    assert all(part >= 0 for part in parts) and sum(parts) > 0
    assert sum([*parts, found["others_us"], found["idle_us"]]) == pytest.approx(len(cpus) * 1e6 / pairs_s)
    assert found["service_waits"] > 0 and found["load_waits"] > 0
    assert found["runs"] + found["queued"] + found["sleeps"] == pytest.approx(100)


def test_system_calls_are_those_of_the_service_while_it_is_watched(null, tmp_path):
    def count(seconds):
        strace = costs.Strace(null.pids, str(tmp_path))
        pairs = null_row(null).measure(1, "own", seconds / 3, warm=0)["pairs"]
        counts = strace.finish()
        return counted(pairs), counts

    with unless_missing():
        services.found("strace")
        pairs, counts = when_it_is_fast_enough(count)
    assert null_row(null).measure(1, "own", 0.1)["pairs"] > 0, "it goes on afterwards"
    assert counts["accept4"] in (1, 2)  # on a busy machine it is only now that it finds who asked whether it serves
    for name in ("recvfrom", "sendto", "epoll_wait"):
        assert 2 * pairs <= counts[name] <= 2 * pairs + 10


def test_instructions_are_those_of_the_load(tmp_path):
    with unless_missing():  # a sanitized program does not start under it
        services.found("valgrind")
        null = services.Null(under=costs.callgrind(str(tmp_path)))

    def count(seconds):
        null_row(null).measure(1, "own", 0.2)
        costs.dump(str(tmp_path), null.pids[0])
        pairs = null_row(null).measure(1, "own", seconds / 3, warm=0)["pairs"]
        path = costs.dump(str(tmp_path), null.pids[0])
        return counted(pairs), costs.instructions(path, inclusive=False), costs.instructions(path, inclusive=True)

    try:
        with unless_missing():  # callgrind_control or callgrind_annotate
            pairs, (total, own), (_, inclusive) = when_it_is_fast_enough(count)
    finally:
        null.end()
    assert 300 * pairs < total < 5000 * pairs + 1000000
    assert 10 * pairs < own["ready"] < total
    assert inclusive["ready"] >= own["ready"]


# Measured (59, 55), and four more: which classes of the histograms count is chance, and compilers differ.
LINES_MAX = {"standalone": 63, "ZooKeeper": 59}


@pytest.mark.parametrize("run", lines.RUNS)
def test_a_warm_pair_stores_to_few_lines(run):
    """The ledger's and all others. What is new in a pair belongs beside what a pair writes anyway (make lines)."""
    with unless_missing():
        services.found("valgrind")
        with lines.RUNS[run]() as daemon, lines.warm_pair(daemon) as pair:
            found = lines.listing(daemon, pair)
    owners = {whose.split(":")[0] for whose in found}
    assert {"broker", "lock", "client", "grant", "conn", "account", "saved"} <= owners, "it tells whose the lines are"
    assert len(pair.stores) <= LINES_MAX[run], sorted((len(at), whose) for whose, at in found.items())


@pytest.mark.parametrize("peer", legs.LEGS)
def test_the_legs_of_a_hand_off_are_told(peer):
    found = legs.legs(peer, 2, seconds=2, warm_s=0.1)
    assert found
    assert {len(each) for each in found} == {len(legs.LEGS[peer])}
    assert all(leg > 0 for each in found for leg in each)


def test_samples_are_told_by_whose_code_they_are():
    def part(*frames):
        return costs.part_of([(name, path) for name, path in frames])

    def kernel(*names):
        return part(*[(name, "[kernel.kallsyms]") for name in names])
    assert kernel("finish_task_switch.isra.0", "__schedule", "schedule", "unix_stream_read_generic",
                  "__x64_sys_recvfrom", "do_syscall_64") == "kernel: goes to sleep, wakes up"
    assert kernel("finish_task_switch.isra.0", "__schedule", "schedule", "exit_to_user_mode_loop",
                  "do_syscall_64") == "kernel: preempted"
    assert kernel("_raw_spin_unlock_irqrestore", "sock_def_readable", "unix_stream_sendmsg", "__x64_sys_sendto",
                  "do_syscall_64") == "kernel: wakes others up"
    assert kernel("__alloc_skb", "unix_stream_sendmsg", "__x64_sys_sendto", "do_syscall_64") == "kernel: sendto"
    assert kernel("do_syscall_64", "entry_SYSCALL_64_after_hwframe") == "kernel: entry and exit"
    assert part(("ready", "/somewhere/bench-null")) == "own code"
    assert part(("malloc", "/usr/lib/x86_64-linux-gnu/libc.so.6")) == part(("clock_gettime", "[vdso]")) == "libc"
    assert part(("[unknown]", "/usr/lib/libevent_core-2.1.so.7.0.1")) == "libevent"


@pytest.mark.release_only("it makes a whole profile")
def test_a_profile_says_what_keeps_each_row_from_its_aim_and_what_it_could_not_ask(tmp_path):
    for tool in ("perf", "strace"):
        (tmp_path / tool).write_text(f"#!/bin/sh\necho '{tool}: not allowed' >&2\nexit 1\n")
        (tmp_path / tool).chmod(0o755)
    done = subprocess.run(["/usr/bin/python3", "-B", os.path.join(harness.SOURCE, "tests", "bench", "profile.py"),
                           "--quick", "--build", harness.build_dir(), "--seconds", "0.3", "--results", str(tmp_path),
                           *[w for part in ("account", "samples", "calls") for w in ("--only", part)]],
                          env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True,
                          timeout=harness.PATIENCE * 6)
    assert done.returncode == 0, done.stderr
    told = (tmp_path / "profile.txt").read_text()
    assert told in done.stdout and "FAILED" not in told
    changes = told[told.index("One lock, where the kernel puts processes"):told.index("What keeps a row from its aim")]
    for row in ("lockbroker, ZooKeeper", "lockbroker, ZooKeeper, its server on one core"):  # too slow on a busy machine
        assert re.search(rf" {row.split(', ')[-1]} +[-\d.]+ +\d", changes) or f"Note: {row}, 32, one lock: left out" in told
    limits = told[told.index("What keeps a row from its aim"):]
    for row in ("standalone", "ZooKeeper", "library"):
        assert row in limits
    for what, tool in (("What the cores do", "perf"), ("System calls", "strace")):
        assert any(line.startswith(f"Note: {what}") and f"left out, {tool}: {tool}: not allowed" in line
                   for line in told.splitlines())


# ---- what the pages say is typed in ----


def test_the_commands_of_the_pages_have_options_and_scenarios_that_exist():
    """They measure for minutes, so nothing but their options is tried."""
    parsers = {"tests/bench/bench.py": bench.options(), "tests/bench/profile.py": profile.options()}
    lines = [line for page in ("docs/NEIGHBOURS.md", "docs/SIZING.md", "tests/bench/README.md") for block in pages.blocks(page)
             if block.reason for line in block.text.splitlines()]
    quoted = [line for page in ("docs/PERFORMANCE.md", "docs/SIZING.md", "tests/bench/README.md")
              for line in re.findall(r"`(?:/usr/bin/)?(python3 tests/bench/bench\.py [^`]*)`", harness.read_source(page).replace("\n", " "))]
    parsed = 0
    for line in lines + quoted:
        words = [word for word in shlex.split(line, comments=True) if "=" not in word or word.startswith("-")]
        if words[0] == "make":
            assert f"\n{words[1]}:" in harness.read_source("Makefile")
            continue
        assert os.path.exists(os.path.join(harness.SOURCE, words[1])), line
        if words[1] in parsers:
            parsers[words[1]].parse_args(words[2:])
            parsed += 1
    assert len(lines) > 10 and len(quoted) >= 2 and parsed > 10
