/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An errand: what a letter of another host asks for, which this host alone has: the holders of a lock here are asked for it,
 * or lose it. They may be many: a first piece is done at once, the rest in turns of a user that stands for all other hosts
 * (core/port/work.h). A letter that takes a lock by force is answered after that.
 *
 * When the connection ends, no answer can be sent any longer, and what is left is done at once, so that no errand is in a
 * snapshot. One that a kill ends is not answered: who sent it deletes our znode then (revocation.h).
 */
#pragma once

#include "base/queue.h"
#include "core/hosts/outbox.h"
#include "core/hosts/revoke.h"
#include "core/port/work.h"
#include "protocol/bytes.h"

enum { ERRANDS_MAX = 64 }; /* with more, further ones are done at once */

struct errand {
	TAILQ_ENTRY(errand) link; /* hosts->errands.list */
	struct work_item work;
	struct hosts *hosts;
	struct revoke revoke;
	struct bytes id, data; /* of the letter */
};

TAILQ_HEAD(errand_list, errand);

struct errands {
	struct errand_list list; /* those that are not done */
	size_t count;
	struct work_user worker;
};

void errands_init(struct errands *e);
/* A letter is for this life of this host: its session. */
bool errand_is_for_us(const struct hosts *h, struct slice data);
/* Acts upon a letter of one of those kinds. */
void errand_received(struct hosts *h, enum letter_kind kind, struct slice id, struct slice data);
/* Its turn has come (WORK_ERRAND): some steps, at most as many as that or a few more. Returns how many. */
int64_t errand_continue(struct errand *e, int64_t steps);
/* Does all that is left. */
void errands_finish(struct hosts *h);
/* Does nothing of it. */
void errands_deinit(struct hosts *h);
