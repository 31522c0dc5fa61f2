/* SPDX-License-Identifier: Apache-2.0 */
#include "io/fdstore.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cold.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/base/keeper.h"
#include "io/base/parcel.h"
#include "io/handover/channel.h"
#include "io/handover/handover.h"
#include "io/notify.h"
#include "protocol/number.h"

#define KEEP_TEXT "lockbroker-state"
#define KEEP_QUEUE "lockbroker-descriptors"
#define KEEP_CONF "lockbroker-configuration"

static const char LEAVING[] = "the service is stopped and started";

enum { KEEP_WAIT_MS = 2000, LISTEN_FD_FIRST = 3 };

struct keep {
	const struct notify *notify;
	struct handover *handover;
	const int *conf_fd;
	bool asked;
	int number; /* of the signal that waits; 0: none does */
};

struct keep *fdstore_new(const struct notify *notify, struct handover *handover, const int *conf_fd)
{
	struct keep *k = mem_new(sizeof(*k));

	k->notify = notify;
	k->handover = handover;
	k->conf_fd = conf_fd;
	return k;
}

void fdstore_free(struct keep *k)
{
	mem_free(k);
}

void fdstore_ask(struct keep *k)
{
	if (k->notify->fd < 0) {
		log_warning(not_kept, LOG_FIELDS("what=%s", "state"),
			    "nothing is kept for the next start of the service: there is no service manager");
		keeper_stays(k->notify->keeper);
		return;
	}
	k->asked = true;
	handover_cancel(k->handover, LEAVING);
}

bool fdstore_delays(struct keep *k, int number)
{
	if (k->asked)
		k->number = number;
	return k->asked;
}

static bool has_hung_up(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR));
}

static void fdstore_forget(const struct notify *n)
{
	notify_unstore(n, KEEP_TEXT);
	notify_unstore(n, KEEP_QUEUE);
	notify_unstore(n, KEEP_CONF);
}

void fdstore_drop(const struct notify *n)
{
	fdstore_forget(n);
	notify_barrier(n, KEEP_WAIT_MS);
}

/* 0 or -errno: the manager has them. */
static int fdstore_give(const struct notify *n, const struct parcel *p, int conf_fd)
{
	struct store s;
	int kept, rc = store_make(p, &s, &kept);

	if (rc < 0)
		return rc;
	/* What an earlier process could not have removed would be found first. */
	fdstore_forget(n);
	rc = notify_store(n, KEEP_TEXT, s.text);
	if (rc == 0)
		rc = notify_store(n, KEEP_QUEUE, s.queue);
	/* Without it the next process has the file. */
	if (rc == 0 && conf_fd >= 0)
		rc = notify_store(n, KEEP_CONF, conf_fd);
	store_close(&s);
	if (rc == 0)
		rc = notify_barrier(n, KEEP_WAIT_MS);
	if (rc == 0 && has_hung_up(kept))
		rc = -ENOSPC;
	close(kept);
	if (rc < 0)
		fdstore_forget(n);
	return rc;
}

static void fdstore_failed(struct keep *k, int rc)
{
	k->asked = false;
	keeper_stays(k->notify->keeper);
	log_warning(not_kept, LOG_FIELDS("what=%s error=%v", "state", strerror(-rc)),
		    "nothing is kept for the next start of the service: %s; this process goes on until it is stopped",
		    rc == -ENOSPC ? "systemd has no room for it (FileDescriptorStoreMax=)" : strerror(-rc));
	if (k->number)
		raise(k->number);
}

bool fdstore_is_asked(const struct keep *k)
{
	return k->asked;
}

/* A function of its own, because fdstore_due() is called in each turn. */
static COLD bool give(struct keep *k)
{
	struct parcel p = { 0 };
	int rc;

	/* It may have been asked for since. */
	handover_cancel(k->handover, LEAVING);
	if (!handover_freeze(k->handover, &p))
		return false;
	rc = fdstore_give(k->notify, &p, *k->conf_fd);
	parcel_free(&p);
	if (rc < 0) {
		fdstore_failed(k, rc);
		return false;
	}
	log_info(kept, LOG_NO_FIELDS, "everything is kept for the next start of the service");
	handover_finish(k->handover);
	return true;
}

bool fdstore_due(struct keep *k)
{
	return k->asked && give(k);
}

/* ---- the next process ---- */

/* The number of descriptors that are for this process. */
static int passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int64_t number = 0, count = 0;

	if (!pid || !fds || !number_parse(slice_of(pid), &number) || number != getpid() ||
	    !number_parse(slice_of(fds), &count) || count < 0 || count > 1000)
		return 0;
	return (int)count;
}

static bool is_named(const char *names, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(names, name, len) == 0;
}

/* Not inherited by other programs, and out of the way of the others; the manager has made it block. */
static int own(int fd, int from)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, from);

	close(fd);
	if (copy >= 0)
		fcntl(copy, F_SETFL, O_NONBLOCK);
	return copy;
}

/* Takes out ours, and moves the others together. */
static void pick(const char *names, int count, struct store *ret)
{
	int next = LISTEN_FD_FIRST, end = LISTEN_FD_FIRST + count;
	char text[16];

	for (int fd = LISTEN_FD_FIRST; fd < end; fd++) {
		size_t len = strcspn(names, ":");

		if (is_named(names, len, KEEP_TEXT) && ret->text < 0)
			ret->text = own(fd, end);
		else if (is_named(names, len, KEEP_QUEUE) && ret->queue < 0)
			ret->queue = own(fd, end);
		else if (is_named(names, len, KEEP_CONF))
			close(fd);
		else if (fd == next++)
			; /* it stays */
		else if (dup2(fd, next - 1) >= 0)
			close(fd);
		names += len + (names[len] == ':');
	}
	snprintf(text, sizeof(text), "%d", next - LISTEN_FD_FIRST);
	setenv("LISTEN_FDS", text, 1);
}

int fdstore_conf(void)
{
	const char *names = getenv("LISTEN_FDNAMES");
	int count = passed();

	for (int fd = LISTEN_FD_FIRST; names && fd < LISTEN_FD_FIRST + count; fd++) {
		size_t len = strcspn(names, ":");

		if (is_named(names, len, KEEP_CONF))
			return fd;
		names += len + (names[len] == ':');
	}
	return -1;
}

bool fdstore_take(const struct notify *notify, struct parcel *ret)
{
	struct store s = { .text = -1, .queue = -1 };
	const char *names = getenv("LISTEN_FDNAMES");
	int count = passed(), rc = -EBADMSG;

	*ret = (struct parcel){ 0 };
	if (count == 0 || !names)
		return false;
	pick(names, count, &s);
	if (s.text < 0 && s.queue < 0)
		return false;
	/* What is locked by a descriptor that cannot be read is free when nobody has that any longer. */
	fdstore_drop(notify);
	if (s.text >= 0 && s.queue >= 0)
		rc = store_read(&s, ret);
	store_close(&s);
	if (rc == 0)
		return true;
	log_error(
		saved_unused, LOG_FIELDS("error=%v", strerror(-rc)),
		"the connections and locks that the earlier process left cannot be read: %s; this process starts without them",
		strerror(-rc));
	parcel_discard(ret);
	return false;
}
