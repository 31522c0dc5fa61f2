# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The same for asyncio:

    async with lockbroker.aio.lock("orders") as held:
        await work(held.token)

Options and exceptions are those of the package. A task that is cancelled while it waits withdraws its request.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket as sockets
import time
import weakref
from types import TracebackType
from typing import Any, AsyncGenerator, Callable, Dict, Iterable, Optional, Tuple, Type, Union

from . import _connect, _fork, _resp, _scripts, _watcher
from ._entered import Entered
from ._grant import Answer, Unanswered
from ._held import Holding, Owner
from ._observe import Leader, Observer, leader_of
from ._page import FOREVER
from ._request import PATIENCE_S, Request, Words, milliseconds, new_group, request
from ._scripts import Script

__all__ = ["Held", "Leader", "Lock", "ask", "election", "leader", "lock", "lock_all", "lock_any", "observe", "semaphore"]

_groups: "weakref.WeakKeyDictionary[asyncio.Task[Any], str]" = weakref.WeakKeyDictionary()


def _group_of_task() -> str:
    task = asyncio.current_task()
    assert task is not None
    return _groups.setdefault(task, new_group())


def _drop(loop: asyncio.AbstractEventLoop, made: sockets.socket) -> None:
    if made.fileno() >= 0:
        loop.remove_reader(made.fileno())
        loop.remove_writer(made.fileno())
        made.close()


class _Wire(Owner):
    """A connection on an event loop: it runs the scripts of _scripts. The loop reads it all the time."""

    def __init__(self, what: Request) -> None:
        super().__init__(what)
        self.lost: asyncio.Event = asyncio.Event()
        self.revoked: asyncio.Event = asyncio.Event()
        self.turn = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._unsent = bytearray()
        self._more: Optional[asyncio.Future[None]] = None
        self._timer: Optional[asyncio.TimerHandle] = None

    def __del__(self) -> None:
        """The loop keeps only a weak reference. What nobody has any longer is released, whichever thread notices."""
        made = getattr(self, "_socket", None)
        if made and made.fileno() >= 0 and not self.forked and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_drop, self._loop, made)

    async def run(self, script: Script) -> Any:
        try:
            step = next(script)
            while True:
                try:
                    result = await self._perform(step)
                except BaseException as e:
                    step = script.throw(e)
                else:
                    step = script.send(result)
        except StopIteration as end:
            return end.value

    async def _perform(self, step: Tuple[Any, ...]) -> Any:
        what, *args = step
        steps: Dict[str, Callable[..., Any]] = {"open": self._open, "connect": self._connect, "send": self._send,
                                                "wait": self._wait, "sleep": asyncio.sleep, "close": self.close}
        result = steps[what](*args)
        return await result if asyncio.iscoroutine(result) else result

    def _connect(self) -> bool:
        connected = super()._connect()
        if self._socket:
            self._loop.add_reader(self._socket.fileno(), _call, weakref.ref(self), _Wire.receive)
        return connected

    def _send(self, requests: Iterable[Words]) -> None:
        """Whoever waits for the answer also waits until all is sent."""
        self._unsent += b"".join(_resp.encode(*words) for words in requests)
        self.flush()

    def flush(self) -> None:
        """Sends what the socket takes, and the rest when it takes more."""
        if not self._socket or self._socket.fileno() < 0:
            return
        try:
            while self._unsent:
                del self._unsent[:self._socket.send(self._unsent, sockets.MSG_NOSIGNAL)]
        except BlockingIOError:
            self._loop.add_writer(self._socket.fileno(), _call, weakref.ref(self), _Wire.flush)
            return
        except OSError:
            self._unsent.clear()  # a broker that refuses a client says why before it closes: the reader finds it
        self._loop.remove_writer(self._socket.fileno())

    async def _wait(self, answer: Answer, deadline: Optional[float]) -> Any:
        while not answer.done:
            if self._more is None:
                self._more = self._loop.create_future()
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise Unanswered(_connect.SILENT.format(self.request.path))
            await asyncio.wait([self._more], timeout=left)
        return answer.value

    def receive(self) -> None:
        """Reads what has come."""
        while self._socket and not self.grant.ended:
            try:
                data = self._socket.recv(_connect.RECEIVE_BYTES)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            self.grant.feed(data)
        if self.grant.ended and self._socket and self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
        if self._more and not self._more.done():
            self._more.set_result(None)
        self._more = None

    def tick(self) -> None:
        """Sees what ran out, and comes back before the next proof can."""
        if self._timer:
            self._timer.cancel()
        if self.forked or self.closed:
            return
        delay = self.grant.look()
        if delay == FOREVER:
            return
        self._send(self.grant.question())
        self._timer = self._loop.call_later(_watcher.seconds(delay), _call, weakref.ref(self), _Wire.tick)

    def close(self) -> None:
        """What it holds is released, or was lost before."""
        self.closed = True
        if self._timer:
            self._timer.cancel()
        if self._socket and self._socket.fileno() >= 0:
            if self._loop.is_closed():
                self._socket.close()
            else:
                _drop(self._loop, self._socket)
        self._unsent.clear()
        self.grant.released()
        self.grant.end()
        if self._more and not self._more.done():
            self._more.set_result(None)
        self._more = None


def _call(ref: weakref.ref[_Wire], method: Callable[[_Wire], None]) -> None:
    """The poll of a loop is shared between a forked child and its parent, and is left alone."""
    wire = ref()
    if wire and not wire.forked:
        method(wire)


class Held(Holding[_Wire]):
    """A grant, and the connection that owns it: lockbroker.Held for one event loop. Tasks of that loop may share it."""

    def valid(self) -> float:
        """
        Seconds for which the grant is proven, as lockbroker.Held.valid(). It never waits: where the page cannot tell, it
        is what the broker was last asked in the background, counted from the question. Raises NotOwner.
        """
        wire = self._own()
        wire.receive()
        left = wire.grant.seconds()
        if wire.grant.must_ask:
            wire.tick()
        return left

    @property
    def lost(self) -> asyncio.Event:
        """Set when the grant is void, also when the broker hangs for longer than it has proven. Raises NotOwner."""
        return self._own().lost

    @property
    def revoked(self) -> asyncio.Event:
        """Set when somebody asks for it back: release it when you can. Raises NotOwner."""
        return self._own().revoked

    async def renew(self, lease: float) -> None:
        """Restarts the lease: it ends that many seconds from now. Raises Lost, NotHeld, NotOwner."""
        wire, lease_ms = self._held(), milliseconds(lease, "lease", 1)
        async with wire.turn:
            await wire.run(_scripts.renew(wire.grant, lease_ms))
        wire.tick()

    async def downgrade(self) -> None:
        """Shares it from now on; the token stays. Raises as renew() does."""
        wire = self._held()
        async with wire.turn:
            await wire.run(_scripts.downgrade(wire.grant))

    async def release(self) -> None:
        """
        Returns when the lock has been passed on. Raises Lost if it was not held all the time; also then, and if it is
        cancelled, nothing is held any longer. Raises NotHeld the second time, and NotOwner.
        """
        wire = self._held()
        if wire.closed:
            raise _scripts.lost(wire.grant)
        try:
            async with wire.turn:
                if wire.closed:
                    self._held()
                wire.receive()
                await wire.run(_scripts.release(wire.grant))
        finally:
            wire.close()

    def close(self) -> None:
        """Releases it without waiting for the broker. Raises nothing, and may be done again."""
        if not self._wire.forked:
            self._wire.close()

    async def __aenter__(self) -> Held:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        """What the block has raised goes on; otherwise, a loss is raised."""
        if kind is not None:
            self.close()
        elif self._wire.forked or not self._wire.closed or self._wire.grant.lost_reason:
            await self.release()


class Lock(Entered[Held]):
    """What lock() and its like make: as lockbroker.Lock, with `async with` and `await acquire()`."""

    async def acquire(self) -> Held:
        """Waits for its turn. If it is cancelled, the request is withdrawn and nothing is held."""
        what = self._request
        if what.group is None:
            what = dataclasses.replace(what, group=_group_of_task())
        wire = _Wire(what)
        try:
            wire.request = (await wire.run(_scripts.acquire(what))).request
        except BaseException:
            wire.close()
            raise
        wire.tick()
        return Held(wire)

    async def __aenter__(self) -> Held:
        held = await self.acquire()
        self._push(asyncio.current_task(), held)
        return held

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self._pop(asyncio.current_task()).__aexit__(kind, value, trace)


def lock(name: str, *, shared: bool = False, wait: Optional[float] = None, lease: Optional[float] = None,
         data: Optional[str] = None, socket: Optional[str] = None, patience: float = PATIENCE_S,
         group: Optional[str] = None) -> Lock:
    """As lockbroker.lock()."""
    return Lock(request("lock", [name], socket, shared=shared, wait=wait, lease=lease, data=data, patience=patience,
                        group=group))


def lock_all(*names: str, shared: bool = False, wait: Optional[float] = None, lease: Optional[float] = None,
             socket: Optional[str] = None, patience: float = PATIENCE_S, group: Optional[str] = None) -> Lock:
    """As lockbroker.lock_all()."""
    return Lock(request("locks", names, socket, shared=shared, wait=wait, lease=lease, patience=patience, group=group))


def lock_any(*names: str, shared: bool = False, wait: Optional[float] = None, lease: Optional[float] = None,
             data: Optional[str] = None, socket: Optional[str] = None, patience: float = PATIENCE_S,
             group: Optional[str] = None) -> Lock:
    """As lockbroker.lock_any()."""
    return Lock(request("any", names, socket, shared=shared, wait=wait, lease=lease, data=data, patience=patience,
                        group=group))


def semaphore(name: str, limit: int, *, count: int = 1, wait: Optional[float] = None, lease: Optional[float] = None,
              socket: Optional[str] = None, patience: float = PATIENCE_S, group: Optional[str] = None) -> Lock:
    """As lockbroker.semaphore()."""
    return Lock(request("semaphore", [name], socket, limit=limit, count=count, wait=wait, lease=lease, patience=patience,
                        group=group))


def election(name: str, data: str, *, wait: Optional[float] = None, socket: Optional[str] = None,
             patience: float = PATIENCE_S, group: Optional[str] = None) -> Lock:
    """As lockbroker.election()."""
    return Lock(request("election", [name], socket, data=data, wait=wait, patience=patience, group=group))


async def ask(command: str, *words: Union[str, int], socket: Optional[str] = None, patience: float = PATIENCE_S) -> Any:
    """As lockbroker.ask()."""
    what = request("lock", [command], socket, patience=patience)
    wire = _Wire(what)
    try:
        return await wire.run(_scripts.ask(what, [command, *words]))
    finally:
        wire.close()


async def leader(name: str, *, socket: Optional[str] = None, patience: float = PATIENCE_S) -> Optional[Leader]:
    """As lockbroker.leader()."""
    return leader_of(await ask("LEADER", name, socket=socket, patience=patience))


def observe(name: str, *, socket: Optional[str] = None,
            patience: float = PATIENCE_S) -> AsyncGenerator[Optional[Leader], None]:
    """As lockbroker.observe(): `async for leader in lockbroker.aio.observe("scheduler"):`"""
    return _observed(request("election", [name], socket, patience=patience))


async def _observed(what: Request) -> AsyncGenerator[Optional[Leader], None]:
    wire, observer = _Wire(what), Observer(what)
    try:
        while True:
            yield await wire.run(observer.next())
            if wire.forked:
                raise _fork.not_owner(what)
    finally:
        wire.close()
