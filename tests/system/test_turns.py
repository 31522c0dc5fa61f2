"""What the clients of one daemon owe each other: turns, answers that wait, descriptors that run out, and the end in the
midst of it."""

import select
import signal
import time

import harness


def leave_unread(client):
    """Asks for long answers until nothing more is taken."""
    request = harness.encode("ECHO", "x" * 60000)
    client.socket.setblocking(False)
    sent = 0
    while select.select([], [client.socket], [], 0.5)[1]:
        sent += client.socket.send(request[sent % len(request):] + request)
        assert sent < 100 << 20


def test_an_answer_that_may_wait_for_the_next_does_not_keep_that_from_being_asked_for(daemons, clients):
    """Others leave so much unread together that who leaves something unwritten is not listened to: a lazy answer is not
    the client's to read before the daemon has written it."""
    d = daemons(limits={"output_bytes": 256 << 20})
    c, late, hog = clients(d), clients(d), clients(d, 2)
    for each in c, late:
        assert isinstance(each.call("LOCK", "a", "SHARED"), int)
    c.send("UNLOCK", "a", "LAZY")
    harness.wait_until(lambda: len(late.call("HOLDERS", "a")) == 1, "the unlock")
    leave_unread(hog)
    c.send("PING", "asked later")
    late.send_raw(harness.encode("UNLOCK", "a", "LAZY") + harness.encode("PING", "asked at once"))
    assert (c.reply(), c.reply()) == (0, "asked later")
    assert (late.reply(), late.reply()) == (0, "asked at once")


END = "that was all"


def ask_for_lists(client, count):
    client.send_raw(harness.encode("LOCKS") * count + harness.encode("ECHO", END))


def take_lists(client):
    """Without looking into them."""
    data = b""
    while not data.endswith(END.encode() + b"\r\n"):
        data = data[-len(END) - 2:] + client.socket.recv(1 << 20)


def test_who_asks_for_little_does_not_wait_for_the_lists_of_a_hundred(daemons, clients):
    """A hundred clients ask for more lists than are made in a turn. They are known for it by then, and have one share of
    each turn together."""
    d = daemons(limits={"output_bytes": 8 << 20})
    c, hogs = clients(d), [clients(d, 2) for _ in range(100)]
    for i in range(1000):
        c.send("LOCK", f"{i:04}" + "x" * 30)
    for i in range(1000):
        assert isinstance(c.reply(), int)
    for hog in hogs:
        ask_for_lists(hog, 3)
        take_lists(hog)
    d.signal(signal.SIGSTOP)
    for hog in hogs:
        ask_for_lists(hog, 4)
    c.send("PING")
    began = time.monotonic()
    d.signal(signal.SIGCONT)
    assert c.reply() == "PONG"
    answered = time.monotonic() - began
    for hog in hogs:
        take_lists(hog)
    assert answered < (time.monotonic() - began) / 4
