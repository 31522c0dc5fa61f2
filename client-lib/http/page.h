/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The page of `lockbroker http --page`: built-in files (client-lib/http/page/), and the data that they show, as JSON.
 * Only GET and HEAD; everybody who can connect may read it.
 *
 *     /, /lock?name=NAME      index.html, which shows the overview or that lock by its own address
 *     /page.css, ...          each file of that folder
 *     /api/stream             server-sent events: `overview`, each second, data as of /api/overview, in one line
 *     /api/overview
 *     /api/locks?sort=wait|waiters|grants|name&show=all|waited|here|remote&q=TEXT&offset=N&count=M
 *     /api/lock?name=NAME
 *
 * NAME and TEXT are bytes, percent-encoded ('+' is a space, as in a form). Texts in answers were written by clients: a
 * page has to make their invisible characters visible. A byte that is not UTF-8 is U+FFFD. Numbers are
 * integers or, of rates and of plots, have a fraction; null: not known. Durations are as of the answer, instants in
 * milliseconds since 1970 by this host's clock. Fields may be added, and are in any order.
 *
 * /api/overview, and each event:
 *     now_ms, host, version (of the daemon; null: not known yet)
 *     broker      "ok" or "away": the broker has not answered for 3 s. The other fields then have their last values
 *     trouble     a sentence, or null: why the broker is away, or its problem with ZooKeeper
 *     session     { state: "safe", "jeopardy", "lost", "none" (nothing proven yet) or "standalone"; why: a sentence,
 *                   may be ""; proof_left_ms, proof_max_ms (of a fresh proof; null standalone), standalone:
 *                   bool, connected: bool (to ZooKeeper), server: text or null, timeout_ms, round_trip_ms (mean of
 *                   the last 5 s; null: nothing was answered) }
 *     totals      { locks, holders, waiters, clients, grants_per_s } of this host
 *     hosts       [ { host, version, started_s, self: bool } ]; standalone: empty. hosts_age_ms: how old that is
 *     plots       { step_s: 5, end_ms, and arrays of 180 numbers or null, the oldest first: grants_per_s,
 *                   wait_p50_ms, wait_p99_ms (of grants in the step; null: none), waiters, round_trip_ms, refusals
 *                   (by ZooKeeper, in the step) }
 *     viewers, viewers_max
 *
 * /api/locks: the locks of this host, and locks of other hosts that ZooKeeper was asked for while somebody looked:
 *     total       how many are in use, as far as is known
 *     matching    how many of them `show` selects (waited: a client of this host waits, or another host is known to
 *                 wait) and have TEXT in their names (ASCII capitals are as good as small letters)
 *     offset
 *     age_ms      of the last whole list of this host's locks; null: there was none
 *     truncated   bool: there are more than the page keeps (SIGHTINGS_MAX)
 *     rows        [ { name, kind: "lock", "election", "semaphore" or null; state: as LOCKS has it, or null (remote);
 *                   remote: bool: no client of this host holds it or waits for it; age_ms: of the data about other
 *                   hosts, null: there is none; here_age_ms: of the data about this host, null: remote; holders,
 *                   waiters: of this host (remote: holders of other hosts, at most 16); hosts_waiting (null: not
 *                   known); waited_ms: how long the longest waiter of this host has waited, 0: none; grants_per_s:
 *                   null or of this host; delegated: bool; holder: null or the first one: { host, here: bool, pid,
 *                   uid, command, text, mode, since_ms: for how long it has held it } } ]
 *                 In a holder, `host` is never empty; pid, uid and since_ms are null if they are not known, command
 *                 and text null if there is none or the rules do not let this process look.
 *     Sorted by name upwards, otherwise downwards, equal ones by name. count: 100 without, 300 at most; an answer has
 *     fewer rows if these have 256 KB.
 *
 * /api/lock: name, kind, known: bool (it has holders or waiters somewhere, or was seen), age_ms (of the fields below)
 *     trouble     null, or why ZooKeeper or the broker did not show more: the fields below then have earlier values
 *     holders     [ as `holder` above, and token (null: not known) ], as many as 128 KB have room for
 *     holder_count, queue_count, queue_here_count    how many there are: holders, entries of the queue, and entries of
 *                 this host
 *     queue       [ { host, here: bool, position, mode, waited_ms (null: another host), pid, uid, command, text:
 *                   null; clients: how many of that host's wait, where it is known; null otherwise } ] in the order
 *                   of service, as many as 128 KB have room for
 *     why         a sentence, may be ""
 *     seen        [ { at_ms, text } ] changes that this process saw, the oldest first, at most 100
 *     history     the command that shows more, quoted for a shell
 *
 * An error is { "error": a sentence } with 400 (the request makes no sense), 404, 405 (neither GET nor HEAD), 421
 * (the Host header is no name of this server) or 503 (too many look, or the broker is away and nothing is known of
 * the lock).
 */
#pragma once

#include "client-lib/http/visitors.h"

enum { PAGE_VIEWERS_MAX = 64, PAGE_VISITORS_MAX = 128, PAGE_ROWS_MAX = 300 };

struct page;

/* Sets the fields that are missing in the configuration. All of it, and the path of the daemon's socket, outlives it. */
struct page *page_new(struct event_base *base, int fd, const char *socket, struct visitors_conf *conf);
