/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One question to the daemon: METRICS, on a connection of its own. It never blocks, and ends by a deadline, whatever the
 * daemon does or does not do.
 */
#pragma once

#include <event2/event.h>

#include "protocol/slice.h"

enum { QUESTION_SECONDS = 5, QUESTION_BYTES_MAX = 1024 * 1024 };

struct question;

/*
 * Asks the daemon at the path. `answered` is called once, unless the question is freed before: with the text, or, if there
 * is no answer, with a text whose data are NULL. NULL: the daemon cannot be reached now.
 */
struct question *question_new(struct event_base *base, const char *path, void (*answered)(void *of, struct slice text),
			      void *of);
void question_free(struct question *q); /* may be NULL; not from within `answered` before that has used the text */
