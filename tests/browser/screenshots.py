# SPDX-License-Identifier: Apache-2.0
"""make screenshots: the pictures of docs/PAGE.md. Two daemons stand for two hosts, with a ZooKeeper of their own; commands hold locks and
wait for them, and after a minute, when the plots have begun, the page of one host is photographed. Argument: the folder."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import harness  # noqa: E402
import chromium  # noqa: E402

BYTES_MAX = 150 * 1024
LOAD_SECONDS = 60

# The host, the lock, the program that holds it or waits for it, and its text: in the order in which they ask.
COMMANDS = [
    ("web1", "backup/nightly", "pg_dump", "all databases"),
    ("web1", "backup/nightly", "backup-files", "/srv"),
    ("web2", "backup/nightly", "pg_dump", "archive"),
    ("web1", "backup/nightly", "backup-mail", ""),
    ("web1", "backup/nightly", "verify", "checksums of Sunday"),
    ("web2", "deploy/shop", "deploy", "release 4.2"),
    ("web1", "deploy/shop", "deploy", "release 4.3"),
    ("web1", "deploy/shop", "migrate", "table orders"),
    ("web1", "reports/monthly", "report", "November"),
    ("web1", "reports/monthly", "report", "December"),
    ("web1", "search/reindex", "indexer", "products"),
    ("web1", "mail/queue-07", "sender", ""),
    ("web1", "mail/queue-11", "sender", ""),
    ("web2", "billing/close-day", "billing", "2nd run"),
    ("web2", "cache/warm-up", "warm", ""),
]
PICTURES = [("overview", "/", 1280, 880), ("lock", "/lock?name=backup%2Fnightly", 1280, 800)]


def called(folder, program):
    """The path of a program that is called so, and ends when its input does."""
    path = os.path.join(folder, program)
    with contextlib.suppress(FileExistsError):
        os.symlink(shutil.which("cat"), path)
    return path


def load(daemon, name, stop, pause):
    with daemon.client() as client:
        while not stop.wait(pause):
            client.call("LOCK", name)
            client.call("UNLOCK", name)


def small(path):
    subprocess.run(["pngquant", "--force", "--output", path, "--strip", "--speed", "1", "64", path], check=True)
    size = os.path.getsize(path)
    print(f"{path}: {size // 1024} KB")
    assert size <= BYTES_MAX, path


def photograph(browser, page, folder):
    for name, address, width, height in PICTURES:
        for scheme in ("light", "dark"):
            browser.look(width, height, scheme)
            page.show(address)
            page.wait("document.querySelector('#queue .process') || document.getElementById('rows').textContent.includes('cache/')")
            page.wait("document.getAnimations().length > 0", "the bar")
            path = os.path.join(folder, f"page-{name}-{scheme}.png")
            browser.driver.save_screenshot(path)
            small(path)


def main(folder):
    sweeper = harness.begin_run()
    with contextlib.ExitStack() as ends:
        ends.callback(sweeper.stdin.close)
        server = harness.Zookeeper()
        ends.callback(server.end)
        daemons = {host: harness.Daemon(server, root="/shown", host=host) for host in ("web1", "web2")}
        for daemon in daemons.values():
            ends.callback(daemon.end)
        browser = chromium.Browser()
        ends.callback(browser.end)
        page = chromium.Page(browser, daemons["web1"])
        ends.callback(page.end)
        programs = harness.fast_tmp("programs.")
        commands = []
        for host, name, program, text in COMMANDS:
            options = ["--no-fork", *(["-d", text] if text else [])]
            commands.append(chromium.Command(daemons[host], name, *options, argv=[called(programs, program)]))
            ends.callback(commands[-1].end)
        ends.callback(lambda: [command.release() for command in commands])
        stop = threading.Event()
        threads = [threading.Thread(target=load, args=(daemons["web1"], f"jobs/{i}", stop, 0.01 * (i + 1))) for i in range(4)]
        threads += [threading.Thread(target=load, args=(daemons["web1"], "jobs/0", stop, 0.02)) for _ in range(3)]
        for thread in threads:
            thread.start()
        ends.callback(lambda: [thread.join() for thread in threads])
        ends.callback(stop.set)
        stop.wait(LOAD_SECONDS)
        photograph(browser, page, folder)


if __name__ == "__main__":
    main(sys.argv[1])
