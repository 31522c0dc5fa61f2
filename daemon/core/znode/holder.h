/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a claim's znode about the holder behind it (record.h); lock/claims.h says when they are written.
 *
 *   host                    | always, and `kind` if the host takes the name for another kind than a lock
 *   pid, uid, command, name | the holder's process and its name
 *   mode, token, holders    | of the grant, and how many hold it together
 *   since, written          | the instants of the grant and of these data, in milliseconds since 1970
 *   data                    | the text that the grant was given
 *   held                    | it is in use whatever else stands here (sighting.h)
 *   leader                  | 1: that host's candidate leads the election
 *   client                  | of permits: the holder's number on its host
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/znode/kind.h"
#include "core/znode/mode.h"
#include "protocol/bytes.h"
#include "protocol/slice.h"

struct holder {
	uint32_t pid, uid;
	struct slice command, name;
	enum mode mode;
	int64_t token, holders, since_ms, written_ms;
};

/* Begins the data that a claim's znode is created with, and appends the lines about a holder. */
void holder_begin(struct bytes *data, const char *host, enum kind kind);
void holder_write(struct bytes *data, const struct holder *h);
/* The kind as which a contender with such data uses the name; NULL: that kind, or it is not a host's. */
const char *holder_other_kind(enum kind kind, struct slice data);
/* A contender behind a znode with such data need not ask for long: it is a holder's, or not a broker's (sighting.h). */
bool holder_in_use(struct slice data);
