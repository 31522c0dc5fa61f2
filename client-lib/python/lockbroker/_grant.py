# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What one connection holds, and for how long that is proven. It holds nothing else, so no request has to name a token. No
I/O: whoever has the socket feeds the bytes and sends the words.

A loss is final: once it was seen, valid() says 0 and `lost` is set for good, whatever is read later.
"""

from __future__ import annotations

import collections
import time
import weakref
from typing import Any, Callable, Deque, Dict, List, Optional, Set, Tuple

from . import _errors, _page, _resp
from ._page import FOREVER
from ._request import Request, Words

_NS_PER_MS = 1_000_000
# How soon a proof is looked at again: when half of it has passed, or all of what is shorter than that.
_LOOK_NS, _LOOK_MIN_NS = 200 * _NS_PER_MS, 10 * _NS_PER_MS
# Without a proof, a broker that does not answer for so long proves nothing.
_SILENT_NS = 1000 * _NS_PER_MS

ENDED = object()  # the answer to a request whose connection ended
_held: weakref.WeakValueDictionary[int, Grant] = weakref.WeakValueDictionary()
reached: Set[str] = set()  # sockets where a broker has answered this process


class _Within(_errors.NoBroker):
    """What only this library tells apart; to programs it is a NoBroker."""

    def __reduce__(self) -> Tuple[Any, ...]:
        return _errors.NoBroker, self.args


class Ended(_Within):
    """The broker closed the connection, or there is none: it may be back in a moment."""


class Absent(Ended):
    """There is not even a socket: no broker was there, or it was stopped."""


class Unanswered(_Within):
    """The broker is there, and silent: it hangs, or is stopped."""


for _kind in (Ended, Absent, Unanswered):
    _errors.public(_kind, "NoBroker")


class Answer:
    """The place of one reply."""

    def __init__(self, then: Optional[Callable[[Any], None]] = None) -> None:
        self.done = False
        self.value: Any = None
        self.then = then

    def give(self, value: Any) -> None:
        self.done, self.value = True, value
        if self.then:
            self.then(value)


class Grant:
    """Of one connection, from its greeting on."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.held = False
        self.tokens: Dict[str, int] = {}  # by name; permits have none
        self.lost_reason: Optional[str] = None
        self._lost: Dict[str, str] = {}  # before it was known to be held: the reason, by name
        self.revoke_reason: Optional[str] = None
        self.ended = False
        self.on_lost: Callable[[], None] = lambda: None
        self.on_revoke: Callable[[], None] = lambda: None
        self._parser = _resp.Parser()
        self._answers: Deque[Answer] = collections.deque()
        self._page: Optional[_page.Page] = None
        self._epoch: Optional[int] = None  # that the page had at the grant; None: that which is read next
        self._lease_until = FOREVER
        self._asked_until = 0  # what the broker said, where there is no page
        self._asked_at: Optional[int] = None  # when a question was sent that is not answered yet

    # ---- what comes and goes on the connection ----

    def expect(self, then: Optional[Callable[[Any], None]] = None) -> Answer:
        answer = Answer(then)
        if self.ended:
            answer.give(ENDED)
        else:
            self._answers.append(answer)
        return answer

    def feed(self, data: bytes) -> None:
        """What was received; nothing: the end. A stream that is no RESP has ended, too."""
        if not data:
            self.end()
            return
        try:
            for value in self._parser.feed(data):
                self._take(value)
        except _errors.ProtocolError as e:
            self.end(e)

    def _take(self, value: Any) -> None:
        if isinstance(value, _resp.Push):
            self._heed(value)
        elif not self._give(value):
            if not isinstance(value, _resp.ErrorReply):
                raise _errors.ProtocolError("the broker sent an answer to no request")
            self.end()

    def _give(self, value: Any) -> bool:
        """To the oldest request; False: nothing was asked. Another thread may end the connection meanwhile."""
        try:
            self._answers.popleft().give(value)
        except IndexError:
            return False
        return True

    def _heed(self, event: List[Any]) -> None:
        if len(event) < 4 or event[1] not in self.request.names:
            return
        if event[0] == "lost":
            self._lost[event[1]] = str(event[3])
            self.lose(str(event[3]))
        elif event[0] == "revoke" and self.revoke_reason is None:
            self.revoke_reason = str(event[3])
            self.on_revoke()

    def end(self, why: Any = ENDED) -> None:
        """The connection has ended. Those who wait for an answer get the reason."""
        if self.ended:
            return
        self.ended = True
        self.lose("connection")
        while self._give(why):
            pass

    def lose(self, reason: str) -> None:
        if self.held and self.lost_reason is None:
            self.lost_reason = reason
            self.on_lost()

    # ---- for how long it is proven ----

    def greeted(self, hello: Any) -> None:
        if isinstance(hello, dict):
            reached.add(self.request.path)
            self._page = _page.find(str(hello.get("session_page", "")), str(hello.get("session_page_id", "")))

    def granted(self, tokens: Dict[str, int], lease_until: int) -> None:
        view = self._page.read() if self._page else None
        self._epoch = view.epoch if view and not view.moved else None
        self.tokens = tokens
        self._lease_until = lease_until
        self.held = True
        for name in self._lost.keys() & (tokens or self.request.names):
            self.lose(self._lost[name])
        _held[id(self)] = self

    def renewed(self, lease_until: int) -> None:
        self._lease_until = lease_until

    def released(self) -> None:
        self.held = False
        _held.pop(id(self), None)

    def _proof(self) -> Tuple[int, bool]:
        """Until when the session is proven, and whether the broker can know better. Nothing: the session was lost."""
        if not self._page:
            return self._asked_until, True
        view = self._page.read()
        if self._epoch is None and not view.moved:
            self._epoch = view.epoch
        if not view.proven or self._epoch not in (None, view.epoch):
            return 0, False
        return view.safe_until, view.moved or self._epoch is None

    def remaining(self) -> int:
        """Nanoseconds; 0: it is void, or not proven. What can only be void is lost from now on."""
        if not self.held or self.lost_reason:
            return 0
        proof, may_ask = self._proof()
        now = _page.clock()  # after the page: a process that stands still in between must not believe what was then
        if self._lease_until <= now:
            self.lose("lease")
        elif proof <= now and not may_ask:
            self.lose("session")
        until = min(proof, self._lease_until)
        return 0 if self.lost_reason else FOREVER if until == FOREVER else max(0, until - now)

    def seconds(self) -> float:
        """remaining(), as people have it: infinite if it cannot run out."""
        left = self.remaining()
        return float("inf") if left == FOREVER else left / 1e9

    @property
    def must_ask(self) -> bool:
        """The page cannot tell, or will not for long: there is none, or it has moved."""
        return self.held and not self.lost_reason and self._proof()[1]

    def question(self) -> List[Words]:
        """What the broker is to be asked now, in the background; nothing while that was asked and is not answered."""
        if self._asked_at is not None or self.ended or not self.must_ask:
            return []
        return self.question_and_answer()[0]

    def question_and_answer(self) -> Tuple[List[Words], Answer]:
        """For a page that has moved, where the new one is; without a page, for how long the grant is proven."""
        sent = self._asked_at = _page.clock()
        if self._page:
            return [["HELLO"]], self.expect(self._take_page)
        said: List[Any] = []

        def take(ms: Any) -> None:
            said.append(ms)
            if len(said) == len(self.request.names):
                self._take_proof(sent, said)

        answers = [self.expect(take) for _ in self.request.names]
        return [["VALID", name] for name in self.request.names], answers[-1]

    @property
    def has_page(self) -> bool:
        return self._page is not None

    def _take_page(self, hello: Any) -> None:
        self._asked_at = None
        if isinstance(hello, dict):
            self._page = None
            self.greeted(hello)

    def _take_proof(self, sent: int, said: List[Any]) -> None:
        """Milliseconds for each of the names."""
        self._asked_at = None
        if 0 in said:
            self.lose("session")
        elif all(isinstance(ms, int) for ms in said):
            ms = min(said)
            self._asked_until = FOREVER if ms >= FOREVER // _NS_PER_MS else sent + ms * _NS_PER_MS

    def look(self) -> int:
        """
        What a watcher does: sees what ran out, and returns nanoseconds until it should look again. A broker that was
        asked and is silent until the proof has run out can prove nothing: that is a loss.
        """
        left = self.remaining()
        if left == 0 and self._asked_at is not None and _page.clock() - self._asked_at >= _SILENT_NS:
            self.lose("unanswered")
        if not self.held or self.lost_reason or left == FOREVER:
            return FOREVER
        return max(left // 2 if left > _LOOK_NS else left, _LOOK_MIN_NS)


class Listening(Grant):
    """A connection whose events somebody waits for: `news` is given when there are some, and when the connection ends."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.news = Answer()

    def take(self) -> Any:
        """What a wait for `news` has found; the next one waits for more."""
        value, self.news = self.news.value, Answer()
        if self.ended:
            self.news.give(ENDED)
        return value

    def end(self, why: Any = ENDED) -> None:
        super().end(why)
        if not self.news.done:
            self.news.give(why)


def held_by_same(request: Request) -> bool:
    """Whether this process holds one of these locks already, for the same group of locks: that of its thread or task."""
    for reference in _held.valuerefs():
        grant = reference()
        if grant and grant.held and not grant.lost_reason and grant.request.is_of_same(request):
            return True
    return False
