# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Locks, semaphores and elections for threads."""

from __future__ import annotations

import dataclasses
import threading
from types import TracebackType
from typing import Any, Generator, Optional, Type, Union

from . import _fork, _scripts
from ._entered import Entered
from ._held import Holding
from ._observe import Leader, Observer, leader_of
from ._request import PATIENCE_S, Request, group_of_thread, milliseconds, request
from ._wire import Wire


class Held(Holding[Wire]):
    """
    A grant, and the connection that owns it. It ends with release(), at the end of its `with`, with the process, or when
    nobody has this object any longer. Threads may share it. In a forked child each use of it raises NotOwner.
    """

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._releasing = threading.Lock()

    def valid(self) -> float:
        """
        For how many seconds from now the grant is still proven to be safe, or the rest of its lease if that is less. 0.0:
        it is void, was released, or is not proven any longer; of several locks, one of them is. math.inf: it cannot run out
        (standalone, no lease).

        It reads what has been received, and the page of memory in which the broker keeps its proof. So it does not wait,
        and is right also while the broker hangs. Only where there is no such page, or the broker was killed and all that
        it had proven has run out since, it asks the broker, and waits at most for the patience. Raises NotOwner.
        """
        wire = self._own()
        wire.pump()
        if wire.grant.must_ask:
            if wire.grant.has_page and wire.grant.remaining() > 0:
                wire.ask()
            else:
                with wire.turn():
                    wire.run(_scripts.prove(wire.grant))
        return wire.grant.seconds()

    @property
    def lost(self) -> threading.Event:
        """
        Set when the grant is void: stop. A thread of the library sets it, which the first use of this starts; it does so
        also when the broker hangs for longer than it has proven. Ask valid() before a step that matters. Raises NotOwner.
        """
        self._own().watch()
        return self._wire.lost

    @property
    def revoked(self) -> threading.Event:
        """Set when somebody asks for it back: release it when you can. Nothing is taken away. As for `lost`."""
        self._own().watch()
        return self._wire.revoked

    def renew(self, lease: float) -> None:
        """Restarts the lease: it ends that many seconds from now. Raises Lost, NotHeld, NotOwner."""
        wire, lease_ms = self._held(), milliseconds(lease, "lease", 1)
        with wire.turn():
            wire.run(_scripts.renew(wire.grant, lease_ms))

    def downgrade(self) -> None:
        """Shares it from now on; it is not free in between, and the token stays. Raises as renew() does."""
        wire = self._held()
        with wire.turn():
            wire.run(_scripts.downgrade(wire.grant))

    def release(self) -> None:
        """
        Returns when the lock has been passed on. Raises Lost if it was not held all the time: what was done under it is in
        doubt. Also then nothing is held any longer. Raises NotHeld the second time, and NotOwner.
        """
        self._own()
        with self._releasing:
            wire = self._held()
            if wire.closed:
                raise _scripts.lost(wire.grant)
            try:
                with wire.turn():
                    wire.run(_scripts.release(wire.grant))
            finally:
                wire.close()

    def close(self) -> None:
        """Releases it without waiting for the broker. Raises nothing, and may be done again, or in a forked child."""
        self._wire.close()

    def __enter__(self) -> Held:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        """What the block has raised goes on; otherwise, a loss is raised."""
        if kind is not None:
            self.close()
        elif self._wire.forked or not self._wire.closed or self._wire.grant.lost_reason:
            self.release()


class Lock(Entered[Held]):
    """
    What lock(), lock_all(), lock_any(), semaphore() and election() make. It holds nothing by itself and may be shared: each
    `with`, and each acquire(), is a connection and so an owner of its own.
    """

    def acquire(self) -> Held:
        """
        Waits for its turn, without the interpreter's lock. What interrupts it, such as KeyboardInterrupt, withdraws the
        request; nothing is held then. Raises Taken or TimedOut, NotAvailable, Deadlock, Denied, or another
        LockBrokerError.
        """
        what = self._request
        if what.group is None:
            what = dataclasses.replace(what, group=group_of_thread())
        wire = Wire(what)
        try:
            wire.request = wire.run(_scripts.acquire(what)).request
        except BaseException:
            wire.close()
            raise
        return Held(wire)

    def __enter__(self) -> Held:
        held = self.acquire()
        self._push(threading.get_ident(), held)
        return held

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._pop(threading.get_ident()).__exit__(kind, value, trace)


def lock(name: str, *, shared: bool = False, wait: Optional[float] = None, lease: Optional[float] = None,
         data: Optional[str] = None, socket: Optional[str] = None, patience: float = PATIENCE_S,
         group: Optional[str] = None) -> Lock:
    """
    A lock: `with lockbroker.lock("orders") as held:`

    shared: together with all others that only read. wait: seconds; None: for ever; 0: only if it is free now. lease:
    seconds after which the broker takes it back by itself; None: it lives as long as the connection. data: a text of 1
    to 512 bytes that HOLDERS shows. socket: a path, "user" or "@NAME"; None: $LOCKBROKER_SOCKET, or
    /run/lockbroker/lockbroker.sock. patience: seconds for an answer that should come at once, and for a broker that is not
    there. group: the lock group, see PROTOCOL.md; None: that of this thread or task, so that locks which wait for each other
    in a circle raise Deadlock; "": none, for locks that another thread releases.
    """
    return Lock(request("lock", [name], socket, shared=shared, wait=wait, lease=lease, data=data, patience=patience,
                        group=group))


def lock_all(*names: str, shared: bool = False, wait: Optional[float] = None, lease: Optional[float] = None,
             socket: Optional[str] = None, patience: float = PATIENCE_S, group: Optional[str] = None) -> Lock:
    """
    Up to 64 locks, all or none: `with lockbroker.lock_all("accounts/7", "accounts/9") as held:`. Two callers that name
    the same locks, in any order, never deadlock. wait is the time for all together. The loss of one is the loss of
    all; `held.tokens` has the token of each. As lock().
    """
    return Lock(request("locks", names, socket, shared=shared, wait=wait, lease=lease, patience=patience, group=group))


def lock_any(*names: str, shared: bool = False, wait: Optional[float] = None, lease: Optional[float] = None,
             data: Optional[str] = None, socket: Optional[str] = None, patience: float = PATIENCE_S,
             group: Optional[str] = None) -> Lock:
    """
    One of up to 64 locks, such as a port or a device: `with lockbroker.lock_any("gpu/0", "gpu/1") as held:`; held.name says
    which. First each is tried, from any of them on; if none is free, it queues for all, and keeps the first
    that is granted. Deadlock is never raised, since any of them may become free: give it a `wait` where the thread holds
    other locks. As lock().
    """
    return Lock(request("any", names, socket, shared=shared, wait=wait, lease=lease, data=data, patience=patience,
                        group=group))


def semaphore(name: str, limit: int, *, count: int = 1, wait: Optional[float] = None, lease: Optional[float] = None,
              socket: Optional[str] = None, patience: float = PATIENCE_S, group: Optional[str] = None) -> Lock:
    """`count` permits of a semaphore of `limit`, on which all its users agree (else Mismatch). As lock()."""
    return Lock(request("semaphore", [name], socket, limit=limit, count=count, wait=wait, lease=lease, patience=patience,
                        group=group))


def election(name: str, data: str, *, wait: Optional[float] = None, socket: Optional[str] = None,
             patience: float = PATIENCE_S, group: Optional[str] = None) -> Lock:
    """The leadership of an election; everybody may read the leader's `data`, by leader() or observe(). As lock()."""
    return Lock(request("election", [name], socket, data=data, wait=wait, patience=patience, group=group))


def ask(command: str, *words: Union[str, int], socket: Optional[str] = None, patience: float = PATIENCE_S) -> Any:
    """
    The answer to a command of PROTOCOL.md that is answered at once, such as ask("HOLDERS", "orders"), on a connection of
    its own: as str, int, None, list or dict. A broker that is away is waited for, but nothing is sent twice: after NoBroker
    it may have been carried out.
    """
    what = request("lock", [command], socket, patience=patience)
    wire = Wire(what)
    try:
        return wire.run(_scripts.ask(what, [command, *words]))
    finally:
        wire.close()


def leader(name: str, *, socket: Optional[str] = None, patience: float = PATIENCE_S) -> Optional[Leader]:
    """Who leads now, on whichever host; None: nobody."""
    return leader_of(ask("LEADER", name, socket=socket, patience=patience))


def observe(name: str, *, socket: Optional[str] = None,
            patience: float = PATIENCE_S) -> Generator[Optional[Leader], None, None]:
    """
    Who leads now, as soon as that is known, and then each change: `for leader in lockbroker.observe("scheduler"):`. None:
    nobody leads. Of changes that were not taken in time only the last may be told. If the broker ends it goes on with the
    next one; raises NoBroker if there is none for as long as the patience.
    """
    return _observed(request("election", [name], socket, patience=patience))


def _observed(what: Request) -> Generator[Optional[Leader], None, None]:
    wire, observer = Wire(what), Observer(what)
    try:
        while True:
            yield wire.run(observer.next())
            if wire.forked:
                raise _fork.not_owner(what)
    finally:
        wire.close()
