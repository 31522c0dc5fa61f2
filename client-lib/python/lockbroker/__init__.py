# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Locks among the processes of a host and among hosts, through the lockbrokerd of this host.

    with lockbroker.lock("orders") as held:
        work(held.token)            # the resource refuses smaller tokens than it has seen
        if not held.valid():        # before a step that cannot be undone
            raise SystemExit("the lock was lost")

At the end of the block Lost is raised if the lock was not held all the time. lockbroker.aio is the same for asyncio.
"""

from . import aio
from ._errors import (BadName, Deadlock, Denied, Draining, LimitReached, LockBrokerError, Lost, Mismatch, NoBroker,
                      NotAvailable, NotHeld, NotOwner, ProtocolError, Refused, Taken, TimedOut)
from ._observe import Leader
from ._sync import Held, Lock, ask, election, leader, lock, lock_all, lock_any, observe, semaphore

__all__ = [
    "BadName", "Deadlock", "Denied", "Draining", "Held", "Leader", "LimitReached", "Lock", "LockBrokerError", "Lost",
    "Mismatch", "NoBroker", "NotAvailable", "NotHeld", "NotOwner", "ProtocolError", "Refused", "Taken", "TimedOut",
    "aio", "ask", "election", "leader", "lock", "lock_all", "lock_any", "observe", "semaphore",
]
