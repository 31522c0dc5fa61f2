# SPDX-License-Identifier: Apache-2.0
"""The page of `lockbroker http --page` as people see it, in a real Chromium: what it shows of real locks, how it is used, and that it
harms neither the browser nor the broker."""

import pytest

import harness
from chromium import Keys

HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "\"'`&amp;${1}", "a b+c%41?x=1&name=y#z/../..",
           "safe\u202egnp.exe", "in\u2066vi\u200bsible", "\u05d0\u05d1\u05d2 12", "é" * 256, "combin\u0301\u0302\u0303ed"]


# ---- what it shows ----

def test_a_lock_appears_its_waiters_stand_in_order_and_it_goes(standalone, pages, commands):
    page = pages(standalone)
    page.wait("document.getElementById('none').textContent === 'No lock is in use.'")
    holder = commands(standalone, "backup/nightly", "-d", "all databases")
    page.wait_for_row("backup/nightly", waiters="0", holder="all databases")

    waiters = []
    for _ in range(3):
        waiters.append(commands(standalone, "backup/nightly"))
    row = page.wait_for_row("backup/nightly", waiters="3", holder=f"pid {holder.pid}")
    assert row["wait"] != "–" and "on alpha" in row["holder"]

    page.open_lock("backup/nightly")
    drawn = "[...document.querySelectorAll('#queue .process')].map((chip) => chip.innerText.replace(/\\s+/g, ' '))"
    page.wait("document.querySelectorAll('#queue .process').length === 3")
    for i, (chip, waiter) in enumerate(zip(page.js(drawn), waiters)):
        assert chip.startswith(f"{i + 1}. ") and f"pid {waiter.pid}" in chip, chip
    assert f"pid {holder.pid}" in page.text("#holders") and "all databases" in page.text("#holders")
    assert page.text("#queue-note") == "In the queue: 3 clients of this host."
    assert page.text("#why")

    holder.end()
    page.wait("document.getElementById('holders').innerText.includes(a)", None, f"pid {waiters[0].pid}")
    page.wait("document.querySelectorAll('#queue .process').length === 2")
    page.wait("document.querySelectorAll('#seen li').length > 0", "what happened")
    for waiter in waiters:
        waiter.end()
    page.wait("!document.querySelector('#holders li') && !document.querySelector('#queue li')")

    page.click("#back")
    page.wait_for_names()


def test_another_hosts_holder_is_shown_with_its_age(two_hosts, pages, commands, hold):
    alpha, beta = two_hosts
    held, elsewhere = commands(beta, "held", "-d", "on the other side"), hold(beta, "elsewhere")
    page = pages(alpha)
    page.wait_for_row("elsewhere", where="ago")
    waiter = commands(alpha, "held")
    page.wait_for_row("held", waiters="1", holder="on beta")
    assert page.names()[0] == "held"
    page.wait("[...document.querySelectorAll('#hosts-list li')].map((li) => li.firstChild.textContent).join() === 'alpha,beta'")

    page.open_lock("held")
    page.wait("document.getElementById('holders').innerText.includes('beta')")
    page.wait("document.querySelector('#queue .here') && document.querySelector('#queue').innerText.includes(a)", None, f"pid {waiter.pid}")
    assert page.text("#history") == "lockbroker history 'held'" or page.text("#history") == "lockbroker history held"
    held.end()
    page.wait("document.getElementById('holders').innerText.includes(a)", None, f"pid {waiter.pid}")


def test_the_proof_shrinks_and_refills(two_hosts, pages):
    page = pages(two_hosts[0])
    page.js("""{
        window.shares = [];
        const left = document.getElementById('proof-left'), meter = document.getElementById('proof');
        const look = () => {
            shares.push([new DOMMatrix(getComputedStyle(left).transform).a, meter.ariaValueNow]);
            requestAnimationFrame(look);
        };
        look(); }""")
    page.wait("shares.some(([share, said], i) => i > 3 && [1, 2, 3].every((n) => "
              "shares[i - n][1] === said && shares[i - n][0] > shares[i - n + 1][0]))", "a bar that shrinks between two events")
    page.wait("shares.some(([share], i) => i && share > shares[i - 1][0] + 0.05)", "a bar that refills")
    assert page.js("shares.every(([share]) => share >= 0 && share <= 1)")
    meter = "document.getElementById('proof')"
    assert page.js(f"Number({meter}.ariaValueNow) > 0 && Number({meter}.ariaValueNow) <= Number({meter}.ariaValueMax)")
    assert page.text("#state") == "session safe"


def test_plots_are_drawn_and_said_in_words(standalone, pages):
    page = pages(standalone)
    with standalone.client() as client:
        for i in range(50):
            client.call("LOCK", "busy")
            client.call("UNLOCK", "busy")
    assert page.js("document.querySelectorAll('#figures figure').length") == 5
    page.wait("[...document.querySelectorAll('#figures svg')].some((svg) => /Grants a second.*now [0-9.]+, lowest.*highest/.test(svg.ariaLabel))")
    page.wait("document.querySelector('#figures path.first').getAttribute('d').startsWith('M')")
    page.js("document.getElementById('moment').focus()")
    page.press(Keys.ARROW_LEFT)
    assert page.text("#moment-text") != "now"
    assert page.js("document.querySelector('#figures path.at').getAttribute('d')") == "M178 0V100"


# ---- how it is used ----

def test_search_sort_open_and_back(standalone, pages, commands, hold):
    hold(standalone, "apple", "Banana", "cherry")
    for name in ("cherry", "Banana", "Banana"):
        commands(standalone, name)
    page = pages(standalone)
    page.wait_for_names("cherry", "Banana", "apple")
    order = "Object.fromEntries([...document.querySelectorAll('[aria-sort]')].map((head) => [head.dataset.sort, head.ariaSort]))"
    assert page.js(order) == {"wait": "descending"}

    page.click("[data-sort=waiters] button")
    page.wait_for_names("Banana", "cherry", "apple")
    assert page.js(order) == {"waiters": "descending"}
    page.click("[data-sort=name] button")
    page.wait("document.querySelector('#rows .row .name')")
    assert page.wait_for_names(*sorted(["apple", "Banana", "cherry"])) and page.js(order) == {"name": "ascending"}

    page.press("/")
    page.press("AN")
    page.wait_for_names("Banana")
    assert page.text("#count") == "1 of 3 locks"
    page.wait("document.getElementById('said').textContent === '1 lock of 3.'")
    assert page.js("location.search") == "?sort=name&q=AN"

    page.open_lock("Banana")
    assert page.js("location.pathname + location.search") == "/lock?name=Banana"
    assert page.js("document.activeElement.id") == "lock-name"
    page.driver.back()
    page.wait_for_names("Banana")
    assert page.js("document.getElementById('search').value") == "AN"
    assert page.js("document.activeElement.textContent") == "Banana"
    page.driver.refresh()
    page.wait_for_names("Banana")
    page.click("#search")
    page.press(Keys.ESCAPE)
    page.wait_for_names(*sorted(["apple", "Banana", "cherry"]))
    page.press("no such name")
    page.wait("document.getElementById('none').textContent === 'No lock matches.'")


def test_all_is_done_by_keys(standalone, pages, hold):
    hold(standalone, *[f"lock {i:03}" for i in range(200)])
    page = pages(standalone, "/?sort=name")
    page.wait("document.querySelectorAll('#rows .row').length > 10")
    focused = "document.activeElement.textContent"
    reached = set()
    for _ in range(40):
        page.press(Keys.TAB)
        reached.add(page.js("document.activeElement.id || document.activeElement.parentNode.dataset.sort || document.activeElement.closest('.row')?.role"))
    assert {"home", "pause", "search", "show", "name", "wait", "waiters", "grants", "row", "moment"} <= reached, reached

    page.js("document.getElementById('show').focus()")
    page.press("/")
    assert page.js("document.activeElement.id") == "search"
    page.press(Keys.ARROW_DOWN)
    page.wait(f"{focused} === 'lock 000'")
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP)
    page.wait(f"{focused} === 'lock 001'")
    page.press(Keys.END)
    page.wait(f"{focused} === 'lock 199'")
    seen = "{ const row = document.activeElement.getBoundingClientRect(), all = document.getElementById('scroller').getBoundingClientRect();" \
           " return row.top >= all.top && row.bottom <= all.bottom; }"
    assert page.js(seen)
    page.press(Keys.PAGE_UP)
    page.wait(f"{focused}.startsWith('lock 1') && {focused} !== 'lock 199'")
    page.press(Keys.HOME)
    page.wait(f"{focused} === 'lock 000'")
    assert page.js("document.querySelectorAll('#rows [tabindex=\"0\"]').length") == 1
    page.press(Keys.ENTER)
    page.wait("document.getElementById('lock-name').textContent === 'lock 000'")
    page.press(Keys.ESCAPE)
    page.wait(f"{focused} === 'lock 000'")
    page.press("p")
    page.wait("document.getElementById('pause').ariaPressed === 'true'")


def test_the_focus_stays_with_its_lock_when_rows_move(standalone, pages, commands, hold):
    client = hold(standalone, "a", "b", "c")
    page = pages(standalone, "/?sort=waiters")
    page.wait_for_names("a", "b", "c")
    page.js("[...document.querySelectorAll('#rows a')].find((link) => link.textContent === 'a').focus()")
    waiter = commands(standalone, "c")
    page.wait_for_names("c", "a", "b")
    assert page.js("document.activeElement.textContent") == "a"
    client.call("UNLOCK", "a")
    page.wait_for_names("c", "b")
    assert page.js("document.activeElement.id") == "scroller", "Enter would open a lock that nobody has chosen"
    client.close()
    waiter.end()


def test_the_command_of_history_is_copied(standalone, pages, chrome, hold):
    name = "it's here"
    hold(standalone, name)
    page = pages(standalone)
    page.wait_for_names(name)
    page.open_lock(name)
    page.wait("document.getElementById('history').textContent")
    chrome.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    page.click("#copy")
    page.wait("document.getElementById('said').textContent === 'Copied.'")
    copied = chrome.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert harness.subprocess.run(["sh", "-c", f"printf '%s\\n' {copied}"], capture_output=True, text=True).stdout == f"lockbroker\nhistory\n{name}\n"


# ---- what goes wrong ----

def test_the_page_says_that_the_broker_is_away_and_recovers(standalone, pages, hold):
    page = pages(standalone)
    page.allow(r"status of 503|ERR_")
    hold(standalone, "before")
    page.wait_for_names("before")
    standalone.kill()
    page.wait("document.getElementById('state').textContent === 'broker away'")
    assert page.js("!document.getElementById('trouble').hidden && document.getElementById('trouble').innerText.length > 20")
    assert page.js("document.getElementById('said').textContent"), "a reader of the screen is told"
    standalone.start()
    page.wait("document.getElementById('state').textContent === 'standalone'")
    assert page.js("document.getElementById('trouble').hidden")
    hold(standalone, "after")
    page.wait_for_names("after")


def test_a_page_that_is_opened_while_the_broker_is_away_says_so_and_recovers(standalone, pages):
    standalone.kill()
    page = pages(standalone)
    page.allow("status of 503")
    page.wait("document.getElementById('state').textContent === 'broker away'")
    assert page.text("#trouble") and page.text("h1") == "lockbroker on this host"
    page.wait("document.getElementById('none').textContent === 'Nothing is known yet.'")
    standalone.start()
    page.wait("document.getElementById('state').textContent === 'standalone'")
    page.wait("document.getElementById('host').textContent === 'alpha'")
    page.wait("document.getElementById('none').textContent === 'No lock is in use.'")


def test_the_page_says_that_its_server_is_gone(standalone, pages):
    page = pages(standalone)
    page.allow("ERR_")
    page.process.kill()
    page.wait("document.getElementById('state').textContent === 'no connection'")
    assert "does not answer" in page.text("#trouble")


def test_names_are_text(standalone, pages, hold):
    names = [*HOSTILE, "x" * 512]
    hold(standalone, *names)
    page = pages(standalone)
    page.wait("document.querySelectorAll('#rows .row').length === a", None, len(names))
    shown = page.names()
    for name in names:
        as_shown = "".join(f"\\u{ord(c):04x}" if c in "\u202e\u2066\u200b" else c for c in name)
        assert as_shown in shown, (as_shown, shown)
    assert page.js("[...document.querySelectorAll('#rows .name a')].every((link) => link.firstChild.tagName === 'BDI')")
    assert page.js("document.querySelectorAll('#rows img, #rows script, body > script').length") == 0
    for name in names:
        as_shown = "".join(f"\\u{ord(c):04x}" if c in "\u202e\u2066\u200b" else c for c in name)
        page.open_lock(as_shown)
        page.wait("document.getElementById('holders').innerText.includes('pid')", as_shown)
        assert page.js("document.getElementById('lock-name').textContent") == as_shown
        assert page.js("document.documentElement.scrollWidth <= innerWidth"), as_shown
        page.click("#back")
        page.wait("document.querySelectorAll('#rows .row').length === a", None, len(names))


# ---- how much it costs ----

SCROLL = """
const done = arguments[arguments.length - 1], scroller = document.getElementById('scroller');
let changes = 0, most = 0, step = 0;
const observer = new MutationObserver((records) => { changes += records.length; });
observer.observe(document.getElementById('rows'), { childList: true, subtree: true, attributes: true, characterData: true });
const next = () => {
    most = Math.max(most, document.querySelectorAll('#rows .row').length);
    if (step++ === 100) {
        observer.disconnect();
        done([changes, most]);
        return;
    }
    scroller.scrollTop += 40;
    requestAnimationFrame(() => requestAnimationFrame(next));
};
next();
"""


def test_ten_thousand_locks_are_as_easy_to_scroll_as_five_hundred(standalone, pages, chrome, hold):
    hold(standalone, *[f"lock {i:05}" for i in range(500)])
    page = pages(standalone, "/?sort=name")
    page.wait("document.getElementById('count').textContent === '500 locks'")
    few, rows = chrome.driver.execute_async_script(SCROLL)
    assert 0 < rows <= 300

    hold(standalone, *[f"lock {i:05}" for i in range(500, 10000)])
    page.wait("document.getElementById('count').textContent === '10,000 locks'")
    page.js("{ document.getElementById('scroller').scrollTop = 0; }")
    page.wait("[...document.querySelectorAll('#rows .name')].some((name) => name.textContent === 'lock 00000')")
    many, rows = chrome.driver.execute_async_script(SCROLL)
    assert 0 < rows <= 300
    assert many < 2 * few, "each row that a scroll brings into sight is made once, however many there are"

    page.js("document.querySelector('#rows a').focus()")
    page.press(Keys.END)
    page.wait("document.activeElement.textContent === 'lock 09999'")
    assert page.js("document.querySelectorAll('#rows .row').length") <= 300
    assert page.js("document.getElementById('table').ariaRowCount") == "10001"
    # Only who asks for these rows learns how often they are granted.
    page.wait_for_row("lock 09999", grants="0", holder="pid")
    page.wait_for_row("lock 09980", grants="0", holder="pid")
    chrome.look(3840, 2160, "light")
    page.wait("document.querySelectorAll('#rows .row').length > 40")
    assert page.js("document.querySelectorAll('#rows .row').length") <= 300


def test_rows_are_reached_also_when_an_answer_has_few_of_them(standalone, pages):
    """Long names and texts: 256 KB are less than the rows that are asked for."""
    client = standalone.client()
    for i in range(600):
        client.call("LOCK", f"{i:03}" + "\u202e" * 160, "DATA", "\u202e" * 160)
    page = pages(standalone, "/?sort=name")
    page.wait("document.getElementById('count').textContent === '600 locks'")
    for at in 200, 400, 599, 300:
        page.js(f"{{ const s = document.getElementById('scroller'); s.scrollTop = {at} * s.scrollHeight / 600; }}")
        page.wait(f"[...document.querySelectorAll('#rows .name')].some((name) => name.textContent.startsWith('{at}'))")
    client.close()


def test_of_very_many_holders_the_first_are_drawn(standalone, pages):
    clients = [standalone.client() for _ in range(310)]
    for client in clients:
        client.call("LOCK", "shared", "SHARED")
    page = pages(standalone, "/lock?name=shared")
    page.wait("document.getElementById('queue-note').textContent.endsWith('Of 310 holders the first 300 are shown.')")
    assert page.js("document.querySelectorAll('#holders > li').length") == 300
    for client in clients:
        client.close()


def test_seven_windows_are_all_live_and_one_of_them_streams(standalone, pages, chrome, hold):
    page = pages(standalone)
    windows = [chrome.driver.current_window_handle]
    for _ in range(6):
        chrome.driver.switch_to.new_window("window")
        windows.append(chrome.driver.current_window_handle)
        page.show()
    client = hold(standalone, "seen by all")
    for window in windows:
        chrome.driver.switch_to.window(window)
        page.wait_for_names("seen by all")
    overview = "fetch('/api/overview').then((answer) => answer.json()).then((value) => arguments[0](value.viewers))"
    harness.wait_until(lambda: chrome.driver.execute_async_script(overview) == 1, "one stream")
    # The window that streams is closed: another one takes over.
    for window in windows[1:]:
        chrome.driver.switch_to.window(window)
        chrome.driver.close()
        chrome.driver.switch_to.window(windows[0])
    client.call("UNLOCK", "seen by all")
    page.wait_for_names()
    harness.wait_until(lambda: chrome.driver.execute_async_script(overview) == 1, "one stream")


# ---- how it looks ----

OVERFLOWS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
# Of each text that can be seen, on the nearest colour below it. Large texts need less; we ask the same of all.
CONTRAST = """
const numbers = (color) => color.match(/[0-9.]+/g).map(Number);
const light = (color) => numbers(color).slice(0, 3).map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const ground = (element) => {
    for (; element; element = element.parentElement) {
        const color = getComputedStyle(element).backgroundColor;
        if ((numbers(color)[3] ?? 1) === 1)
            return color;
    }
    throw new Error('no background');
};
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (walker.currentNode.data.trim() && element.checkVisibility() && element.tagName !== 'NOSCRIPT')
        found.push([ratio(getComputedStyle(element).color, ground(element)), walker.currentNode.data]);
}
for (const input of document.querySelectorAll('input[placeholder]'))
    found.push([ratio(getComputedStyle(input, '::placeholder').color, ground(input)), input.placeholder]);
for (const path of document.querySelectorAll('path.first, path.second'))
    found.push([ratio(getComputedStyle(path).stroke, ground(path.closest('div'))) * 1.5, 'a line: 3:1']);
return found;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(standalone, pages, commands, chrome, scheme):
    holder = commands(standalone, "in\u200bvisible", "-d", "a text")
    page = pages(standalone)
    chrome.look(1280, 800, scheme)
    page.wait_for_row("in\\u200bvisible", holder="a text")
    commands(standalone, "in\u200bvisible")
    page.wait_for_row("in\\u200bvisible", waiters="1")
    ground = page.js("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(16, 20, 24)"}[scheme]
    texts = chrome.driver.execute_script(CONTRAST)
    page.open_lock("in\\u200bvisible")
    page.wait("document.querySelector('#queue .process')")
    texts += chrome.driver.execute_script(CONTRAST)
    page.js("document.getElementById('pause').click()")
    page.js("{ const t = document.getElementById('trouble'); t.hidden = false; t.textContent = 'a sentence'; }")
    for state in ("good", "warn", "bad"):
        page.js("{ document.getElementById('state').className = `state ${a}`; }", state)
        texts += chrome.driver.execute_script(CONTRAST)
    assert len(texts) > 60
    low = [(round(ratio, 2), text) for ratio, text in texts if ratio < 4.5]
    assert not low, low
    holder.end()


@pytest.mark.parametrize("width, height", [(360, 640), (800, 600), (1280, 800), (3840, 2160)])
def test_the_longest_waited_lock_and_its_holder_come_first_and_nothing_overflows(standalone, pages, commands, chrome, width, height, hold):
    holder = commands(standalone, "zz waited", "-d", "the nightly run")
    commands(standalone, "zz waited")
    hold(standalone, *[f"lock {i}" for i in range(60)], "long " * 100)
    chrome.look(width, height, "light")
    page = pages(standalone)
    page.wait("document.getElementById('count').textContent === '62 locks'")
    page.wait_for_row("zz waited", waiters="1")
    assert page.names()[0] == "zz waited"
    box = page.js("""{
        const row = document.querySelector("#rows [aria-rowindex='2']");
        return [row.querySelector('.name'), row.querySelector('.wait'), row.querySelector('.holder').firstChild].map((e) => e.getBoundingClientRect())
            .map((r) => [r.left, r.top, r.right, r.bottom]); }""")
    for left, top, right, bottom in box:
        assert 0 <= left < right <= width and 0 <= top < bottom <= height, box
    assert not page.js(OVERFLOWS)
    page.open_lock("zz waited")
    page.wait("document.querySelector('#queue .process')")
    assert not page.js(OVERFLOWS)
    page.driver.get(page.origin + "/lock?name=" + "long%20" * 100)
    page.wait("document.getElementById('holders').innerText.includes('pid')")
    assert not page.js(OVERFLOWS)
    holder.end()


def test_what_a_reader_of_the_screen_is_told(standalone, pages, hold):
    hold(standalone, "a", "b")
    page = pages(standalone)
    page.wait("document.querySelectorAll('#rows .row').length === 2")
    # As the browser hands it to such programs: each control, the rows, the figures and the bar have a role and a name.
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    told = {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored")}
    for role, name in [("grid", "Locks"), ("searchbox", "Search for a name"), ("combobox", "Which locks"), ("button", "Pause"),
                       ("columnheader", "Waiters"), ("slider", None), ("main", None), ("banner", None)]:
        assert any(r == role and (name is None or name in n) for r, n in told), (role, name, sorted(told))
    unnamed = [role for role, name in told if role in ("button", "link", "searchbox", "combobox", "slider", "image", "meter") and not name]
    assert not unnamed
    # What is new each second is not read out.
    live = page.js("[...document.querySelectorAll('[aria-live], [role=status], [role=alert], output')].map((e) => e.id)")
    assert live == ["said", "moment-text"]
    page.js("{ window.announced = 0; new MutationObserver(() => window.announced++).observe(document.getElementById('said'), "
            "{ childList: true, characterData: true, subtree: true }); window.clocks = new Set(); }")
    page.wait("clocks.add(document.getElementById('totals').lastChild.innerText).size > 3", "three more seconds")
    assert page.js("announced") == 0


def test_the_policy_of_contents_is_in_force(standalone, pages):
    page = pages(standalone)
    page.allow("Content Security Policy")
    page.js("{ const script = document.createElement('script'); script.textContent = 'window.hacked = true'; document.body.append(script); }")
    assert page.js("window.hacked === undefined")
    # Chromium would say so of each violation: the other tests rest on that.
    assert any("Content Security Policy" in complaint for complaint in page.browser.complaints())
