/* SPDX-License-Identifier: Apache-2.0 */
#include "io/handover/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "io/base/parcel.h"
#include "io/base/watch.h"
#include "io/handover/channel.h"
#include "io/handover/identity.h"
#include "io/handover/program.h"
#include "protocol/number.h"

enum { SIGNALS_MAX = 8, WARM_PIECE = 64 << 10, WARM_BYTES_MAX = 1 << 30 };

struct takeover {
	int channel;
	struct parcel parcel;
	struct watch *watch;
	struct takeover_calls calls;
	struct channel_signal signals[SIGNALS_MAX]; /* passed on so far */
	size_t count;
	void *last; /* piece of the memory that was touched */
};

struct takeover *takeover_new(void)
{
	const char *text = getenv(PROGRAM_VARIABLE);
	struct takeover *t;
	int64_t fd = -1;
	int type = 0;
	socklen_t len = sizeof(type);

	if (!text)
		return NULL;
	number_parse(slice_of(text), &fd);
	unsetenv(PROGRAM_VARIABLE);
	if (fd <= STDERR_FILENO || fd > INT32_MAX || getsockopt((int)fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    type != SOCK_SEQPACKET || fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return NULL;
	t = mem_new(sizeof(*t));
	t->channel = (int)fd;
	return t;
}

void takeover_free(struct takeover *t)
{
	if (!t)
		return;
	watch_free(t->watch);
	parcel_discard(&t->parcel);
	if (t->channel >= 0)
		close(t->channel);
	mem_free(t->last);
	mem_free(t);
}

void takeover_refuse(struct takeover *t, const char *sentence)
{
	if (t)
		channel_send(t->channel, CHANNEL_REFUSED, slice_of(sentence), CHANNEL_FOREVER);
}

static int receive(struct takeover *t)
{
	struct channel_message m;
	int rc = channel_receive(t->channel, &m, CHANNEL_FOREVER);

	parcel_discard(&t->parcel);
	return rc < 0 ? rc : channel_receive_parcel(t->channel, &m, &t->parcel, CHANNEL_FOREVER);
}

/* False: what was to be received did not come. */
static bool received(struct takeover *t, int rc)
{
	if (rc == -EMFILE)
		takeover_refuse(
			t, "the new process may not have as many open files as the running one has: raise LimitNOFILE= "
			   "(ulimit -n)");
	else if (rc < 0 && rc != -EPIPE)
		takeover_refuse(t, "the new process does not understand what the running one says");
	return rc == 0;
}

/*
 * Memory that was never touched is slow at first: this process touches what it will need before anybody waits for it, and
 * gives it back to the allocator, in pieces that this keeps together, under the last one.
 */
static void warm(struct takeover *t)
{
	struct entry e;
	int64_t bytes = parcel_find(&t->parcel, "broker", &e) ? parcel_get_number(&e, "bytes") : 0;
	size_t count = bytes > 0 ? (size_t)min64(bytes, WARM_BYTES_MAX) / WARM_PIECE : 0;
	void **pieces = mem_new_array(count + 1, sizeof(*pieces));

	for (size_t i = 0; i <= count; i++)
		pieces[i] = mem_new(WARM_PIECE);
	t->last = pieces[count];
	for (size_t i = 0; i < count; i++)
		mem_free(pieces[i]);
	mem_free(pieces);
}

bool takeover_meet(struct takeover *t, const struct identity *self)
{
	char error[IDENTITY_ERROR_MAX];

	if (!received(t, receive(t)))
		return false;
	if (!identity_differs(bytes_view(&t->parcel.text), self, error)) {
		warm(t);
		return true;
	}
	takeover_refuse(t, error);
	return false;
}

struct parcel *takeover_receive(struct takeover *t)
{
	int rc = channel_send(t->channel, CHANNEL_READY, SLICE(LOCKBROKERD_VERSION), CHANNEL_FOREVER);

	if (rc == 0)
		rc = receive(t);
	return received(t, rc) ? &t->parcel : NULL;
}

bool takeover_accept(struct takeover *t)
{
	struct channel_message m;
	int rc = channel_send(t->channel, CHANNEL_ACCEPT, SLICE(""), CHANNEL_FOREVER);

	if (rc == 0)
		rc = channel_receive(t->channel, &m, CHANNEL_FOREVER);
	return rc == 0 && m.kind == CHANNEL_COMMIT;
}

static void keep_signal(struct takeover *t, const struct channel_message *m)
{
	if (m->kind == CHANNEL_SIGNAL && m->len == sizeof(struct channel_signal) && t->count < SIGNALS_MAX)
		memcpy(&t->signals[t->count++], m->text, m->len);
}

static void input(int fd, short what, void *arg)
{
	struct takeover *t = arg;
	struct channel_message m;
	int rc = channel_receive(fd, &m, 0);

	if (rc == 0)
		keep_signal(t, &m);
	if (rc == 0 || rc == -ETIMEDOUT)
		return;
	watch_clear(t->watch);
	close(t->channel);
	t->channel = -1;
	t->calls.over(t->calls.arg);
	for (size_t i = 0; i < t->count; i++)
		t->calls.passed(t->calls.arg, t->signals[i].number, t->signals[i].sender);
}

void takeover_watch(struct takeover *t, struct watch_base *base, const struct takeover_calls *calls)
{
	parcel_discard(&t->parcel);
	t->calls = *calls;
	t->watch = watch_new(base, input, t);
	watch_set(t->watch, t->channel, WATCH_READ | WATCH_KEEP, WATCH_NO_TIMEOUT);
}
