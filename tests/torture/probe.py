# SPDX-License-Identifier: Apache-2.0
"""Writes to each server of the ensemble all the time, past the links that are hurt. When no write is answered for long, then
no daemon could prove its session either, and what it lost meanwhile was not its fault: machines that do much else stand
still, and so do servers."""

import logging
import threading
import time

import kazoo.client
import kazoo.exceptions

import checker

PATH = "/probe"
SESSION_S = 5
logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # of what is done to the servers
PAUSE_S = 0.05


class Probe:
    """`stood(begin_ns, end_ns)` is called for each time in which nothing was answered for longer than limit_s(begin_ns)."""

    def __init__(self, servers, now_ns, limit_s, stood):
        self.now_ns, self.limit_s, self.stood = now_ns, limit_s, stood
        self.clients = [kazoo.client.KazooClient(hosts=s.address, timeout=SESSION_S) for s in servers]
        for c in self.clients:
            c.start_async()
        self.open = {}  # client -> (when it was sent, its answer)
        self.answered_ns = self.now_ns()  # the last write that was answered was sent then
        self.ending = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ending:
            for client in self.clients:
                self.look(client)
            time.sleep(PAUSE_S)  # a pace: of the servers it wants little

    def look(self, client):
        sent, answer = self.open.get(client, (0, None))
        if answer and not answer.ready():
            return
        if answer and (answer.successful() or isinstance(answer.exception, kazoo.exceptions.NoNodeError)):
            self.was_answered(sent)
        do = client.create_async if answer and not answer.successful() else client.set_async
        self.open[client] = self.now_ns(), do(PATH, b"")

    def was_answered(self, sent):
        if self.now_ns() - self.answered_ns > self.limit_s(self.answered_ns) * checker.SECOND:
            self.stood(self.answered_ns, self.now_ns())
        self.answered_ns = max(self.answered_ns, sent)

    def end(self):
        self.ending = True
        self.thread.join()
        for c in self.clients:
            c.stop()
            c.close()
