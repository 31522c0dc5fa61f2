"""What the benchmark measures with must itself be right: it counts what was done, and finds out what is no lock."""

import json
import os
import subprocess
import sys

import pytest

import harness

sys.path.insert(0, os.path.join(harness.SOURCE, "tests", "bench"))

import report  # noqa: E402
import services  # noqa: E402


def load(peer, target, processes, names, *more):
    done = subprocess.run([harness.program("tests/bench-load"), "--peer", peer, "--target", target, "--processes",
                           str(processes), "--names", names, "--seconds", "0.2", *more], capture_output=True, text=True,
                          timeout=harness.PATIENCE * 3)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


@pytest.fixture
def null():
    service = services.Null()
    yield service
    service.end()


@pytest.mark.parametrize("peer", ["lockbroker", "library"])
def test_the_broker_under_load(broker, peer):
    for processes, names in ((1, "own"), (4, "own"), (4, "one"), (2, "new")):
        status, figures = load(peer, broker.socket, processes, names)
        assert status == 0 and figures["pairs"] > 0 and figures["overlaps"] == 0
        assert 0 < figures["p50_us"] <= figures["p99_us"] <= figures["p999_us"] <= figures["longest_us"] * 1.02
        assert (figures["hand_offs"] > 0) == (names == "one")
    assert broker.info("locks")["grants"] == "0"


def test_a_lock_that_is_held_for_a_while_is_held_by_one(two_hosts):
    status, figures = load("library", two_hosts[0].socket, 6, "one", "--target", two_hosts[1].socket, "--hold", "2000")
    assert status == 0 and figures["overlaps"] == 0 and figures["pairs"] > 1


def test_shares_of_hosts_are_told_apart(two_hosts):
    status, figures = load("lockbroker", two_hosts[0].socket, 4, "one", "--target", two_hosts[1].socket)
    assert status == 0 and len(figures["by_target"]) == 2 and sum(figures["by_target"]) == figures["pairs"]


def test_the_null_broker_is_a_lock_in_the_order_of_asking(null):
    for more in ([], ["--order"]):
        status, figures = load("null", null.target, 8, "one", *more)
        assert status == 0 and figures["overlaps"] == 0 and figures["hand_offs"] > 0
    assert figures["overtaken"] <= 8


def test_what_is_no_lock_is_found_out(zk):
    status, figures = load("create", zk.address, 4, "one", "--hold", "5000")
    assert status == 1 and figures["overlaps"] > 0


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
