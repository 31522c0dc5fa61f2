/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A letter's task: another host asks by letter for something that only this host can do. The holders of a lock here are
 * asked for it, or lose it. There may be many holders: a first piece is done at once, the rest in turns of a user that
 * stands for all other hosts (core/port/work.h). A letter that takes a lock by force is answered after that.
 *
 * When the connection ends, no answer can be sent any longer, and the rest of the task is done at once, so that no task is
 * in a snapshot. A task that a kill ends is not answered: the host that sent the letter deletes our znode then
 * (revocation.h).
 */
#pragma once

#include "base/queue.h"
#include "core/hosts/outbox.h"
#include "core/hosts/revoke.h"
#include "core/port/work.h"
#include "protocol/bytes.h"

enum { LETTER_TASKS_MAX = 64 }; /* with more, further ones are done at once */

struct letter_task {
	TAILQ_ENTRY(letter_task) link; /* hosts->letters' tasks.list */
	struct work_item work;
	struct hosts *hosts;
	struct revoke revoke;
	struct bytes id, data; /* of the letter */
};

TAILQ_HEAD(letter_task_list, letter_task);

struct letter_tasks {
	struct letter_task_list list; /* tasks that are not done */
	size_t count;
	struct work_user worker;
};

void letter_tasks_init(struct letter_tasks *e);
/* A letter is for this life of this host: its session. */
bool letter_task_is_for_us(const struct hosts *h, struct slice data);
/* Acts upon a letter of one of those kinds. */
void letter_task_received(struct hosts *h, enum letter_kind kind, struct slice id, struct slice data);
/* Its turn has come (WORK_LETTER_TASK): some steps, at most as many as that or a few more. Returns how many. */
int64_t letter_task_continue(struct letter_task *e, int64_t steps);
/* Does all that is left. */
void letter_tasks_finish(struct hosts *h);
/* Does nothing of it. */
void letter_tasks_deinit(struct hosts *h);
