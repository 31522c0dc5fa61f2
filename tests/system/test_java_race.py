# SPDX-License-Identifier: Apache-2.0
"""The Java library beside everybody else, on one lock: three JVMs with 50 threads each on two hosts, Curator, kazoo, and the C
library. One host's daemon is handed over and killed meanwhile, and threads are interrupted at random."""

import os
import subprocess

import pytest

import harness
import java_library
import library
from peers import BATCH, curator_peer, place  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning:kazoo"), pytest.mark.plain_only("it is another program's")]

NAME = "app/orders"
THREADS, ROUNDS = 50, 3
C_ROUNDS = 60


@pytest.fixture(scope="module")
def counter(tmp_path_factory):
    return library.compile_with_library(os.path.join(harness.SOURCE, "client-lib/examples/counter.c"),
                                        tmp_path_factory.mktemp("counter") / "counter", harness.program("liblockbroker.a"))


def start(argv, daemon):
    return harness.spawn(argv, stdout=subprocess.PIPE, text=True, env=java_library.environment(daemon))


def test_no_update_is_lost_and_tokens_grow_beside_curator_kazoo_and_c(place, counter, tmp_path):
    alpha, beta = (place.daemon("mutex") for _ in range(2))
    curator, kazoo = place.theirs("curator-mutex"), place.theirs("kazoo-in-curators-names")
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "n").write_text("0\n")
    (tmp_path / "token").write_text("0\n")
    assert curator.try_for(20000)  # the directory is made by them
    curator.release()
    folder = java_library.classes()
    race = java_library.command(folder, "JavaRace", NAME, tmp_path, THREADS, ROUNDS)
    jvms = [start(race, daemon) for daemon in (alpha, alpha, beta)]
    c = start([counter, str(tmp_path / "n"), str(C_ROUNDS), NAME], beta)
    old = alpha.pid
    rounds = 0
    faults = [alpha.hand_over, alpha.crash]
    while any(p.poll() is None for p in [*jvms, c]):
        assert curator.rounds(BATCH, inside) == 0 and kazoo.rounds(BATCH, inside) == 0
        rounds += 1
        if faults and rounds % 2 == 0:
            faults.pop(0)()
    assert not faults and alpha.pid != old, "it was over before anything happened"
    said = [p.communicate(timeout=harness.PATIENCE)[0] for p in [*jvms, c]]
    assert [p.returncode for p in [*jvms, c]] == [0] * 4, said
    figures = [[int(word) for word in text.split()] for text in said[:3]]
    assert sum(overlaps for _, overlaps, _, _ in figures) == 0
    assert all(interrupts > 0 for _, _, _, interrupts in figures)
    assert len(said[3].splitlines()) == C_ROUNDS
    assert int((tmp_path / "n").read_text()) == C_ROUNDS + sum(additions for additions, *_ in figures)
    assert sum(additions for additions, *_ in figures) >= 3 * THREADS * ROUNDS * 0.9, figures
    assert not list(inside.iterdir())
