/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A handle: how its connection begins and ends, and its settings. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handle.h"
#include "request.h"
#include "socket_path.h"

static struct lb *new_handle(void)
{
	struct lb *lb = calloc(1, sizeof(*lb));

	if (!lb)
		abort();
	lb->fd = lb->taken_fd = -1;
	snprintf(lb->error, sizeof(lb->error), "Nothing has failed.");
	return lb;
}

enum lb_result handle_open(const char *path, int64_t patience_ms, const char *label, const char *owner, struct lb **ret)
{
	struct lb *lb = *ret = new_handle();
	struct socket_path found;
	enum lb_result r;

	if (!socket_path_find(path, &found))
		return wire_fail(lb, LB_CONNECTION, "%s", found.text);
	lb->patience_ms = patience_ms;
	lb->remedy = found.remedy;
	lb->path = strdup(found.text);
	if (!lb->path)
		abort();
	lb->label = label;
	lb->owner = owner;
	r = request_connect(lb);
	/* Only this connection gets them. */
	lb->label = lb->owner = NULL;
	lb->patience_ms = HANDLE_PATIENCE_MS;
	return r;
}

void handle_while_waiting(struct lb *lb, int every_ms, void (*waiting)(void *context), void *context)
{
	lb->waiting = waiting;
	lb->waiting_ms = every_ms;
	lb->waiting_context = context;
}

enum lb_result handle_open_now(const char *path, struct lb **ret)
{
	enum lb_result r = handle_open(path, HANDLE_PATIENCE_MS, NULL, NULL, ret);

	(*ret)->reconnects = r == LB_OK;
	return r;
}

/* How long lb_open() waits for a daemon that is being started again. What is no number is not heeded. */
static int64_t open_ms(void)
{
	const char *text = secure_getenv("LOCKBROKER_OPEN_MS");
	char *end;
	long long ms;

	if (!text || !*text)
		return HANDLE_PATIENCE_MS;
	ms = strtoll(text, &end, 10);
	return *end || ms < 0 ? HANDLE_PATIENCE_MS : ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : ms;
}

enum lb_result lb_open(const char *path, struct lb **ret)
{
	int64_t deadline = wire_deadline(open_ms());
	enum lb_result r = handle_open_now(path, ret);

	r = request_await(*ret, r, deadline);
	(*ret)->reconnects = r == LB_OK;
	return r;
}

void lb_close(struct lb *lb)
{
	int kept = errno;

	if (!lb)
		return;
	if (lb->fd >= 0)
		close(lb->fd);
	resp_replies_deinit(&lb->replies);
	bytes_free(&lb->in);
	bytes_free(&lb->out);
	bytes_free(&lb->events);
	bytes_free(&lb->unanswered);
	bytes_free(&lb->late_error);
	bytes_free(&lb->late_name);
	delegations_drop(&lb->delegations);
	holdings_free(&lb->holdings);
	free(lb->path);
	free(lb);
	errno = kept;
}

int lb_fd(const struct lb *lb)
{
	return lb->fd;
}

void lb_set_patience(struct lb *lb, int64_t ms)
{
	lb->patience_ms = ms < 1 ? 1 : ms;
}

void lb_set_deferred(struct lb *lb, int on)
{
	lb->waits_for_unlock = !on;
}

const char *lb_error(const struct lb *lb)
{
	return lb->error;
}
