# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What can go wrong, as exceptions. The text of each is a sentence: what happened, to which name, what to do."""

from __future__ import annotations

from typing import Dict, Tuple, Type


class LockBrokerError(Exception):
    """The base of all the others."""


class NotAvailable(LockBrokerError):
    """It cannot be had now, and is not known to be taken: there is no broker, or it cannot ask ZooKeeper."""


class NoBroker(NotAvailable, ConnectionError):
    """No lockbrokerd serves the socket, or it did not answer in time."""


class Draining(NotAvailable):
    """The broker is stopping, or operators drain it: it grants nothing."""


class Taken(LockBrokerError):
    """Somebody else holds it, or waits for it. Nothing stays queued."""


class TimedOut(Taken, TimeoutError):
    """It was still taken when the time to wait was over. Nothing stays queued."""


class Lost(LockBrokerError):
    """
    The grant is void, and what was done under it since `lost` was set is in doubt.

    `reason`: "session" (the proof of the session ran out), "deleted" (somebody deleted its znode), "lease", "limit",
    "forced" (an operator took it), "connection" (the broker ended), or "unanswered" (it is silent, and cannot prove it).
    """

    def __init__(self, sentence: str, reason: str = "session") -> None:
        super().__init__(sentence)
        self.reason = reason


class NotHeld(LockBrokerError):
    """It was released already."""


class NotOwner(LockBrokerError):
    """This process is a forked child. What its parent holds is its parent's."""


class Deadlock(LockBrokerError):
    """To wait would be to wait for oneself, or for each other in a circle. Release what is held, and start again."""


class Denied(LockBrokerError, PermissionError):
    """Not allowed for this user."""


class BadName(LockBrokerError, ValueError):
    """Not a lock name: 1..512 bytes of UTF-8, no control characters, not "." or ".."."""


class LimitReached(LockBrokerError):
    """A limit of the broker is reached; the sentence names it."""


class Mismatch(LockBrokerError):
    """The name is of another kind, or the semaphore has another limit."""


class Refused(LockBrokerError):
    """The broker did not accept the request for another reason."""


class ProtocolError(LockBrokerError):
    """Whoever answered does not speak the protocol of lockbrokerd."""


OF_CODE: Dict[str, Type[LockBrokerError]] = {
    "ERR": Refused, "BADNAME": BadName, "HELD": Refused, "NOTHELD": NotHeld, "LOST": Lost, "DEADLOCK": Deadlock,
    "LIMIT": LimitReached, "DENIED": Denied, "MISMATCH": Mismatch, "UNAVAILABLE": NotAvailable, "DRAINING": Draining,
    "NOPROTO": Refused,
    "NOSCRIPT": Refused,
}


def public(kind: Type[LockBrokerError], name: str) -> None:
    """What tracebacks and pickles call it: as programs import it."""
    kind.__module__, kind.__name__, kind.__qualname__ = "lockbroker", name, name


_OTHERS: Tuple[Type[LockBrokerError], ...] = (LockBrokerError, NoBroker, ProtocolError, TimedOut, Taken, NotOwner)
for _kind in (*_OTHERS, *OF_CODE.values()):
    public(_kind, _kind.__name__)


def of_reply(text: str) -> LockBrokerError:
    """The exception of an error reply, whose first word is its code. A code of a newer broker is a Refused."""
    code, _, sentence = text.partition(" ")
    kind = OF_CODE.get(code)
    return kind(sentence or text) if kind else Refused(text)
