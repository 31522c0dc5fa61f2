# SPDX-License-Identifier: Apache-2.0
"""For stateful.py: another user, who has a daemon keep as much memory as it can, and what the daemon's control group has of
it. Only root can be two users."""

import contextlib
import os
import select
import socket

import cgroup
import harness
from users import OTHER_USER, as_other_user, let_in

CLIENTS, SHARE = 300, 75  # so that this user is refused connections, and no other one
CONF = {"daemon__socket_mode": "0666", "limits": {"clients": CLIENTS, "user_share": SHARE}}
AT_ONCE = 50
FILES_MAX = 3000  # when it lets half of them go
MANY = 1600  # refusals, or pages, which are more than the kernel may have beside what is charged
PAGE_PATIENCE_MS = 1000

# As MemoryMax= of the unit is calculated (lockbrokerd(8), ACCOUNTS): bytes for one, by the word that ACCOUNTS has for it.
# Of a connection 64 KiB are the kernel's, and twice 16 the daemon's.
CHARGED_BYTES = {"connections": 96 << 10, "pages of delegations": 2 << 10, "names of locks in use": 7 << 10,
                 "bytes of requests that cannot be served yet": 2, "bytes of output that is not read": 2,
                 "bytes of unread events, of names that wait and of lists": 2,
                 "bytes of znode paths in this host's session": 2, "bytes of watched znode paths": 2}
# What a daemon that has served may have more than one that has just begun, beside what is charged: in the kernel, and with
# its processes, which give memory back in small pieces.
SPARE_IN_KERNEL, SPARE_BYTES = 768 << 10, 16 << 20


def is_refusal(s):
    with contextlib.suppress(OSError):
        return s.recv(1, socket.MSG_PEEK) == b"-"
    return False


class Hoarder:
    """`kept`: how often it has kept something."""

    def __init__(self, rng, daemon):
        self.rng, self.daemon = rng, daemon
        self.sockets, self.pages, self.kept = [], [], 0
        self.kind = rng.choice([self.leave_answers, self.leave_pages])

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.setblocking(False)
        with contextlib.suppress(OSError), as_other_user():
            s.connect(self.daemon.socket)
        return s

    def send(self, s, request):
        with contextlib.suppress(OSError):
            return s.send(request)
        return 0

    def leave_answers(self, count):
        """Of connections that have ended; or it is refused, and leaves that."""
        request = harness.encode("ECHO", "x" * self.rng.choice([10, 31000, 31000]))
        for _ in range(count):
            s = self.connect()
            self.send(s, request)
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_WR)
            self.sockets.append(s)

    def leave_open(self, count):
        """With requests of which it reads no answer, and half a request."""
        request = harness.encode("ECHO", "x" * 31000)
        for _ in range(count // 16):
            s = self.connect()
            while self.send(s, request) == len(request):
                pass
            self.sockets.append(s)

    def leave_pages(self, count):
        """Of connections that have ended."""
        for _ in range(count // AT_ONCE):
            asked = [self.connect() for _ in range(AT_ONCE)]
            for s in asked:
                self.send(s, harness.encode("HELLO", 3) + harness.encode("DELEGATE"))
            for s in asked:
                self.receive_page(s)

    def receive_page(self, s):
        """Until it has one, or is refused, or the process that serves has been killed."""
        text, page = b"", []
        poll = select.poll()
        poll.register(s, select.POLLIN)
        with s, contextlib.suppress(OSError):
            while not page and b"\r\n-" not in b"\r\n" + text and poll.poll(PAGE_PATIENCE_MS):
                data, page, _, _ = socket.recv_fds(s, 1 << 16, 1)
                text += data
                if not data:
                    break
        self.pages += page

    def act(self):
        """What it is about most often, so that much of that comes together."""
        if self.rng.random() < 0.1 or len(self.sockets) + len(self.pages) > FILES_MAX:
            self.let_go(half=True)
        self.keep(self.kind if self.rng.random() < 0.7 else
                  self.rng.choice([self.leave_answers, self.leave_pages, self.leave_open]), self.rng.choice([50, 200, 400]))

    def act_at_last(self):
        """So that it has much in the end, whatever was let go before."""
        self.keep(self.kind, MANY)

    def keep(self, act, count):
        before = len(self.sockets) + len(self.pages)
        act(count)
        self.kept += len(self.sockets) + len(self.pages) - before

    def let_go(self, half=False, but_small=False):
        """Of half of it, or of all; or of all but pages and refusals: what they need would not be seen beside a connection,
        which is charged for more than most need."""
        def stays(what):
            return half and self.rng.random() < 0.5 or but_small and (isinstance(what, int) or is_refusal(what))

        self.sockets, sockets = [s for s in self.sockets if stays(s)], self.sockets
        self.pages, pages = [page for page in self.pages if stays(page)], self.pages
        for s in set(sockets) - set(self.sockets):
            s.close()
        for page in set(pages) - set(self.pages):
            os.close(page)


class Measured:
    """The memory of a daemon whose processes begin in `group`."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.group = cgroup.Memory(os.path.basename(daemon.dir))
        self.processes, self.kernel, self.latest = 0, 0, None

    def begin(self):
        """It serves, and nobody has asked for anything yet."""
        _, self.processes, self.kernel = self.group.used()

    def charged(self):
        """As bytes that it may have for that."""
        with self.daemon.client(operator=True) as c:
            return sum(CHARGED_BYTES.get(row["of"], 0) * row["used"] for row in c.call("ACCOUNTS"))

    def fits(self):
        try:
            charged = self.charged()
        except (OSError, harness.Closed):  # the process that serves is another one now
            return False
        _, processes, kernel = self.group.used()
        processes, kernel = processes - self.processes, kernel - self.kernel
        self.latest = (f"since its start the kernel uses {kernel} bytes more for the daemon, and its processes {processes}; "
                       f"{charged} are charged for")
        if harness.sanitizer_options():  # most of what its processes use is the sanitizer's
            processes = 0
        return kernel <= charged + SPARE_IN_KERNEL and processes + kernel <= charged + SPARE_BYTES

    def wait_fit(self):
        """Of what was let go just now, the kernel may have something yet, or the daemon while it hands over."""
        harness.wait_until(self.fits, lambda: self.latest)

    def end(self):
        harness.wait_until(self.group.is_empty, "the processes of the group to end")
        self.group.remove()
