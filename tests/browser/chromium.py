# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, by its chromedriver, and what it looks at: the page of `lockbroker http --page`. Its profile is below the folder
of the run; all its processes end with the process that started it, however that one ends."""

import contextlib
import json
import os
import re
import shutil
import subprocess

try:
    from selenium import webdriver
    from selenium.common.exceptions import JavascriptException, StaleElementReferenceException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:  # the tests are skipped
    webdriver = None

import harness

LOCKBROKER = harness.program("lockbroker")
# It looks for updates otherwise, and asks strangers whether a page is safe.
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--no-first-run", "--no-default-browser-check", "--no-proxy-server",
             "--disable-features=Translate,OptimizationHints,MediaRouter", "--lang=en-US", "--force-color-profile=srgb"]


class Browser:
    def __init__(self):
        self.dir = harness.fast_tmp("chromium.")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in [*ARGUMENTS, f"--user-data-dir={self.dir}"]:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = Service(shutil.which("chromedriver"), env=os.environ | {"HOME": self.dir})
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_script_timeout(harness.PATIENCE)
        self.driver.set_page_load_timeout(harness.PATIENCE)
        self.first = self.driver.current_window_handle

    def begin(self):
        """As new: one empty window, of the usual size, in the light scheme, and no log."""
        self.close_windows()
        self.look(1280, 800, "light")
        for log in ("browser", "performance"):
            self.driver.get_log(log)

    def close_windows(self):
        for handle in self.driver.window_handles:
            if handle != self.first:
                self.driver.switch_to.window(handle)
                self.driver.close()
        self.driver.switch_to.window(self.first)
        self.driver.get("about:blank")

    def look(self, width, height, scheme):
        """The size of the window in CSS pixels, and the colours that its user prefers."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def complaints(self):
        """Errors and warnings on the console; violations of the policy of contents are among them."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """What it asked for, whoever it asked."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(("about:", "data:")):
                    yield url

    def end(self):
        with contextlib.suppress(Exception):
            self.driver.quit()
        shutil.rmtree(self.dir, ignore_errors=True)


class Page:
    """A process that serves the page of a daemon, and the window that shows it."""

    def __init__(self, browser, daemon):
        self.browser = browser
        self.driver = browser.driver
        line = ""
        while not line:  # somebody else may have taken the port meanwhile
            self.process = harness.spawn([LOCKBROKER, "-S", daemon.socket, "http", f"--page=127.0.0.1:{harness.free_port()}"],
                                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            line = self.process.stdout.readline()
        self.origin = re.search(r"(http://[0-9.:]+)/", line)[1]
        self.allowed = None

    def allow(self, pattern):
        """Complaints that this test causes: those of the network, while nobody answers."""
        self.allowed = pattern

    def may_complain(self, complaint):
        return bool(self.allowed and self.origin in complaint and re.search(self.allowed, complaint))

    def show(self, path="/"):
        self.driver.get(self.origin + path)
        self.wait("document.getElementById('host').textContent !== '…'", "the first overview")

    def js(self, script, *arguments):
        """The value of an expression; arguments are a, b, c."""
        names = "abc"[:len(arguments)]
        return self.driver.execute_script(f"return (({', '.join(names)}) => {script})(...arguments)", *arguments)

    def wait(self, script, what=None, *arguments):
        """Until an expression is true. Returns its value."""
        try:
            return harness.wait_until(lambda: self.js(script, *arguments), what or script)
        except AssertionError as e:
            raise AssertionError(f"{e}; the page shows:\n{self.text('body')}") from None

    def text(self, selector):
        return self.js("document.querySelector(a).innerText", selector)

    def names(self):
        """Of the locks that are drawn, in the order in which they stand."""
        return self.js("[...document.querySelectorAll('#rows .row')].sort((x, y) => x.ariaRowIndex - y.ariaRowIndex)"
                       ".map((row) => row.querySelector('.name').textContent)")

    def wait_for_names(self, *names):
        return harness.wait_until(lambda: self.names() == list(names), lambda: f"{names}, where there are {self.names()}")

    def row(self, name):
        """The words of its cells, by their class; None: it is not drawn."""
        return self.js("""{
            const row = [...document.querySelectorAll('#rows .row')].find((r) => r.querySelector('.name').textContent === a);
            return row ? Object.fromEntries([...row.children].map((cell) => [cell.classList[0], cell.textContent])) : null; }""", name)

    def wait_for_row(self, name, **cells):
        """Until each cell has that text in it."""
        def fits():
            row = self.row(name)
            return row if row and all(text in row[cell] for cell, text in cells.items()) else None
        return harness.wait_until(fits, lambda: f"{name} with {cells}: it is {self.row(name)}; the page shows:\n{self.text('body')}")

    def click(self, selector):
        self.driver.find_element(By.CSS_SELECTOR, selector).click()

    def press(self, *keys):
        """On whatever has the focus."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def open_lock(self, name):
        self.js("[...document.querySelectorAll('#rows a')].find((link) => link.textContent === a).click()", name)
        self.wait("!document.getElementById('lock').hidden && document.getElementById('lock-about').textContent", f"the lock {name}")

    def end(self):
        self.process.terminate()
        self.process.wait(harness.PATIENCE)
        self.process.stdout.close()


class Command:
    """`lockbroker lock NAME cat`: when it is made it holds the lock or stands in the queue."""

    def __init__(self, daemon, name, *options, argv=("cat",)):
        self.process = harness.spawn([LOCKBROKER, "-S", daemon.socket, "lock", *options, name, *argv],
                                     stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        with daemon.client() as client:
            harness.wait_until(lambda: self.pid in self.pids(client, name), f"{name} to be held or waited for")

    @staticmethod
    def pids(client, name):
        """Of who has or wants it. While ZooKeeper does not answer, which a busy machine may bring about, the broker shows none."""
        answers = [client.call(word, name) for word in ("HOLDERS", "QUEUE")]
        return [one.get("pid") for answer in answers if isinstance(answer, list) for one in answer]

    @property
    def pid(self):
        return self.process.pid

    def release(self):
        """Now, or as soon as it has the lock."""
        self.process.stdin.close()

    def end(self):
        self.release()
        self.process.wait(harness.PATIENCE)
