/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This host's mailbox, <root>/.mail/<host>: a directory in which other daemons leave letters (outbox.h), with one
 * children watch on it. The box is persistent and outlives sessions; if someone deletes it, it is created again.
 *
 *   state    | means                                            | left by
 *   NONE     | no connection                                    | connected -> LISTING
 *   LISTING  | its list is under way, the watch with it         | answered -> READING; NONODE: created, listed again;
 *            |                                                  |   refused, or gone again and again -> PAUSED
 *   READING  | the letters listed are read and deleted, the     | all of it done -> WATCHING, or LISTING if the watch
 *            |   oldest first, a few at a time                  |   fired since its list
 *   WATCHING | empty, as far as the watch tells                 | watch -> LISTING; half a minute later if a delete
 *            |                                                  |   was refused
 *   PAUSED   | ZooKeeper refuses it                             | half a minute later -> LISTING
 *
 * A letter is acted upon only when its delete was answered OK: the host that deletes it has it, and nobody acts twice.
 * A connection lost in between may lose a letter; the sender that waits for an answer can do without one. A letter
 * names the session it is for, so that none is acted upon in a later life of this daemon. Anything else in the box is
 * deleted, and counted.
 *
 * A letter may be late: it lay in the box while this host had no connection, or was paused. This host knows without
 * comparing clocks how old the letters of a list can be. If a letter had been in the box when ZooKeeper answered our last
 * write, the watch would have fired before that answer, so every letter was posted after that write. The first list on a new
 * connection has no watch before it; its letters were posted after the last answered write of the earlier connection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "core/port/event.h"
#include "protocol/bytes.h"

struct hosts;
struct operation;

enum {
	INBOX_READS_MAX = 16,   /* letters at a time */
	INBOX_BYTES_MAX = 4096, /* of a letter's data */
};

enum inbox_state { INBOX_NONE, INBOX_LISTING, INBOX_READING, INBOX_WATCHING, INBOX_PAUSED };

struct inbox {
	enum inbox_state state;
	struct bytes path;
	int64_t since_ns;    /* of the list: its letters were posted after this instant, of our last answered write */
	int64_t again_ns;    /* the same for the next list */
	bool again;          /* READING: the watch fired */
	bool refused;        /* READING: a letter could not be deleted; NONE: some may not have been read */
	uint8_t tries;       /* lists in a row that found no box */
	uint64_t batch;      /* number of the list */
	struct bytes names;  /* READING: the names in it, one after the other, each with a NUL */
	const char **sorted; /* into them */
	size_t count, sent, done;
	struct bytes data;  /* of the letter whose delete is answered next */
	struct timer timer; /* to list it again, if nothing else does */
};

void inbox_init(struct hosts *h);
void inbox_deinit(struct hosts *h);
/* Asks what is in it. There is a connection. */
void inbox_list(struct hosts *h);
void inbox_suspended(struct hosts *h);
/* Continues to read if there is room again. After every event. */
void inbox_continue(struct hosts *h);
/* inbox.timer is due. */
void inbox_due(struct hosts *h);
/* True when that path is our box's. */
bool inbox_watched(struct hosts *h, struct slice path);
void inbox_answered(struct hosts *h, const struct operation *op, const struct event *event);
