# SPDX-License-Identifier: Apache-2.0
"""The keeper: the main process of the service, which keeps descriptors, starts the process that serves (the worker), and
starts it again when it crashes."""

import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import harness
from harness import PATIENCE, install, logged
from saved import Saved, wait_kept


def status(pid, key):
    return re.search(rf"^{key}:\s*(.*)$", harness.read_source(f"/proc/{pid}/status"), re.M).group(1)


def session_of(pid):
    return int(harness.stat(f"/proc/{pid}/stat")[3])


# ---- the worker ends ----


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_worker_that_crashes_is_started_again(daemons, clients, number):
    kinds = ("segv", "abort")
    d = daemons(env={"ASAN_OPTIONS": ":".join(f"handle_{kind}=0" for kind in kinds)})
    main = d.process.pid
    old = d.crash(number)
    assert logged(d, f"error: the worker (process {old}) was killed by signal {int(number)} (")
    assert d.process.poll() is None and d.process.pid == main
    assert isinstance(clients(d).call("LOCK", "a"), int)
    assert d.terminate() == 0


def test_its_exit_status_is_that_of_the_service(daemons, secret):
    d = daemons(zookeeper__auth_file=secret)
    secret.chmod(0o644)
    for _ in range(2):
        d.crash()
    os.kill(d.pid, signal.SIGKILL)
    assert d.process.wait(PATIENCE) == 2, "the next one reads it, and cannot serve"


@pytest.mark.parametrize("text", ["[locks]\nlinger_ms = soon\n", "[zookeeper]\nhost = another\n"])
def test_a_crash_does_not_read_the_configuration(daemons, clients, locked, conf, text):
    """Nobody has asked for that: it may be half edited, or mean a restart that costs all locks."""
    conf.write_text("[locks]\nhandoff_max = 7\n")
    d = daemons(argv=["-c", str(conf)])
    conf.write_text("[locks]\nhandoff_max = 8\n")
    d.signal(signal.SIGHUP)
    harness.wait_until(lambda: logged(d, "the configuration was read again"), "the reload")
    c, token = locked(d)
    for what in (text, ""):
        wait_kept(Saved(d), c)
        conf.write_text(what)
        d.crash()
        assert not logged(d, "the configuration is not used")
        assert c.call("VALID", "a", "TOKEN", token) > 0
    assert isinstance(clients(d).call("LOCK", "b"), int)


def test_an_error_in_the_configuration_does_not_end_a_service_that_crashes_again_and_again(daemons, clients, conf):
    """The third crash may be the fault of what was kept, so the file is read then."""
    d = daemons(argv=["-c", str(conf)])
    conf.write_text("[locks]\nlinger_ms = soon\n")
    for _ in range(3):
        d.crash()
    assert logged(d, f"error: the configuration is not used: {conf}:2: ")
    assert isinstance(clients(d).call("LOCK", "a"), int)
    d.signal(signal.SIGHUP)
    harness.wait_until(lambda: logged(d, "the configuration is not changed"), "the file to be read")


def test_a_stop_that_only_the_worker_is_told_ends_the_service(daemons):
    d = daemons()
    os.kill(d.pid, signal.SIGTERM)
    assert d.process.wait(PATIENCE) == 0


def test_a_stop_that_all_processes_are_told_is_one(daemons, locked):
    """By a service manager that signals all of a service, as KillMode=control-group has it."""
    d = daemons(daemon__stop_timeout_ms=60000)
    c, _ = locked(d)
    for pid in (d.pid, d.process.pid):
        os.kill(pid, signal.SIGTERM)
    harness.wait_until(lambda: logged(d, "stopping already"), "both")
    d.stopping = True
    assert c.call("UNLOCK", "a") == 0
    assert d.process.wait(PATIENCE) == 0


def test_one_that_crashes_while_it_stops_is_followed_by_one_that_stops(daemons, locked):
    d = daemons(daemon__stop_timeout_ms=60000)
    c, _ = locked(d)
    d.signal(signal.SIGTERM)
    assert c.push()[0] == "revoke"
    d.signal(signal.SIGKILL)
    harness.wait_until(lambda: len(logged(d, "received a signal (Terminated): stopping")) == 2, "the next one to be told")
    c.close()
    assert d.process.wait(PATIENCE) == 0


def test_sockets_that_somebody_has_removed_are_made_anew_after_a_crash(daemons, clients):
    """A worker that is killed after it has stopped leaves none, either."""
    d = daemons()
    clients(d).call("LOCK", "a")
    for path in (d.socket, d.operator_socket):
        os.unlink(path)
    os.kill(d.pid, signal.SIGKILL)
    harness.wait_until(lambda: os.path.exists(d.socket) and os.path.exists(d.operator_socket), "the sockets")
    assert isinstance(clients(d).call("LOCK", "b"), int)
    assert "another lockbrokerd" not in d.log()


def title(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read().rstrip(b"\0").decode()


def test_the_processes_have_titles(daemons, fresh):
    """In their words, not in their names. The short path has hardly room for them."""
    for d in (daemons(), fresh()):
        words = " ".join(d.command()[1:])
        for times in range(3):
            harness.wait_until(lambda d=d: title(d.pid).startswith("lockbrokerd: worker"), "the title")
            assert (title(d.process.pid), title(d.pid)) == (f"lockbrokerd: keeper {words}", f"lockbrokerd: worker {words}")
            assert {status(pid, "Name") for pid in (d.process.pid, d.pid)} == {"lockbrokerd"}
            if times == 0:
                d.crash()
            elif times == 1:
                d.hand_over()


def test_without_a_keeper_the_words_stay(daemons):
    d = daemons(daemon__keeper=0)
    assert title(d.pid).replace("\0", " ") == " ".join(d.command())


def test_a_title_is_longer_than_the_words(tmp_path):
    """As the shell starts a program with a short name. The environment, which is behind the words, is still needed."""
    place = tmp_path / "d"
    place.symlink_to(harness.program("lockbrokerd"))
    d = harness.Daemon(wait=False)
    conf = tmp_path / "c"
    conf.write_text("".join(f"[{k.split('.')[0]}]\n{k.split('.')[1]} = {v}\n" for k, v in d.options.items()))
    d.command = lambda: ["sh", "-c", 'PATH="$PWD:$PATH"; exec d --standalone --foreground -c c']
    try:
        d.start(cwd=str(tmp_path))
        harness.wait_until(lambda: title(d.pid).startswith("lockbrokerd: worker"), "the title")
        assert title(d.process.pid) == "lockbrokerd: keeper --standalone --foreground -c c"
        assert title(d.pid) == "lockbrokerd: worker --standalone --foreground -c c"
        assert d.terminate() == 0
    finally:
        assert d.end() is None


def test_a_start_waits_for_a_worker_that_is_still_ending(daemons, clients):
    """The keeper was killed, and its worker comes to its end later than the next start."""
    d = daemons()
    clients(d).call("LOCK", "a")
    old, keeper = d.pid, d.process
    os.kill(old, signal.SIGSTOP)
    harness.end(keeper, signal.SIGKILL)
    d.spawn()
    harness.wait_until(lambda: logged(d, "has ended, and its worker has not ended yet: waiting for its end"), "the start to wait")
    os.kill(old, signal.SIGCONT)
    d.wait_ready()
    assert not harness.runs(old) and not logged(d, "cannot_start")
    assert clients(d).call("LOCK", "a") > 0


def test_the_keeper_has_a_holder_a_second_after_its_grant(daemons, clients):
    """And not two: a look at an earlier event, like that at which the client came, puts the next one off by a second."""
    d = daemons()

    def kept_after():
        c = clients(d)
        c.call("PING")
        time.sleep(0.05)  # so that there is a look before: nobody is told of it
        c.call("LOCK", str(c.fileno()))
        granted = time.monotonic()
        wait_kept(Saved(d), c)
        return time.monotonic() - granted

    harness.wait_until(lambda: kept_after() < 1.7, "it to be in time, as it is unless the machine is busy")


def test_after_five_crashes_within_a_minute_the_next_worker_comes_after_a_pause(daemons):
    d = daemons()
    for times in range(1, 5):
        d.crash()
        anew = logged(d, f"crashed {times} times within a minute: another one starts without their state")
        assert len(anew) == (times >= 3)
    for pause_s in 1, 2:
        before = time.monotonic()
        d.crash()
        assert time.monotonic() - before >= pause_s
        assert len(logged(d, f"the worker crashes again and again: another one starts in {pause_s} s, without the state of the earlier")) == 1
        assert d.answers()


@pytest.mark.plain_only("it is about time")
def test_a_stop_does_not_wait_for_the_pause_after_crashes(daemons):
    d = daemons()
    for _ in range(7):
        d.crash()
    os.kill(d.pid, signal.SIGKILL)
    harness.wait_until(lambda: logged(d, "another one starts in 8 s"), "the pause")
    began = time.monotonic()
    d.process.terminate()
    assert d.process.wait(PATIENCE) == 0
    assert time.monotonic() - began < 8


def test_a_worker_that_hangs_is_ended_and_started_again(daemons):
    d = daemons(env={"WATCHDOG_USEC": "300000"}, zookeeper__session_timeout_ms=100, zookeeper__tick_ms=10)
    old = d.pid
    assert d.answers()  # whoever has served has said that it lives; before that it has a minute
    d.signal(signal.SIGSTOP)
    d.await_another(old)
    assert logged(d, f"the worker (process {old}) has not said for too long that it lives: it hangs, and is ended")
    assert logged(d, f"the worker (process {old}) was killed by signal 6 (Aborted")


@pytest.mark.parametrize("other", ["#!/bin/sh\nexit 1\n", None], ids=["another", "none"])
def test_a_worker_that_crashes_is_followed_by_the_same_program_whatever_is_installed(fresh, locked, other):
    """An upgrade has put another program at its place, and has not asked for a hand-over yet: that one need not understand
    what this one has left."""
    d = fresh()
    c, token = locked(d)
    install(d, other or "")
    if not other:
        os.unlink(d.program)
    for _ in "12":
        wait_kept(Saved(d), c)
        d.crash()
        assert c.call("VALID", "a", "TOKEN", token) > 0
        assert status(d.pid, "Name") == "lockbrokerd"
    install(d)
    d.hand_over()
    harness.wait_until(lambda: runs_from(d.process.pid) == runs_from(d.pid) == d.program, "the keeper to run it")
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0


@pytest.fixture
def outdated(fresh, locked, tmp_path):
    """Its keeper could not run the program of the worker: what was installed while that began cannot run. The daemon, a
    client that has a lock, and the token."""

    def make(mode=0o755):
        d = fresh()
        c, token = locked(d)
        real, bad = tmp_path / "real", tmp_path / "bad"
        shutil.copy2(harness.program("lockbrokerd"), real)
        bad.write_text("nothing that can run")
        bad.chmod(mode)
        install(d, f'#!/bin/sh\nmv {bad} {d.program}\nexec {real} "$@"\n')
        d.signal(signal.SIGUSR2)
        harness.wait_until(lambda: logged(d, "the keeper cannot start the new program, and goes on as the old one: "), "the keeper to say why")
        d.follow()
        return d, c, token

    return make


def test_a_program_that_is_missing_is_looked_for_until_the_service_is_to_stop(outdated):
    d, *_ = outdated()
    os.unlink(d.program)
    os.kill(d.pid, signal.SIGKILL)
    harness.wait_until(lambda: logged(d, "crashes again and again"), "a pause")
    assert len(logged(d, "lockbrokerd is not there any longer")) == 4
    assert d.process.poll() is None
    d.process.send_signal(signal.SIGTERM)
    assert d.process.wait(PATIENCE) == 1


def test_a_program_that_comes_back_meanwhile_is_started(outdated):
    d, *_ = outdated()
    install(d)
    os.rename(d.program, d.program + ".away")
    old = d.pid
    os.kill(old, signal.SIGKILL)
    harness.wait_until(lambda: logged(d, "lockbrokerd is not there any longer"), "the first attempt")
    os.rename(d.program + ".away", d.program)
    d.await_another(old)


# ---- the keeper ends ----


def test_the_end_of_the_keeper_is_that_of_the_worker(broker, clients, locked):
    (c, _), worker = locked(broker), broker.pid
    harness.end(broker.process, signal.SIGKILL)
    assert c.ended()
    harness.wait_until(lambda: not harness.runs(worker), "the end of the worker")
    assert logged(broker, "the main process of the service (the keeper) has ended, so this process ends, too")
    broker.start()
    assert isinstance(clients(broker).call("LOCK", "b"), int)


# ---- what it is ----


def test_it_has_no_capability_in_effect_and_passes_all_on(daemons):
    d = daemons()
    assert int(status(d.process.pid, "CapEff"), 16) == 0
    assert os.geteuid() or int(status(d.process.pid, "CapPrm"), 16) == 0
    assert status(d.pid, "CapPrm") == status(os.getpid(), "CapPrm")
    assert status(d.pid, "CapEff") == status(os.getpid(), "CapEff")
    assert status(d.pid, "SigBlk") != status(d.process.pid, "SigBlk")


def test_what_holds_for_all_programs_that_it_starts_holds_under_no_new_privileges(daemons):
    d = daemons(under=["setpriv", "--no-new-privs"])
    assert status(d.pid, "NoNewPrivs") == "1" and status(d.pid, "CapEff") == status(os.getpid(), "CapEff")


def test_the_worker_has_a_session_of_its_own(daemons):
    """Control-C in a terminal is for the keeper, which passes it on."""
    d = daemons()
    assert session_of(d.pid) == d.pid != session_of(d.process.pid)
    d.process.send_signal(signal.SIGINT)
    assert d.process.wait(PATIENCE) == 0
    assert logged(d, "received a signal (Interrupt): stopping")


def test_it_has_nothing_open_but_what_it_keeps(daemons, clients):
    d = daemons()
    mine = [clients(d) for _ in range(20)]
    names = [os.readlink(f"/proc/{d.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{d.process.pid}/fd")]
    assert len([n for n in names if n.startswith("anon_inode:[signalfd]")]) == 1
    files = {os.path.basename(n) for n in names if n.startswith(d.dir)}
    assert files <= {"log", "lockbrokerd.pid", "socket.lock", "operator.sock.lock", "saved"}, "the log, and what is locked"
    assert mine[0].call("PING") == "PONG"


def test_without_one_there_is_one_process(daemons):
    d = daemons(daemon__keeper=0)
    assert not harness.children(d.process.pid)
    assert int(d.info("server")["process_id"]) == d.process.pid
    assert harness.end(d.process, signal.SIGKILL) == -signal.SIGKILL


def test_a_configuration_that_is_wrong_starts_nothing(tmp_path):
    done = harness.run([harness.program("lockbrokerd"), "-o", "daemon.keeper=2"])
    assert done.returncode == 2 and "daemon.keeper" in done.stderr


def test_a_variable_of_the_environment_that_leads_nowhere_is_ignored(daemons):
    for name in ("LOCKBROKERD_KEEPER", "LOCKBROKERD_KEEPING"):
        for value in ("", "x", "1", "-1", "99999999999"):
            d = daemons(env={name: value})
            assert d.answers(), (name, value)
            assert d.terminate() == 0


# ---- hand-overs, and another program ----


def test_a_crash_after_hand_overs_is_that_of_the_worker_of_now(daemons, clients):
    d = daemons()
    for _ in range(3):
        d.hand_over()
    old = d.crash()
    assert logged(d, f"the worker (process {old}) was killed by signal 9")
    d.hand_over()
    assert isinstance(clients(d).call("LOCK", "a"), int)
    assert d.terminate() == 0


def runs_from(pid):
    return os.readlink(f"/proc/{pid}/exe")


def test_it_runs_the_program_that_is_installed_by_then(fresh, clients, locked):
    d = fresh()
    (c, token), main = locked(d), d.process.pid
    for _ in range(3):
        install(d)
        d.hand_over()
        harness.wait_until(lambda: runs_from(main) == runs_from(d.pid) == d.program, "the keeper to run it")
    harness.wait_until(lambda: len(logged(d, "is the keeper now, of ")) == 3, "what each of them says")
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0
    d.crash()
    assert isinstance(clients(d).call("LOCK", "a"), int)
    assert d.terminate() == 0


UNPRIVILEGED = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"] if os.geteuid() == 0 else []


def may_be_looked_into(pid):
    """By a process of the same user, without a capability: it is asked for what a debugger needs."""
    return subprocess.run([*UNPRIVILEGED, "cat", f"/proc/{pid}/maps"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("core", [0, 1])
def test_no_process_of_it_can_be_looked_into_or_leaves_a_core_unless_that_is_wanted(fresh, core):
    """Nor after a crash, a hand-over, and another program in the keeper's place."""
    d = fresh(daemon__core=core, under=UNPRIVILEGED)
    main = d.process.pid
    assert may_be_looked_into(main) == may_be_looked_into(d.pid) == bool(core)
    d.crash()
    install(d)
    d.hand_over()
    harness.wait_until(lambda: logged(d, "is the keeper now, of "), "the keeper to run it")
    assert may_be_looked_into(main) == may_be_looked_into(d.pid) == bool(core)


def test_it_stays_the_program_that_it_is_if_nothing_else_is_installed(daemons):
    d = daemons()
    d.hand_over()
    assert not logged(d, "is the keeper now")


def test_signals_reach_the_worker_after_that(fresh, conf):
    d = fresh(argv=["-c", str(conf)])
    install(d)
    d.hand_over()
    harness.wait_until(lambda: logged(d, "is the keeper now"), "the keeper")
    conf.write_text("[limits]\nlocks = 7\n")
    d.process.send_signal(signal.SIGHUP)
    harness.wait_until(lambda: d.info("limits")["limit_locks"] == "7", "the reload")


# ---- a service manager ----


def test_the_service_manager_is_told_by_it_alone(daemons):
    """One that believes only the main process hears all there is to hear, also after a crash and a hand-over."""
    d = daemons(env={"WATCHDOG_USEC": "200000"}, zookeeper__session_timeout_ms=100, zookeeper__tick_ms=10)
    d.notify.setsockopt(harness.socket.SOL_SOCKET, harness.socket.SO_PASSCRED, 1)
    senders = collections.defaultdict(set)

    def hear(*wanted):
        heard = set()
        while not set(wanted) <= heard:
            text, control, _, _ = d.notify.recvmsg(4096, 1000)
            pid = int.from_bytes(control[0][2][:4], sys.byteorder) if control else 0
            for line in text.decode().splitlines():
                if pid:
                    senders[line.partition("=")[0]].add(pid)
                    heard.add(line.partition("=")[0])

    d.crash()
    hear("READY", "WATCHDOG")
    d.signal(signal.SIGHUP)
    hear("RELOADING", "READY")
    d.hand_over()
    hear("READY", "WATCHDOG")
    d.stopping = True
    d.process.send_signal(signal.SIGTERM)
    hear("STOPPING")
    assert d.process.wait(PATIENCE) == 0
    assert set().union(*senders.values()) == {d.process.pid}


def test_its_time_costs_next_to_nothing_while_nothing_happens(daemons):
    """It wakes for nothing of its own."""
    d = daemons()

    def idle():
        before, after, _ = harness.over(1, lambda: int(status(d.process.pid, "voluntary_ctxt_switches")))
        return after - before <= 1

    d.info()
    harness.wait_until(idle, "a second without a wake-up")  # on a busy machine something may yet be begun


@pytest.mark.parametrize("mode", [0o755, 0o644], ids=["no program", "not executable"])
def test_a_program_that_cannot_run_in_its_place_leaves_it_as_it_is(outdated, mode):
    d, c, token = outdated(mode)
    wait_kept(Saved(d), c)
    install(d)
    d.signal(signal.SIGHUP)
    harness.wait_until(lambda: logged(d, "the configuration was read again"), "a signal that the keeper has passed on")
    d.crash()
    assert runs_from(d.pid) == d.program
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0
