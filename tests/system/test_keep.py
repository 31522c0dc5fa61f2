# SPDX-License-Identifier: Apache-2.0
"""What a service manager keeps from one start of the service to the next: here the test is the manager."""

import contextlib
import os
import signal
import socket

import pytest

import harness
import saved
from harness import logged

OPERATORS = True  # see clients of conftest.py


class Manager:
    """Of one daemon. It keeps descriptors by their names, at most so many."""

    def __init__(self, daemon, room=4):
        self.daemon = daemon
        self.room = room
        self.kept = {}

    def receive(self):
        """One message."""
        text, fds, _, _ = socket.recv_fds(self.daemon.notify, 4096, 4)
        lines = dict(line.split("=", 1) for line in text.decode().splitlines())
        self.keep(lines, fds)
        for fd in fds:
            os.close(fd)
        return lines

    def keep(self, lines, fds):
        if "FDSTORE" in lines:
            assert lines["FDPOLL"] == "0" and len(fds) == 1
            if len(self.kept) < self.room:
                self.kept[lines["FDNAME"]] = fds.pop()
        elif "FDSTOREREMOVE" in lines and lines["FDNAME"] in self.kept:
            os.close(self.kept.pop(lines["FDNAME"]))

    def until(self, key):
        while key not in self.receive():
            pass

    def stop_for_a_start(self):
        """As ExecStop= and systemd do it."""
        self.daemon.notify.settimeout(harness.PATIENCE)
        self.daemon.signal(signal.SIGUSR1)
        self.daemon.process.send_signal(signal.SIGTERM)
        self.until("BARRIER")

    def start(self, **more):
        """With what is kept, and other descriptors between."""
        fds = dict(list(self.kept.items())[:1] + list(more.items()) + list(self.kept.items())[1:])
        for fd in fds.values():
            os.set_blocking(fd, True)
        self.daemon.env = {}
        self.daemon.spawn(listening=list(fds.values()), names=":".join(fds))
        self.end()
        self.daemon.wait_ready()

    def stop(self):
        self.stop_for_a_start()
        assert self.daemon.process.wait(harness.PATIENCE) == 0

    def restart(self):
        self.stop()
        self.start()

    def end(self):
        """It keeps nothing any longer: whoever was passed it has it."""
        for fd in self.kept.values():
            os.close(fd)
        self.kept = {}


@pytest.fixture
def managers():
    yield from harness.each_ends(Manager, Manager.end)


def test_no_client_notices_a_restart(broker, clients, managers):
    holder, waiter, others = clients(broker), clients(broker), [clients(broker) for _ in range(300)]
    manager = managers(broker)
    token = holder.call("LOCK", "a")
    waiter.send("LOCK", "a", "WAIT", 600000)
    harness.wait_queued(broker, "a", 1)
    for times in (1, 2, 3):
        for at, c in enumerate(others):
            c.send("LOCK", f"{times}/{at}")
        manager.restart()
        assert all(isinstance(c.reply(), int) for c in others)
        harness.wait_until(lambda times=times: len(logged(broker, "has taken over 302 connections")) == times, "the log")
    assert holder.call("VALID", "a", "TOKEN", token) > 0
    assert holder.call("UNLOCK", "a", "TOKEN", token) == 0
    assert waiter.reply() > token


def test_a_restart_that_is_asked_for_meanwhile_is_this_one(daemons, clients, locked, managers, conf):
    """The service manager is told of no process but those that serve."""
    d = daemons(argv=["-c", str(conf)])
    (c, token), asking, reading = locked(d), clients(d), clients(d)
    manager = managers(d)
    conf.unlink()
    os.mkfifo(conf)
    reading.send("RELOAD")  # nothing is left to the next process before that is over
    d.signal(signal.SIGUSR1)
    harness.wait_until(lambda: logged(d, "keeping everything"), "the signal")
    asking.send("RESTART")
    harness.wait_until(lambda: logged(d, "handing over to process"), "the new process")
    with open(conf, "w", encoding="ascii") as f:
        f.write("")
    conf.unlink()
    conf.write_text("")
    d.process.send_signal(signal.SIGTERM)
    d.notify.settimeout(harness.PATIENCE)
    told = [manager.receive()]
    while "BARRIER" not in told[-1]:
        told.append(manager.receive())
    assert d.process.wait(harness.PATIENCE) == 0
    d.notify.settimeout(0)
    with contextlib.suppress(BlockingIOError):
        while True:
            told.append(manager.receive())
    assert not [lines for lines in told if "MAINPID" in lines]
    manager.start()
    assert asking.reply()["process_id"] == d.pid
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0


def test_without_room_it_goes_on_until_it_is_stopped(daemons, locked, managers):
    d = daemons(daemon__stop_timeout_ms=60000)
    c, _ = locked(d)
    managers(d, room=1).stop_for_a_start()
    harness.wait_until(lambda: logged(d, "stopping"), "the stop")
    assert logged(d, "nothing is kept for the next start of the service: systemd has no room for it (FileDescriptorStoreMax=)")
    assert c.call("VALID", "a") > 0 and c.call("UNLOCK", "a") == 0
    assert d.process.wait(harness.PATIENCE) == 0


def test_what_could_not_be_kept_is_not_asked_of_a_later_worker(daemons, locked, managers):
    """The signal that asked for it is not remembered until a stop, much later, in which a worker is killed."""
    d = daemons(daemon__stop_timeout_ms=60000)
    c, _ = locked(d)
    d.notify.settimeout(harness.PATIENCE)
    manager = managers(d, room=1)
    d.signal(signal.SIGUSR1)
    manager.until("BARRIER")
    harness.wait_until(lambda: logged(d, "nothing is kept for the next start"), "the failure")
    saved.wait_kept(saved.Saved(d), c)
    d.signal(signal.SIGTERM)
    harness.wait_until(lambda: logged(d, "stopping"), "the stop")
    d.crash()
    harness.wait_until(lambda: len(logged(d, "stopping")) == 2, "the stop of the next worker")
    assert len(logged(d, "keeping everything for the next start")) == 1
    assert c.call("UNLOCK", "a") == 0
    assert d.process.wait(harness.PATIENCE) == 0


def test_a_manager_that_does_not_answer_is_not_waited_for(broker, locked):
    c, _ = locked(broker)
    broker.signal(signal.SIGUSR1)
    harness.wait_until(lambda: logged(broker, "nothing is kept for the next start of the service: "), "the end of the wait")
    harness.wait_until(lambda: c.call("VALID", "a") > 0, "the proof")
    assert c.call("UNLOCK", "a") == 0


def test_a_manager_that_has_gone_keeps_nothing(daemons, clients):
    """Another hand-over is possible later."""
    harness.inherit_orphans()
    d = daemons()
    c = clients(d)
    os.unlink(os.path.join(d.dir, "notify"))
    d.notify.close()
    d.signal(signal.SIGUSR1)
    harness.wait_until(lambda: logged(d, "nothing is kept for the next start of the service: "), "the message")
    assert isinstance(c.call("LOCK", "a"), int)
    assert "the daemon is stopping" not in str(c.call("RESTART"))
    d.follow()


def test_without_a_manager_it_goes_on(daemons, clients):
    d = daemons()
    d.terminate()
    d.env = {"NOTIFY_SOCKET": ""}
    d.spawn()
    harness.wait_until(lambda: "serves" in d.log().split("stopped")[-1], "the daemon")
    c = clients(d)
    d.signal(signal.SIGUSR1)
    harness.wait_until(lambda: logged(d, "nothing is kept for the next start of the service: there is no service manager"),
                       "the message")
    assert isinstance(c.call("LOCK", "a"), int)


def test_a_daemon_that_stops_keeps_nothing(daemons, locked):
    d = daemons()
    c, _ = locked(d)
    d.signal(signal.SIGTERM)
    harness.wait_until(lambda: logged(d, "stopping"), "the stop to begin")
    d.signal(signal.SIGUSR1)
    harness.wait_until(lambda: logged(d, "the daemon is stopping already, and keeps nothing"), "the refusal")
    c.call("UNLOCK", "a")
    assert d.terminate() == 0


class Hoarder(Manager):
    """It removes nothing, and lets no barrier pass."""

    def keep(self, lines, fds):
        if "FDSTORE" in lines:
            self.kept.setdefault(lines["FDNAME"], []).append(fds.pop())
        elif "BARRIER" in lines:
            self.kept.setdefault("barriers", []).append(fds.pop())

    def oldest(self):
        """From now on it has what it was given first, as often as it is asked."""
        self.kept = {name: os.dup(fds[0]) for name, fds in self.kept.items() if name != "barriers"}


def test_what_a_process_left_that_went_on_is_not_used(daemons, clients, locked):
    """It was not told that the manager has everything, in time, and the manager did not remove it."""
    d = daemons()
    manager = Hoarder(d)
    (c, token), other = locked(d), clients(d)
    d.notify.settimeout(harness.PATIENCE)
    d.signal(signal.SIGUSR1)
    manager.until("BARRIER")
    harness.wait_until(lambda: logged(d, "nothing is kept for the next start of the service: "), "the end of the wait")
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0
    later = other.call("LOCK", "a")
    assert harness.end(d.process, signal.SIGKILL) == -signal.SIGKILL
    manager.oldest()
    manager.start()
    assert logged(d, "the connections and locks that the earlier process left are not used: it has served after that, or another process has")
    assert c.ended() and clients(d).call("LOCK", "a", "WAIT", harness.PATIENCE * 1000) > later


@pytest.mark.parametrize("fault", ["killed", "stopped"])
@pytest.mark.parametrize("when", ["stored", "told"])
def test_one_that_fails_while_it_leaves_everything_is_followed_by_one_that_does(daemons, locked, managers, when, fault):
    """The manager has a part of what it left, or all of it; what its successor leaves is what counts."""
    d = daemons(env={"WATCHDOG_USEC": "2000000"}, zookeeper__session_timeout_ms=3000)
    manager, (c, token) = managers(d), locked(d)
    saved.wait_kept(saved.Saved(d), c)
    d.notify.settimeout(harness.PATIENCE)
    d.signal(signal.SIGUSR1)
    d.process.send_signal(signal.SIGTERM)
    if when == "stored":
        manager.until("FDSTORE")
    else:
        held = socket.recv_fds(d.notify, 4096, 4)
        while b"BARRIER" not in held[0]:
            for fd in held[1]:
                os.close(fd)
            held = socket.recv_fds(d.notify, 4096, 4)
    d.signal(signal.SIGKILL if fault == "killed" else signal.SIGSTOP)
    harness.wait_until(lambda: logged(d, "signal 9" if fault == "killed" else "it hangs, and is ended"), "its end")
    if when == "told":
        os.close(held[1][0])
    d.notify.settimeout(0.1)

    def ended():
        with contextlib.suppress(TimeoutError):
            manager.receive()
        return d.process.poll() is not None

    harness.wait_until(ended, "the end of the service")
    assert d.process.wait() == 0 and logged(d, "everything is kept for the next start of the service")
    manager.start()
    assert c.call("VALID", "a", "TOKEN", token) > 0 and c.call("UNLOCK", "a") == 0


def test_what_is_of_another_daemon_is_not_used(daemons, clients, locked, managers):
    d = daemons()
    c, _ = locked(d)
    manager = managers(d)
    manager.stop()
    d.options["prefix:app/.path"] = "/app"
    manager.start()
    assert logged(d, "the connections and locks that the earlier process left are not used: the configuration now has other prefixes")
    assert c.ended() and isinstance(clients(d).call("LOCK", "a"), int)


def test_what_belongs_to_a_line_that_is_no_longer_there_is_not_used(daemons, zk, root, locked, managers, secret):
    d = daemons(zk, root=root, zookeeper__auth_file=secret)
    c, _ = locked(d)
    manager = managers(d)
    manager.stop()
    secret.write_text("broker:other\n")
    manager.start()
    assert logged(d, "the connections and locks that the earlier process left are not used: zookeeper.auth_file lacks the first line")
    assert c.ended()


def test_an_error_in_the_configuration_costs_nobody_a_lock(daemons, locked, managers, conf):
    """The process before this one has left what it used; the error is told, and stays until somebody mends it."""
    conf.write_text("[locks]\nhandoff_max = 7\n")
    d = daemons(argv=["-c", str(conf)])
    c, token = locked(d)
    conf.write_text("[locks]\nhandoff_max = many\n")
    manager = managers(d)
    manager.restart()
    assert logged(d, f"error: the configuration is not used: {conf}:2: "), d.log()
    manager.restart()
    assert c.call("VALID", "a", "TOKEN", token) > 0 and c.call("UNLOCK", "a") == 0


def a_file(text):
    fd = os.memfd_create("text")
    os.write(fd, text)
    return fd


@pytest.mark.parametrize("wrong", ["text", "queue", "both", "one"])
def test_what_is_garbled_is_not_used(daemons, clients, locked, managers, wrong):
    """Something else in the place of one or both, or one alone."""
    d = daemons()
    c, _ = locked(d)
    manager = managers(d)
    manager.stop()
    for name in list(manager.kept):
        part = "text" if name.endswith("state") else "queue"
        if wrong in (part, "both"):
            os.close(manager.kept[name])
            manager.kept[name] = a_file(b"process broker 5:hello,\n")
        elif wrong == "one" and part == "text":
            os.close(manager.kept.pop(name))
    manager.start()
    assert logged(d, "error: the connections and locks that the earlier process left cannot be read: ")
    assert c.ended() and isinstance(clients(d).call("LOCK", "a"), int)


def test_a_socket_that_is_passed_is_the_one_that_was_kept(daemons, clients, locked, managers):
    """As with lockbrokerd.socket: the manager passes it again, and has made it block."""
    d = harness.Daemon(wait=False)
    daemons.list.append(d)
    listener = socket.create_server(d.socket, family=socket.AF_UNIX)
    manager = managers(d)
    manager.start(socket=listener.fileno())
    c, _ = locked(d)
    manager.stop()
    manager.start(socket=listener.fileno())
    assert c.call("UNLOCK", "a") == 0
    assert clients(d).call("PING") == "PONG"
    listener.close()
