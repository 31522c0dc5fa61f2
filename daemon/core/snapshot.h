/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's state as a value, for a planned hand-over from one process to the next: to a text and back. Instants are
 * of the clock of this boot: the process that reads a text has to refuse one of an earlier boot, which this module
 * cannot know.
 *
 * A snapshot is taken between two events, and only while the connection to ZooKeeper is shut, which the core takes as a
 * lost one: so no operation is open, and the next process continues by an ordinary reconnection. A revocation that has asked
 * holders ends with a connection, and has been answered; one that searches for them, questions about other hosts, and
 * audits begin again.
 *
 *   carried                                           | not carried
 *   clients, their grants, requests, observers and    | results of lists, reads and watches of the connection;
 *     unread events, in all orders, with all deadlines|  `seen` and the answers of the proof
 *   claims, directories, letters, questions to other  | open operations, turns, the window: there are none
 *     hosts, former sessions                          |
 *   the proof of the session, and until when          | troubles with ZooKeeper, in words: they are found out again
 *   counters, all numbers that are never used twice   | sums and lists that follow from the rest: they are made again
 *
 * Grants, requests and observers are in the order of their locks' lists. Each of them has a mark: its number in the
 * order of the clients' lists. A restored broker puts the clients' lists in order by the marks.
 *
 * The adapter of the new process does not know the requests to the old process's adapter. So after the first event the
 * broker asks again for what it still needs: EFFECT_ZK_OPEN without a session, FORMER_END, TOKENS, RELOAD, and PROCESS. It
 * does not say again what the adapter keeps itself: CLOSE and HOLDER.
 */
#pragma once

#include <stdint.h>

#include "protocol/bytes.h"

struct broker;
struct broker_conf;

/* A checksum of all that decides where locks live: another configuration with the same finds them at the same places. */
uint64_t snapshot_place(const struct broker_conf *conf);
/* The entries before all clients, and behind everything. */
void snapshot_begin(const struct broker *b, struct bytes *ret);
void snapshot_end(const struct broker *b, struct bytes *ret);
/* Appends the broker's whole state. */
void broker_snapshot(const struct broker *b, struct bytes *ret);
/* broker_restore() will need about so many bytes of memory: the new process can touch them before the old one freezes. */
size_t snapshot_memory(const struct broker *b);
/*
 * A new broker from it. Connections keep their numbers, and it knows them already. NULL, and a sentence in *why
 * that the caller frees, if the text is cut short, garbled, of another version that cannot be read, or contradicts itself.
 * `conf` and `now_ns` as for broker_new(); the formers of `conf` are not looked at.
 */
struct broker *broker_restore(const struct broker_conf *conf, struct slice text, int64_t now_ns, struct bytes *why);
