# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Waits for descriptors: of a thread, or of one greenlet alone where gevent or eventlet has patched the modules. Both take
epoll out of `select`, because a wait in it would stop all greenlets; eventlet takes poll() as well.
"""

from __future__ import annotations

import importlib.util
import select


def wait(fd: int, events: int, seconds: float) -> None:
    """Until the descriptor has one of these, POLLIN or POLLOUT, or the time is over."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(fd, events)
        poll.poll(seconds * 1000)
    else:  # of any number of descriptors, since it is eventlet's
        select.select([fd] if events & select.POLLIN else [], [fd] if events & select.POLLOUT else [], [], seconds)


def epoll() -> select.epoll:
    """For looks at descriptors that do not wait. To wait for one of them, wait for its own descriptor."""
    if hasattr(select, "epoll"):
        return select.epoll()
    spec = importlib.util.find_spec("select")
    assert spec and spec.loader
    unpatched = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(unpatched)
    made: select.epoll = unpatched.epoll()
    return made
