# SPDX-License-Identifier: Apache-2.0
"""A network that can be hurt: TCP proxies on the loopback interface, all served by one thread."""

import asyncio
import socket
import struct
import threading

PIECE = 16384  # at most so much is in the proxy's hands
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST and forgets what was not sent


class Link:
    """Where one party connects to reach another. Its methods may be called from any thread.

    hold():    nothing passes any more, in neither direction, nor is anything closed; release() lets all of it go on
    deafen():  what the connecting party says passes, what it is answered is lost, until reset()
    refuse():  all connections are reset, and new ones too, until release()
    delay(s):  everything arrives that much later
    throttle(n): so many bytes a second pass in each direction of a connection, one after the other; 0: as many as come
    """

    def __init__(self, loop, port, patience_s):
        self.loop = loop
        self.target = port
        self.patience_s = patience_s
        self.port = None
        self.refusing = self.deaf = False
        self.delay_s = 0
        self.bytes_s = 0
        self.refused = 0  # connections
        self.passed = [0, 0]  # bytes: of the connecting party, and of the answers
        self.open = None
        self.writers = set()
        self.tasks = set()

    async def serve(self):
        self.open = asyncio.Event()
        self.open.set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    def _do(self, action, *args):
        done = threading.Event()

        def run():
            action(*args)
            done.set()

        self.loop.call_soon_threadsafe(run)
        assert done.wait(30), "the proxies' thread is stuck"

    def hold(self):
        self._do(self.open.clear)

    def deafen(self):
        self._do(setattr, self, "deaf", True)

    def delay(self, seconds):
        self._do(setattr, self, "delay_s", seconds)

    def throttle(self, bytes_s):
        self._do(setattr, self, "bytes_s", bytes_s)

    def refuse(self):
        self._do(setattr, self, "refusing", True)
        self.reset()

    def reset(self):
        self._do(self._reset)

    def release(self):
        self._do(self._release)

    def _reset(self):
        self.deaf = False
        for writer in list(self.writers):
            self._abort(writer)

    def _release(self):
        self.refusing = False
        self.delay_s = 0
        self.open.set()

    @staticmethod
    def _abort(writer):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.transport.abort()

    async def _accept(self, reader, writer):
        if self.refusing:
            self.refused += 1
            self._abort(writer)
            return
        self.writers.add(writer)
        far = None
        try:
            await self.open.wait()
            far_reader, far = await self._reach()
            self.writers.add(far)
            await asyncio.gather(self._pump(reader, far, False), self._pump(far_reader, writer, True))
        except OSError:
            pass  # the one end hears of the other's
        finally:
            for w in (writer, far):
                if w:
                    self.writers.discard(w)
                    w.transport.abort()

    async def _reach(self):
        """Some give up when a connection ends at once, but not when it is refused, which no link can do for another."""
        end = self.loop.time() + self.patience_s
        while True:
            try:
                return await asyncio.open_connection("127.0.0.1", self.target)
            except OSError:
                if self.loop.time() >= end:
                    raise
                await asyncio.sleep(0.02)  # a server that is not there yet tells nobody when it is

    async def _pump(self, reader, writer, is_answer):
        """Ends with an error at the end of the stream: a connection is closed as a whole."""
        idle_at = 0  # when all that came before has passed
        while True:
            data = await reader.read(PIECE)
            await self.open.wait()
            if self.bytes_s:
                idle_at = max(idle_at, self.loop.time()) + len(data) / self.bytes_s
                await asyncio.sleep(idle_at - self.loop.time())  # a slow link
            self.passed[is_answer] += len(data)
            if self.delay_s:
                await asyncio.sleep(self.delay_s)  # a long one
            if not data:
                raise ConnectionResetError
            if not (is_answer and self.deaf):
                writer.write(data)
                await writer.drain()


class Network:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def link(self, port, patience_s=0):
        """A new Link to that port, where somebody may only begin to listen within that time."""
        made = Link(self.loop, port, patience_s)
        asyncio.run_coroutine_threadsafe(made.serve(), self.loop).result(30)
        return made
