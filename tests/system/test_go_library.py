# SPDX-License-Identifier: Apache-2.0
"""The Go module, client-lib/go, with Go's race detector: its own tests, its page, and what only real brokers can show."""

import itertools
import os
import random
import re
import signal
import subprocess
import threading
import time

import pytest

import go_library
import harness
import pages
from fenced import Fenced
from go_library import Go
from mishaps import stopped
from saved import Saved, wait_process_kept
from tools import need

pytestmark = pytest.mark.plain_only("it is another program's")
OPERATORS = True  # see clients of conftest.py
PAGE = harness.read_source("docs/GO.md")

# Proven for 4 s at a time: what must not be lost is not, however busy the machine is.
SLOW_TICK_MS = 1000
SLOW = {"zookeeper__session_timeout_ms": 6000}


@pytest.fixture(scope="module", autouse=True)
def toolchain():
    why = go_library.missing()
    assert not why or not os.environ.get("NEED_CLIENTS"), why
    if why:
        pytest.skip(why)


@pytest.fixture
def start(daemons):
    """Makes programs of Go; they must end well, too."""
    yield from harness.each_ends(lambda daemon, **options: Go(daemon.socket, **options), Go.end)


def token_of(answer):
    assert re.fullmatch(r"held \d+", answer), answer
    return int(answer.split()[1])


def wait_free(daemon, *names):
    def is_free():
        with daemon.client() as c:
            return all(c.call("HOLDERS", name) == [] and c.call("QUEUE", name) == [] for name in names)

    harness.wait_until(is_free, f"{names} to be free")


def holder(client, name="a"):
    (one,) = client.call("HOLDERS", name)
    return one


# ---- the sources, and the page ----

def test_the_modules_own_tests_pass(standalone):
    done = subprocess.run([os.path.join(go_library.built(), "tests"), "-test.v", f"-test.timeout={harness.PATIENCE * 4}s"],
                          cwd=go_library.MODULE, env=os.environ | {"LOCKBROKER_SOCKET": standalone.socket}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    sources = "".join(harness.read_source(f"client-lib/go/{name}") for name in os.listdir(go_library.MODULE) if name.endswith("_test.go"))
    tests = set(re.findall(r"^func ((?:Test|Example)\w*)\(", sources, re.M)) - {"TestMain"}
    assert set(re.findall(r"^--- PASS: ((?:Test|Example)\w*) ", done.stdout, re.M)) == tests and len(tests) > 40


def test_the_sources_are_formatted_and_vetted():
    for folder in go_library.MODULE, go_library.DRIVER:
        assert not [name for name in os.listdir(folder) if name.endswith(".sum")], "it needs nothing but the standard library"
        formatted = subprocess.run([os.path.join(os.path.dirname(go_library.toolchain()), "gofmt"), "-l", folder], capture_output=True, text=True)
        assert (formatted.stdout, formatted.stderr) == ("", "")
        vetted = go_library.go(go_library.built(), "vet", "-race", ".", cwd=folder)
        assert vetted.returncode == 0, vetted.stderr


def test_it_needs_nothing_but_the_standard_library():
    listed = go_library.go(go_library.built(), "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
    assert listed.stdout.split() == ["lockbroker.invalid/go"], listed.stderr


def squeezed(text):
    """As gofmt would not change it: without the blanks at the beginning of lines and in front of comments."""
    return re.sub(r"[ \t]+", " ", re.sub(r"^[ \t]+", "", text, flags=re.M))


def test_each_example_of_the_page_is_one_that_runs():
    examples = pages.claimed("docs/GO.md", __file__, "go")
    source = squeezed(harness.read_source("client-lib/go/example_test.go"))
    assert len(examples) >= 5
    assert not [example for example in examples if squeezed(example) not in source]


def test_a_program_names_the_copied_folder_as_the_page_says(tmp_path):
    (lines,) = pages.claimed("docs/GO.md", __file__, "text")
    (tmp_path / "go.mod").write_text(f"module example\n\ngo 1.19\n\n{lines}")
    (tmp_path / "third_party").mkdir()
    (tmp_path / "third_party" / "lockbroker").symlink_to(go_library.MODULE)
    (tmp_path / "main.go").write_text('package main\n\nimport _ "lockbroker.invalid/go"\n\nfunc main() {}\n')
    listed = go_library.go(str(tmp_path), "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".", cwd=tmp_path)
    assert listed.returncode == 0 and listed.stdout.split() == ["lockbroker.invalid/go", "example"], listed.stderr


def test_the_tables_of_the_page_are_whole():
    sources = {name: harness.read_source(f"client-lib/go/{name}") for name in os.listdir(go_library.MODULE)
               if name.endswith(".go") and not name.endswith("_test.go")}
    everything = "".join(sources.values())
    errors = set(re.findall(r"^\t(Err\w+) += errors.New", everything, re.M))
    options = set(re.findall(r"^func (\w+)\(.*\) (?:Lock|Open)Option \{", everything, re.M))
    methods = set(re.findall(r"^func \(\w+ \*(?:Client|Held)\) ([A-Z]\w*)\(", everything, re.M))
    rows = set(re.findall(r"`(\w+)", " ".join(re.findall(r"^\| (`.*?) \|", PAGE, re.M))))
    assert rows == errors | options | methods | {"Open"} and len(errors) > 10 and len(methods) > 20


# ---- waiting, trying, ending ----

def test_a_lock_is_waited_for_held_and_released(broker, clients, start):
    c, go = clients(broker), start(broker)
    first = c.call("LOCK", "a")
    assert go.do("x try a").startswith("taken: ") and go.do("x lock a wait=20").startswith("taken: ")
    go.tell("x lock a wait=60000 data=me")
    harness.wait_queued(broker, "a", 1)
    c.call("UNLOCK", "a")
    token = token_of(go.hear("x"))
    assert token > first and go.do("x token") == str(token)
    assert int(go.do("x valid")) > 0 and go.do("x check") == "ok" and go.do("x is") == "lost=false ended=false revoked=false"
    assert (holder(c)["pid"], holder(c)["data"]) == (go.process.pid, "me")
    assert c.call("LOCK", "a", "WAIT", 0) is None
    assert go.do("x unlock") == "ok" and go.do("x unlock").startswith("not held: ")
    assert go.do("x is") == "lost=false ended=true revoked=false"
    assert c.call("LOCK", "a") > token


def test_each_call_has_a_connection_of_its_own(standalone, clients, start):
    """So goroutines exclude each other."""
    c, go = clients(standalone), start(standalone)
    first = token_of(go.do("x lock a"))
    of_x = holder(c)["client"]
    go.tell("y lock a")
    harness.wait_queued(standalone, "a", 1)
    assert go.do("x unlock") == "ok" and token_of(go.hear("y")) > first
    assert holder(c)["client"] != of_x


def test_a_context_that_ends_withdraws_the_request(broker, clients, start):
    c, go = clients(broker), start(broker)
    c.call("LOCK", "a")
    for what in "lock a", "lock a shared", "all a,b", "any a,a2", "campaign e me":
        if what.startswith("campaign"):
            c.call("CAMPAIGN", "e", "DATA", "they")
        name = "e" if what.startswith("campaign") else "a"
        if what.startswith("any"):
            c.call("LOCK", "a2")
        go.tell("x " + what)
        harness.wait_queued(broker, name, 1)
        assert go.do("c cancel x") == "ok"
        assert go.hear("x").startswith("canceled: ")
        harness.wait_queued(broker, name, 0)
    for command in "UNLOCK a", "UNLOCK a2", "RESIGN e":
        c.call(*command.split())
    wait_free(broker, "a", "a2", "b", "e")


def test_a_grant_that_crosses_the_withdrawal_is_released(standalone, clients, start):
    c, go = clients(standalone), start(standalone)
    outcomes = set()
    for i in itertools.count():
        c.call("LOCK", "a")
        go.tell(f"x{i} lock a")
        harness.wait_queued(standalone, "a", 1)
        c.send("UNLOCK", "a")
        time.sleep(random.random() / 2000)  # so that either comes first
        go.tell(f"c cancel x{i}")
        c.reply()
        assert go.hear("c") == "ok"
        answer = go.hear(f"x{i}")
        outcomes.add(answer.split()[0])
        if answer.startswith("held"):
            assert go.do(f"x{i} unlock") == "ok"
        assert outcomes <= {"held", "canceled:"}
        wait_free(standalone, "a")
        if i >= 50 and len(outcomes) == 2:
            break


def test_who_waits_goes_on_waiting_at_the_next_broker(standalone, clients, start):
    go = start(standalone)
    clients(standalone).call("LOCK", "a")
    go.tell("x lock a")
    harness.wait_queued(standalone, "a", 1)
    standalone.kill()
    go.tell("y lock b wait=60000")
    standalone.start()
    token_of(go.hear("x"))
    token_of(go.hear("y"))


def test_outages_are_of_one_kind(daemons, start, tmp_path, clients):
    daemon = daemons(harness.NoZookeeper)
    go = start(daemon, patience_ms=300)
    assert go.do("x try a").startswith("not available: ") and go.do("x lock a wait=1").startswith("not available: ")
    assert go.do("x any a,b wait=1").startswith("not available: ")
    assert go.do(f"x open {tmp_path}/socket").startswith("not available: ")
    clients(daemon).call("DRAIN")
    assert go.do("x lock a").startswith("not available: ")
    with stopped(daemon):
        assert go.do("x lock a wait=0").startswith("not available: ")
    daemon.kill()
    assert go.do("x lock a").startswith("not available: ")
    daemon.expected_exit = -signal.SIGKILL


def test_who_may_not_connect_is_denied(daemons, start, tmp_path):
    daemon = daemons(daemon__socket_mode="0600")
    start(daemon)
    denied = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "--regid", "65534", os.path.join(go_library.built(), "driver")],
                            env=os.environ | {"LOCKBROKER_SOCKET": daemon.socket}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if denied.returncode == 127 or "cannot" in denied.stderr:
        pytest.skip(denied.stderr)
    assert denied.stdout.startswith("main denied: this user may not use lockbrokerd"), denied.stdout + denied.stderr


# ---- losses ----

def test_a_broker_that_is_killed_takes_all_along(standalone, start):
    go = start(standalone)
    held = {"x": "lock a", "y": "lock b shared", "z": "all c,d", "s": "semaphore e 2", "l": "campaign f me"}
    for key, what in held.items():
        token_of(go.do(f"{key} {what}"))
        go.tell(f"{key} lost")
    standalone.kill()
    for key in held:
        assert go.hear(key).startswith("lost connection: ")
        assert go.do(f"{key} valid") == "0" and go.do(f"{key} context").startswith("canceled: ")
        assert go.do(f"{key} unlock").startswith("lost connection: ")
    standalone.start()
    wait_free(standalone, "a", "b", "c", "d", "e")


def test_a_lock_that_is_taken_away_is_lost_however_one_asks(broker, clients, start):
    c, go = clients(broker), start(broker)
    for ask in "lost", "check", "unlock", "renew 1000", "downgrade":
        token_of(go.do("x lock a"))
        assert c.call("FORCEUNLOCK", "a") == 1
        if ask != "unlock":
            assert go.do("x lost").startswith("lost forced: ")
        assert go.do(f"x {ask}").startswith("lost forced: "), ask
        assert go.do("x is") == "lost=true ended=true revoked=false" and go.do("x close") == "ok"


def test_the_proof_runs_out_also_while_the_broker_hangs(own_zk, daemons, start):
    daemon = daemons(own_zk(tick_ms=harness.FAST_TICK_MS), **harness.FAST)
    go = start(daemon)
    token_of(go.do("x lock a"))
    assert 0 < int(go.do("x valid")) < 10000
    with stopped(daemon):
        assert go.do("x lost").startswith("lost session: ")
        assert go.do("x valid") == "0"
    assert go.do("x unlock").startswith("lost session: ")


def test_a_loss_of_the_session_is_told(own_zk, daemons, start):
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    go = start(daemons(zk, **harness.FAST))
    token_of(go.do("x lock a"))
    with stopped(zk):
        assert go.do("x lost").startswith("lost session: ") and go.do("x unlock").startswith("lost session: ")


def test_a_program_that_stood_still_knows_of_its_loss_when_it_asks(standalone, clients, start):
    c, go = clients(standalone), start(standalone)
    token_of(go.do("x lock a"))
    go.process.send_signal(signal.SIGSTOP)
    harness.wait_until(lambda: set(harness.thread_states(go.process.pid)) == {"T"}, "the program to stand still")
    assert c.call("FORCEUNLOCK", "a") == 1
    go.tell("x valid")
    go.process.send_signal(signal.SIGCONT)
    assert go.hear("x") == "0"
    assert go.do("x unlock").startswith("lost forced: ")


def test_where_only_the_socket_is_mounted_the_broker_is_asked(own_zk, daemons, clients, start):
    daemon = daemons(own_zk(tick_ms=harness.FAST_TICK_MS), **harness.FAST)
    under = ["bwrap", "--die-with-parent", "--dev-bind", "/", "/", "--tmpfs", daemon.dir, "--bind", daemon.socket, daemon.socket]
    need(*under, "true")
    c, go = clients(daemon), start(daemon, under=under)
    for what in "lock a", "all a,b", "semaphore s 2", "campaign e me", "any a,b":
        token_of(go.do(f"x {what}"))
        assert 0 < int(go.do("x valid")) <= 2000 and go.do("x check") == go.do("x unlock") == "ok"
    token_of(go.do("x lock a"))
    assert c.call("FORCEUNLOCK", "a") == 1 and go.do("x lost").startswith("lost forced: ")
    token_of(go.do("x lock b"))
    asked = daemon.info("stats")["requests_total"]
    harness.wait_until(lambda: int(daemon.info("stats")["requests_total"]) > int(asked) + 20, "the broker to be asked again and again")
    assert go.do("x check") == "ok"
    with stopped(daemon):
        assert go.do("x lost").startswith("lost ") and go.do("x valid") == "0"
    assert go.do("x unlock").startswith("lost ")


def test_a_lease_ends_and_is_renewed(broker, start):
    go = start(broker)
    token_of(go.do("x lock a lease=60000"))
    assert 0 < int(go.do("x valid")) <= 60000
    assert go.do("x renew 100") == "ok" and go.do("x lost").startswith("lost lease: ")
    token_of(go.do("y lock a"))


@pytest.mark.parametrize("how", ["hand-over", "crash"])
def test_a_hand_over_and_a_crash_that_takes_nothing_are_not_seen(own_zk, daemons, start, how):
    daemon = daemons(own_zk(tick_ms=SLOW_TICK_MS), **SLOW)
    go = start(daemon)
    token = token_of(go.do("x lock a"))
    if how == "crash":
        wait_process_kept(daemon, go.process.pid)
        daemon.crash()
    else:
        harness.wait_until(lambda: any(c[3] == go.process.pid and c[1] for c in Saved(daemon).conns().values()), "the connection to be kept")
        daemon.hand_over()
    assert go.do("x check") == "ok" and go.do("x is") == "lost=false ended=false revoked=false"
    assert go.do("x unlock") == "ok"
    assert token_of(go.do("y lock a")) > token


def test_who_is_asked_to_release_hears_of_it(standalone, clients, start):
    c, go = clients(standalone), start(standalone)
    token_of(go.do("x lock a"))
    go.tell("x revoked")
    assert c.call("REVOKE", "a", "maintenance") == 1
    assert go.hear("x") == "maintenance" and go.do("x check") == "ok" and go.do("x unlock") == "ok"


# ---- more than one ----

def test_readers_share_and_a_writer_does_not(broker, clients, start):
    c, go = clients(broker), start(broker)
    token_of(go.do("x lock a shared"))
    token_of(go.do("y lock a shared wait=60000"))
    assert c.call("LOCK", "a", "WAIT", 0) is None
    assert go.do("x unlock") == go.do("y unlock") == "ok"
    token_of(go.do("x lock a"))
    assert go.do("y try a shared").startswith("taken: ")
    assert go.do("x downgrade") == "ok"
    token_of(go.do("y lock a shared wait=60000"))


def test_several_are_held_together_or_none(broker, clients, start):
    c, go = clients(broker), start(broker)
    c.call("LOCK", "b")
    assert go.do("x all a,b wait=0").startswith("taken: ")
    wait_free(broker, "a")
    c.call("UNLOCK", "b")
    token_of(go.do("x all b,a"))
    tokens = {name: holder(c, name)["token"] for name in "ab"}
    assert go.do("x tokens") == f"map[a:{tokens['a']} b:{tokens['b']}]"
    go.tell("x lost")
    assert c.call("FORCEUNLOCK", "b") == 1
    assert go.hear("x").startswith("lost forced: ") and go.do("x unlock").startswith("lost ")
    wait_free(broker, "a", "b")


def test_permits_are_counted(broker, start):
    go = start(broker)
    assert go.do("x semaphore s 3 count=2") == "held 0"
    assert go.do("y semaphore s 3 count=2 wait=0").startswith("taken: ")
    assert go.do("y semaphore s 4").startswith("mismatch: ")
    go.tell("y semaphore s 3 count=2")
    harness.wait_queued(broker, "s", 1)
    assert go.do("x unlock") == "ok" and go.hear("y") == "held 0" and go.do("y unlock") == "ok"


def test_an_election_has_a_leader_whom_everybody_sees(two_hosts, start):
    one, two = (start(host) for host in two_hosts)
    assert one.do("x leader e") == "nobody"
    first = token_of(one.do("x campaign e me"))
    assert two.do("x leader e") == f"me on alpha with {first}"
    two.tell("o observe e")
    assert two.hear("o") == f"sees me on alpha with {first}"
    two.tell("y campaign e you")
    harness.wait_queued(two_hosts[1], "e", 1)
    assert one.do("x unlock") == "ok"
    second = token_of(two.hear("y"))
    harness.wait_until(lambda: two.hear("o") == f"sees you on beta with {second}", "the next leader")
    assert two.do("c cancel o") == "ok" and two.hear("o").startswith("canceled: ")


def test_the_next_broker_is_observed_and_nobody_told_twice(standalone, clients, start):
    go = start(standalone)
    go.tell("o observe e")
    assert go.hear("o") == "sees nobody"
    standalone.kill()
    standalone.start()
    c = clients(standalone)
    token = c.call("CAMPAIGN", "e", "DATA", "me")
    assert go.hear("o") == f"sees me on {standalone.host} with {token}"
    standalone.kill()
    assert c.ended()
    standalone.start()
    assert go.hear("o") == "sees nobody"


def test_one_of_several_is_the_first_that_is_free(broker, clients, start):
    c, go = clients(broker), start(broker)
    names = ["p1", "p2", "p3"]
    for name in names:
        c.call("LOCK", name)
    assert go.do("x any p1,p2,p3 wait=0").startswith("taken: ")
    go.tell("x any p1,p2,p3")
    for name in names:
        harness.wait_queued(broker, name, 1)
    c.call("UNLOCK", "p2")
    token = token_of(go.hear("x"))
    assert go.do("x name") == "p2" and holder(c, "p2")["token"] == token
    c.call("UNLOCK", "p1")
    c.call("UNLOCK", "p3")
    wait_free(broker, "p1", "p3")
    token_of(go.do("y any p1,p2,p3"))
    token_of(go.do("z any p1,p2,p3"))
    assert {go.do(f"{key} name") for key in "xyz"} == set(names)
    assert go.do("w any p1,p2,p3 wait=100").startswith("taken: ")
    assert {go.do(f"{key} unlock") for key in "xyz"} == {"ok"}
    wait_free(broker, *names)


def test_a_group_that_would_wait_for_itself_gets_a_deadlock(standalone, clients, start):
    go = start(standalone)
    token_of(go.do("x lock a group"))
    assert go.do("y lock a group").startswith("deadlock: ")
    go.tell("z lock a")
    harness.wait_queued(standalone, "a", 1)
    assert go.do("c cancel z") == "ok" and go.hear("z").startswith("canceled: ")


def test_what_the_broker_refuses_is_its_sentence(standalone, clients, start):
    go = start(standalone)
    assert re.fullmatch(r'bad name: .*"\.\."', go.do("x lock .."))
    clients(standalone).call("CAMPAIGN", "e", "DATA", "me")
    assert go.do("x lock e").startswith("mismatch: ")
    assert go.do("x do NONSENSE").startswith("refused: ")
    assert go.do("x do HOLDERS a") == "[]"


# ---- processes ----

def test_what_it_starts_inherits_no_connection(standalone, clients, start):
    go = start(standalone)
    first = token_of(go.do("x lock a"))
    assert go.do("r run find /proc/self/fd -lname socket:*") == 'ok ""'
    go.tell("r run sleep 1000")
    sleeper = harness.wait_until(lambda: children_of(go.process.pid), "the child")[0]
    harness.end(go.process, signal.SIGKILL)
    assert clients(standalone).call("LOCK", "a", "WAIT", 60000) > first and harness.runs(sleeper)
    os.kill(sleeper, signal.SIGKILL)


def children_of(pid):
    """Of any thread of that process, once they run their program."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        found += map(int, harness.read_source(f"/proc/{pid}/task/{task}/children").split())
    return [child for child in found if os.readlink(f"/proc/{child}/exe") != os.readlink(f"/proc/{pid}/exe")]


def test_the_end_of_the_client_releases_all(standalone, clients, start):
    c, go = clients(standalone), start(standalone)
    token_of(go.do("x lock a"))
    go.tell("y lock a")
    harness.wait_queued(standalone, "a", 1)
    assert go.do("c end") == "ok"
    assert go.hear("y").startswith("closed: ") and go.do("z lock b").startswith("closed: ")
    assert c.call("LOCK", "a", "WAIT", 60000) > 0


# ---- beside the others ----

class Others:
    """Who adds 1 to the same resource beside Go, under locks of the C library and of the command, until the end of the block."""

    def __init__(self, resource, hosts, programs, name="a"):
        self.resource, self.name, self.added, self.wrong = resource, name, {"C": 0, "command": 0}, []
        self.over = threading.Event()
        # The programs are started here: what a thread starts ends with that thread, and these have to end well.
        self.threads = [threading.Thread(target=self._guarded, args=each, daemon=True) for host in hosts
                        for each in ((self._library, programs(host.socket)), (self._command, host))]
        for thread in self.threads:
            thread.start()

    def _guarded(self, run, what):
        try:
            run(what)
        except BaseException as e:  # pylint: disable=broad-except
            self.wrong.append(repr(e))
            raise

    def _library(self, program):
        if not program.do("open 0").startswith("OK"):
            raise AssertionError("open")
        while not self.over.is_set():
            answer = program.do(f"lock 0 {self.name}")
            if not answer.startswith("OK"):
                continue  # the broker is away, or says of an earlier loss
            self.added["C"] += self.resource.add(int(answer.split()[1]))
            program.do(f"unlock 0 {self.name}")
        program.do("close 0")

    def _command(self, host):
        command = [harness.program("lockbroker"), "lock", self.name, "--", "/usr/bin/python3", "-B",
                   os.path.join(harness.HERE, "fenced.py"), self.resource.path]
        while not self.over.is_set():
            said = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  env=os.environ | {"LOCKBROKER_SOCKET": host.socket}).stdout
            self.added["command"] += said == "added\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join(harness.PATIENCE)
        assert not self.wrong, self.wrong


def restart(daemon):
    daemon.kill()
    daemon.start()


def counts(answer):
    return dict(zip(("added", "given up", "away"), map(int, re.fullmatch(r"added (\d+) given up (\d+) away (\d+)", answer).groups())))


def test_no_update_is_lost_beside_the_library_and_the_command(own_zk, daemons, root, start, programs, tmp_path):
    """On two hosts with a ZooKeeper; contexts end at random, one daemon is handed over and crashes, the other is killed."""
    zk = own_zk(tick_ms=SLOW_TICK_MS)
    hosts = [daemons(zk, root, host=name, **SLOW) for name in ("alpha", "beta")]
    resource = Fenced(tmp_path / "n", begin=True)
    both = [start(host) for host in hosts]
    with Others(resource, hosts, programs) as others:
        for go in both:
            go.tell(f"race race {resource.path} a 8")
        for trouble in hosts[0].hand_over, lambda: restart(hosts[1]), hosts[0].crash, lambda: None:
            begin = {"all": resource.number() + 20} | others.added
            harness.wait_until(lambda: all(n > begin[who] for who, n in ({"all": resource.number()} | others.added).items()),
                               "some rounds of each")
            trouble()
        for go in both:
            go.do("s stop")
        answers = [counts(go.hear("race")) for go in both]
    assert resource.number() == sum(answer["added"] for answer in answers) + sum(others.added.values())
    assert all(answer["added"] and answer["given up"] for answer in answers), answers
