/* SPDX-License-Identifier: Apache-2.0 */
/* The brokers: the null broker, and lockbrokerd by plain requests and through its library. */
#include <lockbroker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "line.h"
#include "load.h"
#include "null.h"

/* ---- null ---- */

static int null_say(struct line *l, enum null_op op, const struct lock_name *name)
{
	struct null_message m = { op, name->number };

	return line_send(l, &m, sizeof(m));
}

static int null_hear(struct line *l)
{
	return line_bytes(l, sizeof(struct null_message)) ? 0 : -1;
}

static int null_ask(void *session, const struct lock_name *name)
{
	return null_say(session, NULL_LOCK, name);
}

static int null_granted(void *session, const struct lock_name *name)
{
	return null_hear(session);
}

static int null_unlock(void *session, const struct lock_name *name)
{
	return null_say(session, NULL_UNLOCK, name) ? -1 : null_hear(session);
}

static int null_unlock_silent(void *session, const struct lock_name *name)
{
	return null_say(session, NULL_UNLOCK, name);
}

const struct peer peer_null = {
	.word = "null",
	.open = line_open,
	.ask = null_ask,
	.granted = null_granted,
	.unlock = null_unlock,
};

const struct peer peer_null_silent = {
	.word = "null-silent",
	.open = line_open,
	.ask = null_ask,
	.granted = null_granted,
	.unlock = null_unlock_silent,
};

/* ---- lockbrokerd, by requests that are waited for one after the other ---- */

struct session {
	struct line line;
	struct line_request lock, unlock;
};

static void *broker_open(const char *target)
{
	struct session *s = calloc(1, sizeof(*s));

	return s && line_connect(&s->line, target) == 0 ? s : NULL;
}

static int answer(struct line *l)
{
	const char *line = line_read(l);

	if (line && *line == ':')
		return 0;
	fprintf(stderr, "bench: lockbrokerd says %s\n", line ? line : "nothing");
	return -1;
}

static int broker_ask(void *session, const struct lock_name *name)
{
	struct session *s = session;

	return line_same_words(&s->line, &s->lock, name->number, "LOCK", name->text, NULL);
}

static int broker_granted(void *session, const struct lock_name *name)
{
	struct session *s = session;

	return answer(&s->line);
}

static int broker_unlock(void *session, const struct lock_name *name)
{
	struct session *s = session;

	if (line_same_words(&s->line, &s->unlock, name->number, "UNLOCK", name->text, NULL))
		return -1;
	return answer(&s->line);
}

const struct peer peer_lockbroker = {
	.word = "lockbroker",
	.open = broker_open,
	.ask = broker_ask,
	.granted = broker_granted,
	.unlock = broker_unlock,
};

/* ---- lockbrokerd, through the library as it comes ---- */

static int told(struct lb *lb, enum lb_result r)
{
	if (r == LB_OK)
		return 0;
	fprintf(stderr, "bench: %s\n", lb_error(lb));
	return -1;
}

static void *library_open(const char *target)
{
	struct lb *lb;

	enum lb_result r = lb_open(target, &lb);

	return told(lb, r) == 0 ? lb : NULL;
}

static int library_lock(void *session, const struct lock_name *name)
{
	return told(session, lb_lock(session, name->text, NULL));
}

static int library_lock_shared(void *session, const struct lock_name *name)
{
	return told(session, lb_lock_shared(session, name->text, -1, NULL));
}

static int library_unlock(void *session, const struct lock_name *name)
{
	return told(session, lb_unlock(session, name->text));
}

static void library_close(void *session)
{
	lb_close(session);
}

const struct peer peer_library = {
	.word = "library",
	.open = library_open,
	.lock = library_lock,
	.lock_shared = library_lock_shared,
	.unlock = library_unlock,
	.close = library_close,
};
