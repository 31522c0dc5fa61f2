/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's state as a value, for a planned hand-over from one process to the next: to a text and back. Instants are
 * of the clock of this boot: a text that was written before it is refused by whoever reads it (the boot is not this
 * module's to know).
 *
 * A snapshot is taken between two events, and only while the connection to ZooKeeper is shut, which the core takes as a
 * lost one: so no operation is open, and whoever goes on does so by an ordinary reconnection.
 */
#pragma once

#include <stdint.h>

#include "protocol/bytes.h"

struct broker;
struct broker_conf;

/* Appends the broker's whole state. */
void broker_snapshot(const struct broker *b, struct bytes *ret);
/*
 * A new broker from it. Connections keep their numbers, and it has been told of them already. NULL, and a sentence in *why
 * that the caller frees, if the text is cut short, garbled, of another version that cannot be read, or contradicts itself.
 * `conf` and `now_ns` as for broker_new().
 */
struct broker *broker_restore(const struct broker_conf *conf, struct slice text, int64_t now_ns, struct bytes *why);
