// SPDX-License-Identifier: Apache-2.0 OR MIT
// The page of lockbroker-http: what it shows comes from /api (client-lib/http/page.h). Other processes have chosen the
// names, commands and texts: they get into the document as text nodes only, never as markup.

const ROWS_MAX = 300; // rows in the document, and in one answer of /api/locks
const ROWS_AROUND = 12; // rows that are drawn above and below those that can be seen
const ROWS_AHEAD = 40; // rows that are asked for beyond those
const SCROLLED_MAX = 300000; // rows that can be scrolled to: browsers draw no element that is much higher
const QUEUE_MAX = 300; // clients of a queue that are drawn, and holders
const STREAM_SILENT_MS = 2500; // a stream that has said nothing for that long is helped out by a poll
const SEEN_MS = 3000; // what is known of a lock and is older than that has its age beside it
const GONE_MS = 4000; // what has not been heard of for that long is said to be gone
const ANSWER_MS = 10000;

const $ = (id) => document.getElementById(id);

// ---- text ----

// The characters that cli_is_harmful() names: breaks of a line, and those that are not seen or turn the text around.
const HARMFUL = new RegExp("[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5" +
	"\\u180b-\\u180f" +
	"\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufff8\\u{1bca0}-\\u{1bca3}" +
	"\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}\\p{Cs}]", "gu");

function escaped(character) {
	const number = character.codePointAt(0);
	return number > 0xffff ? `\\U${number.toString(16).padStart(8, "0")}` : `\\u${number.toString(16).padStart(4, "0")}`;
}

const plain = (text) => text.replace(HARMFUL, escaped);

// Writes a text unless it stands there already: what does not change is neither laid out nor read out again.
function write(element, text) {
	if (element.written !== text) {
		element.written = text;
		element.textContent = text;
	}
}

// Writes what somebody else has chosen. It cannot turn around what stands beside it.
function writeName(element, text) {
	if (element.written === text)
		return;
	element.written = text;
	const bdi = make("bdi");
	let from = 0;
	for (const match of text.matchAll(HARMFUL)) {
		bdi.append(text.slice(from, match.index), make("span", "escaped", escaped(match[0])));
		from = match.index + match[0].length;
	}
	bdi.append(text.slice(from));
	element.replaceChildren(bdi);
}

function make(tag, className, ...content) {
	const element = document.createElement(tag);
	if (className)
		element.className = className;
	element.append(...content);
	return element;
}

function attribute(element, name, value) {
	if (element.getAttribute(name) !== String(value))
		element.setAttribute(name, value);
}

// Makes the children of a list those of its items, in their order. A child stays that of its item for as long as there is
// one of that key, and one that has the focus is not moved: the others are, so that it keeps the focus.
function fill(list, items, key, create, update) {
	const before = list.filled || new Map(), now = new Map();
	for (const item of items) {
		let k = key(item);
		while (now.has(k))
			k += "'";
		const child = before.get(k) || create(item);
		before.delete(k);
		update(child, item);
		now.set(k, child);
	}
	for (const child of before.values())
		child.remove();
	let at = list.firstChild;
	for (const child of now.values()) {
		while (at !== child && child.contains(document.activeElement)) {
			const next = at.nextSibling;
			list.append(at);
			at = next;
		}
		if (child === at)
			at = at.nextSibling;
		else
			list.insertBefore(child, at);
	}
	list.filled = now;
}

// With the two largest units, as the lockbroker command has it.
function duration(ms) {
	const two = (n) => String(n).padStart(2, "0"), s = Math.floor(ms / 1000);
	if (ms < 1000)
		return `${Math.max(0, Math.round(ms))}ms`;
	if (s < 60)
		return `${s}s`;
	if (s < 3600)
		return `${Math.floor(s / 60)}m${two(s % 60)}s`;
	if (s < 86400)
		return `${Math.floor(s / 3600)}h${two(Math.floor(s / 60) % 60)}m`;
	return `${Math.floor(s / 86400)}d${two(Math.floor(s / 3600) % 24)}h`;
}

function number(n) {
	if (!known(n))
		return "–";
	return n !== 0 && Math.abs(n) < 10 && n % 1 ? n.toFixed(n < 1 ? 2 : 1) : Math.round(n).toLocaleString("en");
}

const known = (value) => value !== null && value !== undefined;
const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");
const listed = (...texts) => texts.filter(Boolean).join(", ");
const counted = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;

// For readers of the screen: only what the user has asked for, and what changes the meaning of the whole page.
function say(text) {
	$("said").textContent = text;
}

// ---- what is heard from the server ----

async function get(path) {
	const answer = await fetch(path, { signal: AbortSignal.timeout(ANSWER_MS), headers: { accept: "application/json" } });
	const value = await answer.json();
	if (!answer.ok)
		throw new Error(value.error || `The server answers ${answer.status}.`);
	return value;
}

let overview = null; // the last one
let heardAt = -Infinity; // on the clock of performance.now()
let paused = false;
let endStream = null; // while this page can be seen
const channel = "BroadcastChannel" in window ? new BroadcastChannel("lockbroker overview") : null;

function hear(text, toOthers) {
	heardAt = performance.now();
	overview = JSON.parse(text);
	if (toOthers && channel)
		channel.postMessage(text);
	if (!paused && !document.hidden)
		showAll();
}

// A browser has six connections for a server. So one of its pages that can be seen has a stream, and passes it on to the
// others; when that page is closed or hidden, the next one begins. Where the browser gives no such lock to a page (neither
// TLS nor loopback), each page polls.
function beginStream() {
	const end = new AbortController();
	endStream = () => end.abort();
	if (!navigator.locks || !channel)
		return;
	navigator.locks.request("lockbroker stream", { signal: end.signal }, () => new Promise((resolve) => {
		let source;
		const open = () => {
			if (end.signal.aborted)
				return;
			source = new EventSource("/api/stream");
			source.addEventListener("overview", (event) => hear(event.data, true));
			source.addEventListener("error", () => {
				if (source.readyState === EventSource.CLOSED) // the server refused: it has enough viewers
					setTimeout(open, 2 * STREAM_SILENT_MS);
			});
		};
		end.signal.addEventListener("abort", () => {
			if (source)
				source.close();
			resolve();
		});
		open();
	})).catch(() => {});
}

let polling = false;
async function watch() {
	const silent = performance.now() - heardAt;
	if (document.hidden)
		return;
	if (silent > GONE_MS)
		showTrouble();
	if (polling || silent < (navigator.locks && channel ? STREAM_SILENT_MS : 900))
		return;
	polling = true;
	try {
		hear(JSON.stringify(await get("/api/overview")), true);
	} catch {
		showTrouble();
	}
	polling = false;
}

function followVisibility() {
	if (document.hidden) {
		if (endStream)
			endStream();
		endStream = null;
	} else if (!endStream) {
		beginStream();
		watch();
		if (overview && !paused)
			showAll();
	}
}

// ---- state of the server, the broker and its session ----

let said = ""; // state of which users of a screen reader know

function showState(word, className, trouble) {
	write($("state"), word);
	attribute($("state"), "class", `state ${className}`);
	$("trouble").hidden = !trouble;
	writeName($("trouble"), trouble);
	if (said && said !== word)
		say(plain(trouble) || `The state is: ${word}.`);
	said = word;
}

// What is heard late is no trouble: what is not heard at all is.
function showTrouble() {
	if (performance.now() - heardAt > GONE_MS)
		showState("no connection", "bad", "The server of this page does not answer. What is shown here was " +
			(overview ? `the state at ${clock(overview.now_ms)}.` : "never heard."));
}

function showSession(o) {
	const s = o.session, share = s.proof_max_ms ? s.proof_left_ms / s.proof_max_ms : 0;
	if (o.broker === "away")
		showState("broker away", "bad", `The broker does not answer. ${o.trouble || ""}`.trim());
	else if (s.standalone)
		showState("standalone", "good", o.trouble || "");
	else
		showState(s.state === "none" ? "no session yet" : `session ${s.state}`,
			share <= 0 ? "bad" : share < 0.5 || !s.connected ? "warn" : "good",
			o.trouble || (s.state !== "safe" && s.why) || "");

	const proven = o.broker === "ok" && !s.standalone && s.proof_max_ms > 0;
	$("proof").hidden = $("proof-text").hidden = !proven;
	// It shrinks until the next event says what is left: an animation that costs the page no work.
	if ($("proof").animation)
		$("proof").animation.cancel();
	$("proof").animation = null;
	if (!proven)
		return;
	const left = Math.max(0, s.proof_left_ms);
	if (left && !paused)
		$("proof").animation = $("proof-left").animate(
			[{ transform: `scaleX(${Math.min(1, share)})` }, { transform: "scaleX(0)" }],
			{ duration: left, fill: "forwards" });
	$("proof").classList.toggle("low", share < 0.5);
	attribute($("proof"), "aria-valuemax", s.proof_max_ms);
	attribute($("proof"), "aria-valuenow", left);
	const text = `${(left / 1000).toFixed(1)} s of ${(s.proof_max_ms / 1000).toFixed(1)} s`;
	attribute($("proof"), "aria-valuetext", `${text} left`);
	write($("proof-text"), `proof: ${text}`);
}

function showTotals(o) {
	const t = o.totals || {}, s = o.session;
	const totals = [["Locks", number(t.locks)], ["Holders", number(t.holders)], ["Waiters", number(t.waiters)],
		["Clients", number(t.clients)], ["Grants a second", number(t.grants_per_s)]];
	if (!s.standalone)
		totals.push(["ZooKeeper", s.connected ? "connected" : "not connected"],
			["Round trip", known(s.round_trip_ms) ? `${number(s.round_trip_ms)} ms` : "–"]);
	totals.push(["Version", o.version || "–"], ["As of", clock(o.now_ms)]);
	fill($("totals"), totals, (total) => total[0], (total) => {
		const item = make("div", "", make("dt", "", total[0]), make("dd"));
		return item;
	}, (item, total) => writeName(item.lastChild, total[1]));
}

function showHosts(o) {
	const create = () => make("li", "", make("span"), make("span", "sub"));
	fill($("hosts-list"), o.hosts || [], (h) => h.host, create, (item, h) => {
		writeName(item.firstChild, h.host);
		const up = h.started_s ? `since ${new Date(h.started_s * 1000).toLocaleString("sv")}` : "";
		writeName(item.lastChild, listed(h.self && "this host", h.version && `version ${h.version}`, up));
	});
}

// ---- plots ----

const PLOTS = [
	{ title: "Grants a second", unit: "", series: [["grants_per_s", ""]] },
	{ title: "Waits", unit: " ms", series: [["wait_p50_ms", "p50"], ["wait_p99_ms", "p99"]] },
	{ title: "Waiters", unit: "", series: [["waiters", ""]] },
	{ title: "ZooKeeper’s round trip", unit: " ms", series: [["round_trip_ms", ""]] },
	{ title: "Refusals", unit: "", series: [["refusals", ""]] },
];
const SVG = "http://www.w3.org/2000/svg";
let plotted = null; // end_ms of what is drawn

function svg(tag, attributes) {
	const element = document.createElementNS(SVG, tag);
	for (const [name, value] of Object.entries(attributes))
		element.setAttribute(name, value);
	return element;
}

function makeFigure(plot) {
	const picture = svg("svg", { viewBox: "0 0 179 100", preserveAspectRatio: "none", role: "img" });
	picture.append(svg("path", { class: "grid", d: "M0 50H179M0 1H179" }), svg("path", { class: "at" }));
	plot.paths = plot.series.map((_, i) => {
		const path = svg("path", { class: i ? "second" : "first" });
		picture.append(path);
		return path;
	});
	plot.at = picture.querySelector(".at");
	plot.picture = picture;
	plot.values = make("span", "values");
	plot.top = make("span", "top");
	picture.addEventListener("pointermove", (event) => {
		const box = picture.getBoundingClientRect();
		$("moment").value = Math.round((event.clientX - box.left) / box.width * Number($("moment").max));
		showMoment();
	});
	picture.addEventListener("pointerleave", () => {
		$("moment").value = $("moment").max;
		showMoment();
	});
	return make("figure", "", make("figcaption", "", make("span", "", plot.title), plot.values),
		make("div", "drawing", plot.top, make("span", "zero", "0"), picture,
			make("span", "times", ...["−15 min", "−10", "−5", "now"].map((text) => make("span", "", text)))));
}

// The next of 1, 2, 5, 10, 20 ... that is not below.
function roundUp(value) {
	const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
	return power * [1, 2, 5, 10].find((step) => step * power >= value);
}

function line(values, top) {
	let pen = "M", path = "";
	values.forEach((value, i) => {
		if (value === null)
			pen = "M";
		else {
			path += `${pen}${i} ${(99 - value / top * 98).toFixed(1)}${pen === "M" ? "h.01" : ""}`;
			pen = "L";
		}
	});
	return path;
}

function showPlots(o) {
	if (!$("figures").firstChild)
		$("figures").append(...PLOTS.map(makeFigure));
	if (!o.plots || plotted === o.plots.end_ms)
		return;
	plotted = o.plots.end_ms;
	for (const plot of PLOTS) {
		const series = plot.series.map(([key]) => o.plots[key] || []);
		const top = roundUp(Math.max(...series.flat().filter(known), 0));
		write(plot.top, number(top) + plot.unit);
		series.forEach((values, i) => plot.paths[i].setAttribute("d", line(values, top)));
		plot.text = plot.series.map(([key, label], i) => {
			const values = series[i].filter(known);
			return `${label}${label ? ": " : ""}` + (values.length ? `now ${number(series[i].at(-1))}${plot.unit}, lowest ` +
				`${number(Math.min(...values))}, highest ${number(Math.max(...values))}` : "nothing known");
		}).join("; ");
		attribute(plot.picture, "aria-label", `${plot.title}, the last 15 minutes. ${plot.text}.`);
	}
	showMoment();
}

function showMoment() {
	const o = overview, at = Number($("moment").value), last = Number($("moment").max);
	if (!o || !o.plots)
		return;
	const when = at === last ? "now" : clock(o.plots.end_ms - (last - at) * o.plots.step_s * 1000);
	write($("moment-text"), when);
	attribute($("moment"), "aria-valuetext", when);
	for (const plot of PLOTS) {
		plot.at.setAttribute("d", at === last ? "" : `M${at} 0V100`);
		plot.values.replaceChildren(...plot.series.flatMap(([key, label], i) => [
			make("span", i ? "key second" : "key", label ? `${i ? " " : ""}${label}: ` : ""),
			number((o.plots[key] || [])[at]) + plot.unit]));
	}
}

// ---- the table of locks ----

const FIRST_ORDER = { name: "ascending", wait: "descending", waiters: "descending", grants: "descending" };
const table = {
	sort: "wait", q: "", show: "all",
	matching: 0, offset: 0, rows: [], // the part of the rows that is here
	active: -1, // index of the row that keys have reached
	focusAt: -1, // row that gets the focus as soon as it is here
	busy: false, again: false, drawing: false,
	short: false, // the last answer had not as many rows as were asked for: they are long
};

function rowHeight() {
	if (!table.height) {
		const head = document.querySelector("#table .head");
		table.height = head.getBoundingClientRect().height;
	}
	return table.height;
}

// Rows from and to: those that can be seen, and some around them.
function span() {
	const scroller = $("scroller"), height = rowHeight() || 1, count = Math.min(table.matching, SCROLLED_MAX);
	const first = Math.floor(scroller.scrollTop / height), seen = Math.ceil(scroller.clientHeight / height) + 1;
	const from = Math.max(0, Math.min(first - ROWS_AROUND, count));
	return [from, Math.min(count, first + seen + ROWS_AROUND, from + ROWS_MAX - 1)];
}

async function askForLocks() {
	if (table.busy) {
		table.again = true;
		return;
	}
	table.busy = true;
	do {
		table.again = false;
		const [from, to] = span(), offset = Math.max(0, from - (table.short ? 0 : ROWS_AHEAD));
		const count = Math.min(ROWS_MAX, Math.max(to - from, 60) + 2 * ROWS_AHEAD);
		try {
			const asked = `sort=${table.sort}&show=${table.show}&q=${encodeURIComponent(table.q)}`;
			const answer = await get(`/api/locks?${asked}&offset=${offset}&count=${count}`);
			if (asked !== `sort=${table.sort}&show=${table.show}&q=${encodeURIComponent(table.q)}`)
				continue; // meanwhile something else is asked for, and `again` is set
			table.short = answer.rows.length < Math.min(count, answer.matching - offset);
			takeLocks(answer, offset);
		} catch (error) {
			if (performance.now() - heardAt < GONE_MS && overview && overview.broker === "ok" && error.name === "Error")
				write($("count"), error.message);
		}
	} while (table.again);
	table.busy = false;
}

function takeLocks(answer, offset) {
	const matching = answer.matching, total = answer.total;
	table.rows = answer.rows;
	table.offset = answer.offset ?? offset;
	table.matching = matching;
	write($("count"), `${matching === total ? "" : `${number(matching)} of `}${counted(total, "lock", "locks")}`);
	if (table.asked) {
		table.asked = false;
		say(`${counted(matching, "lock", "locks")} of ${number(total)}.`);
	}
	$("none").hidden = matching > 0 && matching <= SCROLLED_MAX;
	write($("none"), matching > SCROLLED_MAX ? `The first ${number(SCROLLED_MAX)} are shown. Search for others.` :
		total ? "No lock matches." : known(answer.age_ms) ? "No lock is in use." : "Nothing is known yet.");
	drawLocks();
}

function makeRow() {
	const link = make("a");
	link.tabIndex = -1;
	const cell = (className, ...content) => {
		const element = make("div", className, ...content);
		element.setAttribute("role", "gridcell");
		return element;
	};
	const row = make("div", "row", cell("name", link), cell("where"), cell("wait number"), cell("waiters number"),
		cell("grants number"), cell("holder", make("span"), make("span", "dim"), make("span"), make("span", "dim")));
	row.setAttribute("role", "row");
	return row;
}

function updateRow(element, row) {
	const [name, where, wait, waiters, grants, holder] = element.children;
	attribute(name.firstChild, "href", `/lock?name=${encodeURIComponent(row.name)}`);
	writeName(name.firstChild, row.name);
	const seen = known(row.age_ms) ? `seen ${duration(row.age_ms)} ago` : "on other hosts";
	const old = row.here_age_ms > SEEN_MS ? `seen ${duration(row.here_age_ms)} ago` : "";
	const state = row.remote ? seen : listed(plain(row.state || ""), old);
	write(where, listed(row.kind !== "lock" && row.kind, state));
	write(wait, row.waited_ms ? duration(row.waited_ms) : "–");
	write(waiters, number(row.waiters) + (row.hosts_waiting ? ` + ${counted(row.hosts_waiting, "host", "hosts")}` : ""));
	write(grants, number(row.grants_per_s));
	const h = row.holder, [who, on, text, since] = holder.children;
	const some = row.holders ? counted(row.holders, "holder", "holders") : "–";
	writeName(who, h ? h.command || (h.pid ? `pid ${h.pid}` : h.host) : some);
	writeName(on, h ? `${h.command && h.host ? ` on ${h.host}` : ""}${h.command && h.pid ? `, pid ${h.pid}` : ""}` : "");
	writeName(text, h && h.text ? `: ${h.text}` : "");
	write(since, h && known(h.since_ms) ? `, for ${duration(h.since_ms)}` : "");
}

// A row stays that of its lock, and a row with the focus stays in the document wherever it is scrolled to: Enter never opens
// another lock than the one that was chosen.
function drawLocks() {
	const [from, to] = span(), height = rowHeight(), pool = $("rows"), focused = focusedRow();
	const last = table.offset + table.rows.length, items = [];
	for (let i = Math.max(from, table.offset); i < Math.min(to, last); i++)
		items.push([table.rows[i - table.offset], i]);
	const scrolledAway = focused && focused.index < table.matching && (focused.index < Math.max(from, table.offset) ||
		focused.index >= Math.min(to, last));
	if (scrolledAway && !items.some(([row]) => row.name === focused.row.name))
		items[focused.index < from ? "unshift" : "push"]([focused.row, focused.index]);
	pool.style.height = `${Math.min(table.matching, SCROLLED_MAX) * height}px`;
	attribute($("table"), "aria-rowcount", table.matching + 1);
	fill(pool, items, ([row]) => row.name, makeRow, (element, [row, i]) => {
		if (element.row !== row)
			updateRow(element, row);
		element.row = row;
		if (element.index === i)
			return;
		element.index = i;
		element.style.transform = `translateY(${i * height}px)`;
		attribute(element, "aria-rowindex", i + 2);
	});
	if (focused && !focused.isConnected)
		$("scroller").focus({ preventScroll: true });
	if (table.focusAt >= 0)
		focusRow(table.focusAt);
	markActive();
	if ((from < table.offset || to > last && !(table.short && table.offset === from)) && to <= table.matching)
		askForLocks();
}

const drawn = () => [...($("rows").filled || new Map()).values()];

function focusedRow() {
	const link = document.activeElement;
	return link && link.closest ? link.closest("#rows .row") : null;
}

// One row is reached by Tab, the others from there by the arrow keys.
function markActive() {
	const focused = focusedRow(), first = Math.floor($("scroller").scrollTop / rowHeight()), rows = drawn();
	if (focused)
		table.active = focused.index;
	const reached = rows.find((row) => row.index === table.active) || rows.find((row) => row.index >= first);
	for (const row of rows)
		attribute(row.firstChild.firstChild, "tabindex", row === reached ? 0 : -1);
}

function focusRow(index) {
	const scroller = $("scroller"), height = rowHeight();
	index = Math.max(0, Math.min(index, Math.min(table.matching, SCROLLED_MAX) - 1));
	table.focusAt = index;
	if (index * height < scroller.scrollTop)
		scroller.scrollTop = index * height;
	else if ((index + 1) * height > scroller.scrollTop + scroller.clientHeight)
		scroller.scrollTop = (index + 1) * height - scroller.clientHeight;
	const row = drawn().find((element) => element.index === index);
	if (row) {
		table.focusAt = -1;
		table.active = index;
		row.firstChild.firstChild.focus({ preventScroll: true });
	}
}

function tableKey(event) {
	const page = Math.max(1, Math.floor($("scroller").clientHeight / rowHeight()) - 1);
	const from = table.focusAt >= 0 ? table.focusAt : Math.max(0, table.active);
	const to = { ArrowDown: from + 1, ArrowUp: from - 1, PageDown: from + page, PageUp: from - page, Home: 0,
		End: table.matching - 1 }[event.key];
	if (to === undefined || event.ctrlKey || event.altKey || event.metaKey)
		return;
	event.preventDefault();
	focusRow(to);
	markActive();
	scrolled();
}

function scrolled() {
	if (table.drawing || lock.name !== null)
		return;
	table.scrollTop = $("scroller").scrollTop;
	table.drawing = true;
	requestAnimationFrame(() => {
		table.drawing = false;
		drawLocks();
	});
}

function showOrder() {
	for (const head of document.querySelectorAll("[data-sort]")) {
		if (head.dataset.sort === table.sort)
			head.setAttribute("aria-sort", FIRST_ORDER[table.sort]);
		else
			head.removeAttribute("aria-sort");
	}
	if ($("search").value !== table.q)
		$("search").value = table.q;
	$("show").value = table.show;
}

// Something else is asked for: it is in the address, so that it can be kept and sent, and the way back leads there.
function askDifferently(changes) {
	Object.assign(table, changes);
	table.asked = true;
	table.active = -1;
	$("scroller").scrollTop = 0;
	history.replaceState(history.state, "", overviewUrl());
	showOrder();
	askForLocks();
}

function overviewUrl() {
	const words = [];
	if (table.sort !== "wait")
		words.push(`sort=${table.sort}`);
	if (table.show !== "all")
		words.push(`show=${table.show}`);
	if (table.q)
		words.push(`q=${encodeURIComponent(table.q)}`);
	return words.length ? `/?${words.join("&")}` : "/";
}

// ---- one lock ----

const lock = { name: null, answer: null, busy: false };

async function askForLock() {
	if (lock.busy)
		return;
	lock.busy = true;
	const name = lock.name;
	let answer = null, trouble = "";
	try {
		answer = await get(`/api/lock?name=${encodeURIComponent(name)}`);
	} catch (error) {
		trouble = error.name === "Error" ? error.message : "";
	}
	lock.busy = false;
	if (lock.name !== name) {
		if (lock.name !== null)
			askForLock();
	} else if (answer) {
		lock.answer = answer;
		showLock(answer);
	} else if (trouble && overview && overview.broker === "ok")
		writeName($("lock-about"), trouble);
}

function showLock(a) {
	const holders = a.holders || [], queue = a.queue || [];
	const kind = a.kind || "lock";
	const about = a.known === false ? "Nobody holds it or waits for it, as far as this host knows." :
		`${kind[0].toUpperCase()}${kind.slice(1)}, ${a.age_ms >= 1500 ? `as of ${duration(a.age_ms)} ago` : "as of now"}.`;
	writeName($("lock-about"), [about, a.trouble || ""].filter(Boolean).join(" "));
	const create = () => make("li", "", make("strong"), make("span", "sub"), make("span", "sub"), make("span", "sub"));
	fill($("holders"), holders.slice(0, QUEUE_MAX), (h) => `${h.host} ${h.pid} ${h.token}`, create, (item, h) => {
		const [who, where, since, text] = item.children;
		writeName(who, h.command || h.host || "holder");
		writeName(where, listed(h.command && h.host, h.pid && `pid ${h.pid}`, known(h.uid) && `uid ${h.uid}`));
		writeName(since, listed(h.mode, known(h.since_ms) && `has held it for ${duration(h.since_ms)}`,
			known(h.token) && `token ${h.token}`));
		writeName(text, h.text || "");
	});
	// Neighbours in the queue that are of one host stand in one box.
	const groups = [];
	for (const entry of queue.slice(0, QUEUE_MAX)) {
		if (!groups.length || groups.at(-1).host !== entry.host)
			groups.push({ host: entry.host, entries: [] });
		groups.at(-1).entries.push(entry);
	}
	fill($("queue"), groups, (g) => `${g.host} ${g.entries[0].pid ?? ""}`,
		() => make("li", "", make("strong"), make("ol")), showGroup);
	const drawn = Math.min(queue.length, QUEUE_MAX), held = Math.min(holders.length, QUEUE_MAX);
	const here = a.queue_here_count, hosts = a.queue_count > queue.length ? a.queue_count - here :
		new Set(queue.filter((entry) => !entry.here).map((entry) => entry.host)).size;
	const waiting = listed(here && counted(here, "client of this host", "clients of this host"),
		hosts && counted(hosts, "other host", "other hosts"));
	write($("queue-note"), (holders.length ? "" : "Nobody holds it. ") +
		(waiting ? `In the queue: ${waiting}.` : "Nobody waits.") +
		(drawn < a.queue_count ? ` The first ${drawn} are shown.` : "") +
		(held < a.holder_count ? ` Of ${number(a.holder_count)} holders the first ${held} are shown.` : ""));
	writeName($("why"), a.why || "Nothing keeps anybody waiting.");
	const seen = [...(a.seen || [])].reverse();
	fill($("seen"), seen, (s) => `${s.at_ms} ${s.text}`, (s) => {
		const time = make("time", "", clock(s.at_ms));
		time.dateTime = new Date(s.at_ms).toISOString();
		return make("li", "", time, make("span"));
	}, (item, s) => writeName(item.lastChild, s.text));
	write($("seen-none"), seen.length ? "" : "Nothing yet.");
	writeName($("history"), a.history || "");
}

function showGroup(item, group) {
	const self = group.entries[0].here;
	item.classList.toggle("here", self);
	writeName(item.firstChild, `${group.host}${self ? " (this host)" : ""}`);
	const create = () => make("li", "process", make("span", "place"), make("span"), make("span", "sub"));
	fill(item.lastChild, group.entries, (e) => `${e.pid ?? ""} ${e.position ?? ""}`, create, (chip, e) => {
		const [place, who, more] = chip.children;
		write(place, e.position ? `${e.position}. ` : "");
		const some = e.clients ? counted(e.clients, "client", "clients") : "clients";
		writeName(who, e.command || (e.pid ? `pid ${e.pid}` : some));
		writeName(more, listed(e.command && e.pid && `pid ${e.pid}`, e.mode,
			known(e.waited_ms) && `has waited for ${duration(e.waited_ms)}`, e.text));
	});
}

async function copyHistory() {
	const text = (lock.answer && lock.answer.history) || "";
	try {
		await navigator.clipboard.writeText(text);
		say("Copied.");
	} catch {
		getSelection().selectAllChildren($("history"));
		say("Selected: copy it with the keys of your browser.");
	}
}

// ---- views ----

function showAll() {
	showSession(overview);
	writeName($("host"), overview.host ?? "this host");
	if (lock.name === null) {
		showTotals(overview);
		showHosts(overview);
		showPlots(overview);
	}
	if (overview.broker !== "ok")
		return;
	if (lock.name === null)
		askForLocks();
	else
		askForLock();
}

// Shows what the address says.
function route() {
	const words = new URLSearchParams(location.search), was = lock.name;
	lock.name = location.pathname === "/lock" ? words.get("name") ?? "" : null;
	$("overview").hidden = lock.name !== null;
	$("lock").hidden = lock.name === null;
	if (lock.name === null) {
		document.title = "lockbroker";
		table.sort = words.get("sort") in FIRST_ORDER ? words.get("sort") : "wait";
		table.q = words.get("q") ?? "";
		table.show = [...$("show").options].some((option) => option.value === words.get("show")) ? words.get("show") : "all";
		table.height = 0;
		showOrder();
		if (was !== null) {
			$("scroller").scrollTop = table.scrollTop || 0;
			drawLocks();
			const row = drawn().find((element) => element.row.name === was);
			(row ? row.firstChild.firstChild : $("main")).focus({ preventScroll: true });
			markActive();
		}
	} else if (lock.name !== was) {
		document.title = `${plain(lock.name)} – lockbroker`;
		lock.answer = null;
		for (const id of ["holders", "queue", "seen"])
			fill($(id), [], null, null, null);
		for (const id of ["lock-about", "queue-note", "why", "seen-none", "history"])
			write($(id), "");
		writeName($("lock-name"), lock.name);
		$("lock-name").focus({ preventScroll: true });
		scrollTo(0, 0);
	}
	if (lock.name !== null)
		askForLock();
	else
		askForLocks();
	if (overview && !paused)
		showAll();
}

function open(event) {
	const link = event.target.closest("a[href^='/']");
	if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
		return;
	event.preventDefault();
	if (link.id === "back" && history.state && history.state.inside)
		history.back();
	else {
		const to = link.id === "back" ? overviewUrl() : link.getAttribute("href");
		history.pushState({ inside: lock.name === null }, "", to);
		route();
	}
}

function pause() {
	paused = !paused;
	attribute($("pause"), "aria-pressed", paused);
	write($("pause"), paused ? "Paused" : "Pause");
	if (overview)
		(paused ? showSession : showAll)(overview);
}

function key(event) {
	const typing = event.target === $("search");
	if (event.ctrlKey || event.altKey || event.metaKey)
		return;
	if (event.key === "/" && !typing) {
		event.preventDefault();
		if (lock.name !== null) {
			history.pushState({}, "", overviewUrl());
			route();
		}
		$("search").focus();
		$("search").select();
	} else if (event.key === "p" && !typing)
		pause();
	else if (event.key === "Escape" && event.target === $("search") && table.q)
		askDifferently({ q: "" });
	else if (event.key === "Escape" && lock.name !== null)
		$("back").click();
	else if (event.key === "ArrowDown" && event.target === $("search")) {
		event.preventDefault();
		focusRow(0);
	}
}

document.addEventListener("click", open);
document.addEventListener("keydown", key);
addEventListener("popstate", route);
addEventListener("resize", () => {
	table.height = 0;
	if (lock.name === null) {
		for (const row of drawn())
			row.index = -1;
		drawLocks();
	}
});
$("pause").addEventListener("click", pause);
$("copy").addEventListener("click", copyHistory);
$("moment").addEventListener("input", showMoment);
$("scroller").addEventListener("scroll", scrolled, { passive: true });
document.addEventListener("focusin", (event) => {
	table.focusAt = -1;
	if ($("rows").contains(event.target))
		markActive();
});
$("scroller").addEventListener("keydown", tableKey);
$("search").addEventListener("input", () => askDifferently({ q: $("search").value }));
$("show").addEventListener("change", () => askDifferently({ show: $("show").value }));
for (const head of document.querySelectorAll("[data-sort]"))
	head.firstChild.addEventListener("click", () => askDifferently({ sort: head.dataset.sort }));
if (channel)
	channel.addEventListener("message", (event) => hear(event.data, false));
document.addEventListener("visibilitychange", followVisibility);
setInterval(watch, 1000);
route();
followVisibility();
