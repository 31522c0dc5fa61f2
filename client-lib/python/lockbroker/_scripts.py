# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What is to be done on a connection, in which order. A script yields steps and gets what came of them, so that the same
scripts serve threads and asyncio: ("open", grant), ("connect",), ("send", requests), ("wait", answer, deadline),
("sleep", seconds), and ("close",). A deadline is an instant of time.monotonic(), or None.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from typing import Any, Dict, Generator, List, Optional, Tuple

from . import _errors, _grant, _page, _resp
from ._choice import Choice
from ._grant import ENDED, Absent, Answer, Ended, Grant, Unanswered
from ._page import FOREVER
from ._request import Request, Words

_NS_PER_MS = 1_000_000
# If more than this part of a lease may have passed when the grant is known, the lease is restarted.
_LEASE_SLACK_PART = 16
_PAUSE_S, _PAUSE_MAX_S = 0.01, 0.25
# How often a broker that is asked for its page may have one more that has moved.
_PAGES_MAX = 3

Script = Generator[Tuple[Any, ...], Any, Any]


# A broker that refuses says why, unless too many others have not read why they were refused.
_UNGREETED = ("lockbrokerd has closed the connection without a word: it starts again, or this user has too many "
              "connections, of which many have not read that they were refused (\"lockbroker accounts\" shows who has "
              "them). Close some, and try again.")


def check(value: Any, ended: str = "The connection to lockbrokerd ended.") -> Any:
    if value is ENDED:
        raise Ended(ended)
    if isinstance(value, _errors.ProtocolError):
        raise value
    if isinstance(value, _resp.ErrorReply):
        raise _errors.of_reply(value.text)
    return value


def soon(request: Request) -> float:
    """Until when an answer has to be there that should come at once."""
    return time.monotonic() + request.patience


def begin(grant: Grant, words: Words) -> Script:
    """Opens a connection. Greeting and request are sent in one; returns where the answer to the request will be."""
    request = grant.request
    greetings: List[Words] = [["HELLO", 3]]
    if request.group:
        greetings.append(["CLIENT", "SETINFO", "OWNER", request.group])
    deadline = soon(request)
    yield "open", grant
    while not (yield ("connect",)):
        if time.monotonic() >= deadline:
            raise Unanswered(f"The lockbrokerd at {request.path} does not accept connections.")
        yield "sleep", _PAUSE_S
    answers = [grant.expect(grant.greeted), *(grant.expect() for _ in greetings)]
    yield "send", [*greetings, words]
    for answer in answers[:-1]:
        try:
            value = yield "wait", answer, soon(request)
            check(value, _UNGREETED) if answer is answers[0] else check(value)
        except _errors.Draining as e:
            raise Ended(str(e)) from e
    if not isinstance(answers[0].value, dict):
        raise _errors.ProtocolError(f"the program that serves {request.path} does not greet as lockbrokerd does")
    return answers[-1]


def _open_s(request: Request) -> float:
    """For how long a broker is waited for that this process has never reached, if it is being started again."""
    text = os.environ.get("LOCKBROKER_OPEN_MS", "")
    return min(request.patience, int(text) / 1000) if text.isascii() and text.isdigit() else request.patience


class Retries:
    """
    When a broker that has ended is tried again: it may be away for as long as the patience allows. One that was never
    reached is tried again only if its socket is there.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._last = self._give_up = float("-inf")
        self._pause = _PAUSE_S

    def pause(self, why: Ended) -> Optional[float]:
        """After a failure: seconds until the next try, or None."""
        now, reached = time.monotonic(), self._request.path in _grant.reached
        if now - self._last > self._request.patience:
            patience = self._request.patience if reached else _open_s(self._request)
            self._give_up, self._pause = now + patience, _PAUSE_S
        self._last = now
        pause = self._pause
        if (isinstance(why, Absent) and not reached) or now + pause >= self._give_up:
            return None
        self._pause = min(2 * pause, _PAUSE_MAX_S)
        return pause


def ask(request: Request, words: Words) -> Script:
    """Any command that is answered at once, on a connection of its own. It is sent once: it may have been carried out."""
    retries = Retries(request)
    while True:
        grant = Grant(request)
        try:
            answer: Answer = yield from begin(grant, words)
            return check((yield "wait", answer, soon(request)))
        except Ended as e:
            pause = None if grant.ended else retries.pause(e)
            if pause is None:
                raise
        yield "sleep", pause


def acquire(request: Request) -> Script:
    """Returns the grant. If the broker ends while this waits, it goes on on the next connection, with what is left of the
    time."""
    end = None if request.wait is None else time.monotonic() + request.wait
    retries = Retries(request)
    while True:
        grant = Choice(request) if request.kind == "any" else Grant(request)
        try:
            yield from (_choose(grant, end) if isinstance(grant, Choice) else _attempt(grant, end))
            return grant
        except Ended as e:
            pause = retries.pause(e)
            if pause is None:
                raise
        yield "sleep", pause


def _attempt(grant: Grant, end: Optional[float]) -> Script:
    """On one connection."""
    request = grant.request
    sent = _page.clock()
    answer: Answer = yield from begin(grant, request.acquire(None if end is None else end - time.monotonic()))
    value = check((yield "wait", answer, None if end is None else end + request.patience))
    if value is None:
        raise _taken(request)
    yield from _granted(grant, _tokens(request, value), sent)


def _granted(grant: Grant, tokens: Dict[str, int], sent: int) -> Script:
    """The request was sent at that instant. Raises Lost if the grant is void already."""
    request = grant.request
    lease_ns = request.lease_ms * _NS_PER_MS
    grant.granted(tokens, sent + lease_ns if lease_ns else FOREVER)
    if lease_ns and _page.clock() >= sent + lease_ns // _LEASE_SLACK_PART:
        yield from renew(grant, request.lease_ms)
    yield from prove(grant)
    if grant.lost_reason:
        raise lost(grant)


def _choose(choice: Choice, end: Optional[float]) -> Script:
    """
    On one connection: each name is tried once, from any of them on; then all are queued for, and the first that is granted
    is kept. What else is granted is released.
    """
    request, sent = choice.request, _page.clock()
    first = random.randrange(len(request.names))
    names = request.names[first:] + request.names[:first]
    won, token, unknown = yield from _try_each(choice, names)
    if won is None and request.wait != 0:
        left = None if end is None else end - time.monotonic()
        sent = _page.clock()
        yield from _all_answered(choice, [request.one(name).enqueue(left) for name in names])
        won, token, unknown = yield from _first_granted(choice, None if end is None else end + request.patience)
        if won is not None:
            yield from _withdraw(choice, [name for name in names if name != won])
    if won is None:
        raise unknown or _taken(request)
    choice.chosen(won)
    yield from _granted(choice, {won: token}, sent)


def _try_each(choice: Choice, names: Tuple[str, ...]) -> Script:
    """The name and its token; or why it is unknown of one whether it is taken, if that is so."""
    unknown = None
    for name in names:
        words = choice.request.one(name).acquire(0)
        if name == names[0]:
            answer = yield from begin(choice, words)
        else:
            answer = choice.expect()
            yield "send", [words]
        try:
            token = check((yield "wait", answer, soon(choice.request)))
        except _errors.NotAvailable as e:
            if isinstance(e, (Ended, Unanswered, _errors.Draining)):
                raise
            unknown = e
            continue
        if token is not None:
            return name, token, None
    return None, 0, unknown


def _first_granted(choice: Choice, deadline: Optional[float]) -> Script:
    """As _try_each(), of what is queued for."""
    while True:
        for name, outcome in choice.outcomes.items():
            if isinstance(outcome, int):
                return name, outcome, None
        if len(choice.outcomes) == len(choice.request.names):
            return None, 0, next((e for e in choice.outcomes.values() if e is not None), None)
        yield "wait", choice.news, deadline
        check(choice.take())
        for outcome in choice.outcomes.values():
            if isinstance(outcome, Exception) and type(outcome) is not _errors.NotAvailable:
                raise outcome


def _withdraw(choice: Choice, names: List[str]) -> Script:
    """What was granted before it could be withdrawn is released; somebody may have taken it back by then."""
    yield from _all_answered(choice, [["CANCEL", name] for name in names])
    surplus: List[Words] = [["UNLOCK", name] for name in names if isinstance(choice.outcomes.get(name), int)]
    with contextlib.suppress(_errors.Lost, _errors.NotHeld):
        yield from _all_answered(choice, surplus)


def _all_answered(choice: Choice, requests: List[Words]) -> Script:
    answers = [choice.expect() for _ in requests]
    yield "send", requests
    failure = None
    for answer in answers:
        try:
            check((yield "wait", answer, soon(choice.request)))
        except _errors.LockBrokerError as e:
            failure = failure or e
    if failure:
        raise failure


def _taken(request: Request) -> _errors.Taken:
    what = str(request)
    if len(request.names) > 1:
        what = f"{'Each' if request.kind == 'any' else 'One'} of {what}"
    what = what[0].upper() + what[1:]
    if _grant.held_by_same(request):
        return _errors.Taken(f"{what} is held by this owner already: release it first.")
    if not request.wait:
        return _errors.Taken(f"{what} is held by somebody else.")
    return _errors.TimedOut(f"{what} is held by somebody else, and was held for {request.wait:g} s.")


def _tokens(request: Request, value: Any) -> Dict[str, int]:
    """By name. The answer to a request for several has one for each."""
    numbers = value if isinstance(value, list) and request.kind == "locks" else [value]
    if len(numbers) != len(request.names) or not all(isinstance(number, int) for number in numbers):
        raise _errors.ProtocolError(f"the broker's answer to a request for {request} is no number")
    return {} if request.kind == "semaphore" else dict(zip(request.names, numbers))


def prove(grant: Grant) -> Script:
    """Asks for what the page does not say: where it is now, and if there is none, for the proof."""
    for _ in range(_PAGES_MAX):
        if not grant.must_ask or grant.ended:
            break
        had_page = grant.has_page
        requests, answer = grant.question_and_answer()
        yield "send", requests
        try:
            yield "wait", answer, soon(grant.request)
        except Unanswered:
            grant.lose("unanswered")
            yield ("close",)
        if not had_page:
            break


def lost(grant: Grant) -> _errors.Lost:
    reason = grant.lost_reason or "session"
    return _errors.Lost(f"The grant of {grant.request} is void ({reason}): others may hold it.", reason)


def _of_held(grant: Grant, requests: List[Words]) -> Script:
    """Requests about what is held. What is not held any longer is lost for good: Lost."""
    if grant.lost_reason:
        raise lost(grant)
    answers = [grant.expect() for _ in requests]
    yield "send", requests
    try:
        for answer in answers:
            check((yield "wait", answer, soon(grant.request)))
    except Unanswered as e:
        grant.lose("unanswered")
        yield ("close",)
        raise lost(grant) from e
    except (Ended, _errors.Lost, _errors.NotHeld, _errors.ProtocolError) as e:
        grant.lose("session")
        raise lost(grant) from e
    if grant.lost_reason:
        raise lost(grant)


def renew(grant: Grant, lease_ms: int) -> Script:
    sent = _page.clock()
    yield from _of_held(grant, [["RENEW", name, lease_ms] for name in grant.request.names])
    grant.renewed(sent + lease_ms * _NS_PER_MS)


def downgrade(grant: Grant) -> Script:
    yield from _of_held(grant, [["DOWNGRADE", name] for name in grant.request.names])


def release(grant: Grant) -> Script:
    """Raises Lost if it was not held to the end. The caller closes the connection, which also releases it if the broker
    is silent: what is proven by then was held."""
    proven = grant.remaining() > 0
    try:
        if grant.lost_reason:
            raise lost(grant)
        answer = grant.expect()
        yield "send", [grant.request.release()]
        try:
            check((yield "wait", answer, soon(grant.request)))
        except Unanswered:
            if not proven:
                grant.lose("unanswered")
        except (Ended, _errors.Lost, _errors.NotHeld, _errors.ProtocolError):
            grant.lose("session")
        if grant.lost_reason:
            raise lost(grant)
    finally:
        grant.released()
