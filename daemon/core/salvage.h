/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a kill: the ledger of the process that ended is turned into the text of a snapshot (snapshot.h), from which the
 * next process goes on as after a planned hand-over. The rules are stricter, because nobody prepared for this end:
 *
 *   in the ledger                 | becomes of it
 *   a client whose connection the | goes on with its grants; its losses are reported to it again. It had asked for
 *     adapter has taken back      |   nothing that is not answered (salvage_may_continue)
 *   any other client that holds   | a *ghost*: a client like any other, whose connection is gone. Nobody is granted
 *     something                   |   anything against it until the adapter says EVENT_CLIENT_GONE. Effects for it go
 *                                 |   nowhere
 *   a grant whose claim is not    | lost, and reported as such
 *     noted                       |
 *   a claim that grants rest on   | is kept. Nothing more is granted on it before a write was answered, then a list showed
 *                                 |   it, then a read showed its czxid and owner (claim.h: `salvaged`). Until it is known
 *                                 |   that nobody elsewhere waits, it is not handed on
 *   any other znode of ours in a  | is deleted, as a stray: the directory is listed after an answered write. Nothing is
 *     directory that is noted     |   put into it before
 *   a letter that may stand       | is withdrawn when it has had its time
 *   the proof of the session      | stands as it was; only writes of this life prove more
 *   numbers that are never used   | go on above the last ceiling that was noted
 *     twice                       |
 *
 * The ledger's claims belong to the session that it names. If the adapter knows of another session, the process ended while
 * it gave up the one or began the other: then every grant is lost, and a new session is asked for. The adapter has to
 * report the old one as a former session (salvage_session()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/ledger_view.h"
#include "protocol/bytes.h"

struct broker_conf;

struct salvage {
	const struct broker_conf *conf; /* its formers count, as for broker_new() */
	const struct ledger_view *ledger;
	int64_t session, timeout_ns; /* that the killed process had; 0: none. Standalone: not looked at */
	int64_t safe_until_ns;       /* the last instant that can have been reported to holders; INT64_MIN: none */
	const bool *back;            /* by number: the adapter has that connection again */
	size_t back_count;
	uint64_t seed; /* as for broker_new() */
	int64_t now_ns;
};

/*
 * By number of connection: its client, if it is taken back, misses nothing but its losses: nothing waits that was not
 * written down, and no push was on its way to the adapter. False also if there is no such client.
 */
void salvage_may_continue(const struct ledger_view *v, bool *ret_may, size_t count);
/* By number of connection: it has delegated locks, so it can go on only with its page. */
void salvage_needs_page(const struct ledger_view *v, bool *ret_needs, size_t count);
/* The session that can be continued; 0: none, and the one given is a former. */
int64_t salvage_session(const struct ledger_view *v, int64_t session);
/*
 * Appends the text. False, and a sentence in *why, if the ledger contradicts itself. Its content is not checked
 * further: broker_restore() does that. The adapter asks the restored broker which connections are there, and who holds.
 */
bool salvage(const struct salvage *s, struct bytes *ret_text, struct bytes *why);
