# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A connection for threads: it runs the scripts of _scripts, and waits without the interpreter's lock."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, Optional, Tuple

from . import _connect, _ready, _resp, _watcher
from ._grant import Answer, Unanswered
from ._held import Owner
from ._page import FOREVER
from ._request import Request, Words
from ._scripts import Script

_POLL_MAX_S = 60.0


class Wire(Owner):
    """Threads may share it: one of them at a time reads and writes, and closes the socket."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.lost: threading.Event = threading.Event()
        self.revoked: threading.Event = threading.Event()
        self.watched = False
        self._reading = threading.Lock()

    @property
    def fd(self) -> int:
        return self._socket.fileno() if self._socket else -1

    def inherited(self) -> None:
        self._reading = threading.Lock()
        super().inherited()

    # ---- scripts ----

    def run(self, script: Script) -> Any:
        try:
            step = next(script)
            while True:
                try:
                    result = self._perform(step)
                except BaseException as e:
                    step = script.throw(e)
                else:
                    step = script.send(result)
        except StopIteration as end:
            return end.value

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """For a script about what is held: nobody else reads meanwhile."""
        self._reading.acquire()
        try:
            if self.watched:
                _watcher.watcher().mute(self)
            yield
        finally:
            if self.watched and not self.closed and not self.forked:
                _watcher.watcher().unmute(self)
            self._end_turn()

    def _begin_turn(self) -> bool:
        """Unless somebody else has it."""
        return self._reading.acquire(blocking=False)

    def _end_turn(self) -> None:
        self._reading.release()
        if self.closed:
            self._let_go()

    def _let_go(self) -> None:
        """Closes the socket, unless another thread uses it: then that one does, at the end of its turn."""
        if self._begin_turn():
            try:
                if self._socket and self.closed:
                    self._socket.close()
            finally:
                self._reading.release()

    def _perform(self, step: Tuple[Any, ...]) -> Any:
        what, *args = step
        steps: Dict[str, Callable[..., Any]] = {"open": self._open, "connect": self._connect, "send": self._send,
                                                "wait": self._wait, "sleep": time.sleep, "close": self.close}
        return steps[what](*args)

    def _send(self, requests: Iterable[Words]) -> None:
        data = b"".join(_resp.encode(*words) for words in requests)
        deadline = time.monotonic() + self.request.patience
        while data and self._socket and not self.grant.ended:
            try:
                data = data[self._socket.send(data, socket.MSG_NOSIGNAL):]
            except BlockingIOError:
                self._await(select.POLLOUT, deadline)
            except OSError:
                return  # a broker that refuses a client says why before it closes: the reader finds it

    def _await(self, events: int, deadline: Optional[float]) -> None:
        left = _POLL_MAX_S if deadline is None else deadline - time.monotonic()
        if left <= 0:
            raise Unanswered(_connect.SILENT.format(self.request.path))
        _ready.wait(self.fd, events, min(left, _POLL_MAX_S))

    def _wait(self, answer: Answer, deadline: Optional[float]) -> Any:
        while not answer.done:
            self._await(select.POLLIN, deadline)
            self._receive()
        return answer.value

    def _receive(self) -> bool:
        """False: there is nothing to be read."""
        if not self._socket or self.grant.ended:
            return False
        try:
            data = self._socket.recv(_connect.RECEIVE_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        self.grant.feed(data)
        return not self.grant.ended

    # ---- beside the scripts ----

    def pump(self) -> None:
        """Reads what has come, unless somebody reads already."""
        if not self._begin_turn():
            return
        try:
            while self._receive():
                pass
        finally:
            self._end_turn()

    def ask(self) -> None:
        """In the background: the answer is read by whoever reads next."""
        if not self._begin_turn():
            return
        try:
            self._send(self.grant.question())
        except Unanswered:
            self.grant.lose("unanswered")  # half of a request was sent
        finally:
            self._end_turn()

    def tick(self) -> float:
        """Sees what ran out; seconds until the next look."""
        delay = self.grant.look()
        if delay != FOREVER and self.grant.must_ask:
            self.ask()
        return _watcher.seconds(delay)

    def watch(self) -> None:
        if not self.watched and not self.closed:
            watcher = _watcher.watcher()  # where no thread can be started, this raises, and nothing watches
            self.watched = True
            self.pump()
            watcher.watch(self)

    def close(self) -> None:
        """What it holds is released, or was lost before. Never waits; another thread that waits on it is woken."""
        self.closed = True
        self.grant.released()
        if self._socket and not self.forked:
            if self.watched:
                _watcher.watcher().forget(self)
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self.grant.end()
        self._let_go()
