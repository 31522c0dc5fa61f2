"""What the clients of one daemon owe each other: turns, answers that wait, descriptors that run out, and the end in the
midst of it."""

import select

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
