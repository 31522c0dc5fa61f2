# SPDX-License-Identifier: Apache-2.0
"""The page of `lockbroker http --page` in a Chromium, with ten thousand locks: how soon it shows one that is waited for, and how long
a frame takes while it is scrolled."""

import contextlib
import os
import shutil
import statistics
import sys
import time

import handovers
import measure
import targets
from services import harness

sys.path.append(os.path.join(harness.SOURCE, "tests", "browser"))

import chromium  # noqa: E402

LOCKS, TIMES, QUICK_TIMES, FRAMES = 10000, 20, 5, 300

# When the first row is that of a lock, by the clock that this host has as well.
APPEARS = """
const [name, done] = arguments, rows = document.getElementById('rows');
const look = () => {
    if ([...rows.querySelectorAll('.name')].some((cell) => cell.textContent === name)) {
        observer.disconnect();
        done(performance.timeOrigin + performance.now());
    }
};
const observer = new MutationObserver(look);
observer.observe(rows, { childList: true, subtree: true, characterData: true });
look();
"""
SCROLL = """
const [frames, done] = arguments, scroller = document.getElementById('scroller'), took = [];
let before = performance.now();
const next = (now) => {
    took.push(now - before);
    before = now;
    if (took.length > frames)
        done(took.slice(1));
    else {
        scroller.scrollTop += 100;
        requestAnimationFrame(next);
    }
};
requestAnimationFrame(next);
"""


def appears(page, daemon, name):
    with daemon.client() as holder, daemon.client() as waiter:
        holder.call("LOCK", name)
        began = time.time()
        waiter.send("LOCK", name)
        shown_ms = page.driver.execute_async_script(APPEARS, name)
        return shown_ms - began * 1000


def look(bench, browser):
    with measure.serving(bench, under=bench.under) as (daemon, made), contextlib.ExitStack() as stack:
        handovers.fill(daemon, made, LOCKS // 1000, LOCKS)
        page = chromium.Page(browser, daemon)
        stack.callback(page.end)
        page.show("/?sort=name")
        page.wait(f"document.getElementById('count').textContent === '{LOCKS:,} locks'")
        frames = sorted(page.driver.execute_async_script(SCROLL, FRAMES))
        page.show("/")
        times = [appears(page, daemon, f"new {i}") for i in range(QUICK_TIMES if bench.quick else TIMES)]
        bench.results.add("seen", f"{LOCKS} locks", targets.PAGE,
                          {"appears_ms": statistics.median(times), "appears_most_ms": max(times), "frame_ms": frames[len(frames) // 2],
                           "frame_p99_ms": frames[len(frames) * 99 // 100]})


def seen(bench):
    if not chromium.webdriver or not all(map(shutil.which, ("chromium", "chromedriver"))):
        bench.results.notes.append("the page: left out, there is no Chromium (sh tests/deps.sh browser)")
        return
    browser = chromium.Browser()
    try:
        browser.look(1280, 800, "light")
        measure.attempt(bench, "the page", lambda: look(bench, browser))
    finally:
        browser.end()
