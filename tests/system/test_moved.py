# SPDX-License-Identifier: Apache-2.0
"""Servers that move to other addresses, names that cannot be looked up for a while, and connections that are made anew."""

import pytest

import fakezk
import harness
from harness import FAST_TICK_MS, ROOMY
from library import compile_shim

# zk.moves.test is at the address that a file names; while the file has the word "hang", the look-up hangs. Each look-up adds a
# byte to another file when it begins.
NAMES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_address(char *address, size_t size)
{
	int fd = open(getenv("NAMES_AT"), O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, address, size - 1) : 0;

	address[len > 0 ? len : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
	char address[64];
	int fd;

	if (!node || strcmp(node, "zk.moves.test") != 0 || (hints && hints->ai_flags & AI_NUMERICHOST))
		return next(node, service, hints, ret);
	fd = open(getenv("NAMES_ASKED"), O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd >= 0 && write(fd, "x", 1) == 1)
		close(fd);
	for (read_address(address, sizeof(address)); strcmp(address, "hang") == 0; read_address(address, sizeof(address)))
		usleep(10000); /* a file that changes wakes nobody */
	return *address ? next(address, service, hints, ret) : EAI_NONAME;
}
"""

ADDRESSES = ["127.0.0.2", "127.0.0.3"]


class Names:
    def __init__(self, tmp_path):
        self.at, self.asked = tmp_path / "at", tmp_path / "asked"
        self.asked.touch()
        self.env = {"LD_PRELOAD": compile_shim(NAMES, tmp_path), "NAMES_AT": str(self.at), "NAMES_ASKED": str(self.asked)}

    def point(self, address):
        new = self.at.with_suffix(".new")
        new.write_text(address)
        new.rename(self.at)

    def count(self):
        return self.asked.stat().st_size


@pytest.fixture
def names(tmp_path):
    return Names(tmp_path)


@pytest.fixture
def gates(ending):
    return lambda *args, **options: ending(fakezk.Gate(*args, **options))


def start(daemons, gate, names, **options):
    return daemons(gate, zookeeper__servers=f"zk.moves.test:{gate.port_of}", zookeeper__session_timeout_ms=6000, env=names.env,
                   **options)


@pytest.mark.plain_only("a sanitizer wants to be the first library")
def test_a_server_that_moves_is_found_before_a_lock_is_lost(own_zk, gates, names, daemons, clients):
    zk = own_zk(tick_ms=FAST_TICK_MS)
    old = gates(zk.port, host=ADDRESSES[0])
    names.point(ADDRESSES[0])
    d = start(daemons, old, names)
    c = clients(d)
    token, asked = c.call("LOCK", "a", "WAIT", 20000), names.count()
    new = gates(zk.port, host=ADDRESSES[1], at=old.port_of)
    old.end()
    harness.wait_until(lambda: names.count() > asked, "the first look-up")
    names.point(ADDRESSES[1])
    harness.wait_until(lambda: new.seen and d.info()["zookeeper_state"] == "connected", "the server at its new address")
    assert d.info()["sessions_lost_total"] == "0"
    assert c.call("VALID", "a", "TOKEN", token) > 0


@pytest.mark.plain_only("a sanitizer wants to be the first library")
def test_a_look_up_that_hangs_keeps_no_farewell_waiting(own_zk, gates, names, daemons, kazoo_client):
    """The connection is back at the old address while the look-up hangs. At its end the daemon ends its session all the same."""
    zk = own_zk(tick_ms=FAST_TICK_MS)
    gate = gates(zk.port, host=ADDRESSES[0])
    names.point(ADDRESSES[0])
    d = start(daemons, gate, names)
    asked, k = names.count(), kazoo_client(zk)
    names.point("hang")
    gate.shut()
    harness.wait_until(lambda: names.count() > asked, "the look-up")
    gate.is_open = True
    harness.wait_until(lambda: len(gate.seen) > 1 and d.info()["zookeeper_state"] == "connected", "the connection")
    assert k.exists(f"/t/.hosts/{d.host}")
    assert d.terminate() == 0
    assert not k.exists(f"/t/.hosts/{d.host}")
    assert d.log().splitlines()[-1].endswith("event=stopped")


@pytest.mark.parametrize("how", ["cut", "silent"])
def test_a_server_that_served_is_not_called_unreachable(own_zk, gates, daemons, how):
    """Its connection ends, or the daemon itself ends it because nothing was answered; the next one works."""
    zk = own_zk(tick_ms=FAST_TICK_MS)
    gate = gates(zk.port)
    d = daemons(gate, zookeeper__tick_ms=FAST_TICK_MS, **ROOMY)
    seen = len(gate.seen)
    if how == "cut":
        gate.cut()
    else:
        gate.hold()
    harness.wait_until(lambda: len(gate.seen) > seen and d.info()["zookeeper_state"] == "connected", "another connection")
    assert "cannot be reached" not in d.log()
    assert int(d.info()["suspensions_total"]) == 1
