# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the objects of threads and those of asyncio have in common."""

from __future__ import annotations

import socket
from typing import Any, Dict, Generic, Optional, TypeVar

from . import _connect, _errors, _fork, _scripts
from ._grant import Grant
from ._request import Request


class Owner:
    """A connection, which owns what was granted on it. `lost` and `revoked` are events: of threads, or of a loop."""

    lost: Any
    revoked: Any

    def __init__(self, request: Request) -> None:
        self.request = request
        self.grant = Grant(request)
        self.forked = False
        self.closed = False
        self._socket: Optional[socket.socket] = None
        _fork.register(self)

    def inherited(self) -> None:
        """In a forked child: see _fork."""
        self.forked = True
        if self._socket:
            self._socket.close()

    def close(self) -> None:
        raise NotImplementedError

    def _open(self, grant: Grant) -> None:
        self.close()
        self.closed = False
        self.grant = grant
        grant.on_lost = self.lost.set
        grant.on_revoke = self.revoked.set

    def _connect(self) -> bool:
        with _fork.making:
            self._socket = _connect.connect(self.request.path)
        return self._socket is not None


W = TypeVar("W", bound=Owner)


class Holding(Generic[W]):
    """A grant, as far as looking at it goes."""

    def __init__(self, wire: W) -> None:
        self._wire = wire

    @property
    def name(self) -> str:
        """The name; of several locks, all with commas between them."""
        return self._wire.request.name

    @property
    def token(self) -> int:
        """
        The fencing token: larger than that of every earlier grant that conflicts. 0: permits have none. Several locks
        have one each: see tokens.
        """
        tokens = self.tokens
        if len(tokens) > 1:
            raise ValueError(f"several locks have a token each, see tokens: {self._wire.request}")
        return next(iter(tokens.values()), 0)

    @property
    def tokens(self) -> Dict[str, int]:
        """The fencing tokens by the names of the locks; permits have none."""
        return dict(self._wire.grant.tokens)

    @property
    def lost_reason(self) -> Optional[str]:
        """Why it was lost, as Lost.reason has it; None while no loss was seen."""
        return self._wire.grant.lost_reason

    @property
    def revoke_reason(self) -> Optional[str]:
        """What the one who asked for it back said; None while nobody did."""
        return self._wire.grant.revoke_reason

    def _own(self) -> W:
        if self._wire.forked:
            raise _fork.not_owner(self._wire.request)
        return self._wire

    def _held(self) -> W:
        wire = self._own()
        if wire.closed and not wire.grant.lost_reason:
            raise _errors.NotHeld(f"It was released already: {wire.request}.")
        return wire

    def valid(self) -> float:
        raise NotImplementedError

    def check(self) -> None:
        """Raises Lost unless valid() is above 0; NotHeld if it was released."""
        if self.valid() <= 0:
            if not self._wire.grant.held and not self._wire.grant.lost_reason:
                raise _errors.NotHeld(f"It was released already: {self._wire.request}.")
            raise _scripts.lost(self._wire.grant)

    def __repr__(self) -> str:
        wire = self._wire
        state = ("of the parent" if wire.forked else f"lost: {self.lost_reason}" if self.lost_reason
                 else f"tokens {self.tokens}" if wire.grant.held else "released")
        return f"<{type(self).__module__.replace('._sync', '')}.Held of {wire.request}, {state}>"
