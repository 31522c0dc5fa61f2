/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/legacy.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/base/parcel.h"
#include "keeper/custody.h"

enum { LEGACY_BYTES_MAX = 1 << 28 };

static void pack(const struct legacy *l, const struct custody *c, struct parcel *p)
{
	parcel_begin(p, "keeper");
	parcel_int(p, "log_level", l->log_level);
	parcel_int(p, "log_form", l->log_form);
	parcel_int(p, "channel", l->channel);
	parcel_int(p, "group", l->group);
	parcel_int(p, "worker", l->worker);
	parcel_int(p, "stop", l->stop);
	parcel_int(p, "signals", (int64_t)l->signals);
	parcel_int(p, "within_us", l->within_us);
	parcel_end(p);
	for (unsigned int i = 0; i < l->crashes.count; i++) {
		parcel_begin(p, "crash");
		parcel_int(p, "at_ns", l->crashes.at_ns[i]);
		parcel_end(p);
	}
	for (size_t i = 0; i < custody_count(c); i++) {
		uint64_t id;
		int fd = custody_at(c, i, &id);

		parcel_begin(p, "kept");
		parcel_int(p, "id", (int64_t)id);
		parcel_int(p, "fd", fd);
		parcel_end(p);
	}
}

static int write_all(int fd, struct slice text)
{
	while (text.len > 0) {
		ssize_t n = write(fd, text.data, text.len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			text = (struct slice){ text.data + n, text.len - (size_t)n };
	}
	return 0;
}

int legacy_make(const struct legacy *l, const struct custody *c)
{
	int fd = memfd_create("lockbroker-keeper", MFD_CLOEXEC), rc;
	struct parcel p = { 0 };

	if (fd < 0)
		return -errno;
	pack(l, c, &p);
	rc = write_all(fd, bytes_view(&p.text));
	parcel_free(&p);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

static int read_all(int fd, struct bytes *ret)
{
	struct stat st;
	ssize_t n = 1;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > LEGACY_BYTES_MAX)
		return -EBADMSG;
	bytes_reserve(ret, (size_t)st.st_size);
	while (n != 0 && ret->len < (size_t)st.st_size) {
		n = pread(fd, ret->data + ret->len, (size_t)st.st_size - ret->len, (off_t)ret->len);
		if (n < 0 && errno != EINTR)
			return -errno;
		ret->len += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Inherited for this one time. */
static bool own(int fd)
{
	return fd > STDERR_FILENO && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static void unpack(const struct parcel_record *r, struct legacy *l, struct custody *c)
{
	if (slice_is(r->kind, "keeper")) {
		l->log_level = (int)parcel_get_int(r, "log_level");
		l->log_form = (int)parcel_get_int(r, "log_form");
		l->channel = (int)parcel_get_int(r, "channel");
		l->group = (pid_t)parcel_get_int(r, "group");
		l->worker = (pid_t)parcel_get_int(r, "worker");
		l->stop = (int)parcel_get_int(r, "stop");
		l->signals = (uint64_t)parcel_get_int(r, "signals");
		l->within_us = parcel_get_int(r, "within_us");
	} else if (slice_is(r->kind, "crash")) {
		crashes_add(&l->crashes, parcel_get_int(r, "at_ns"));
	} else if (slice_is(r->kind, "kept")) {
		int fd = (int)parcel_get_int(r, "fd");

		if (own(fd))
			custody_put(c, (uint64_t)parcel_get_int(r, "id"), fd);
	}
}

int legacy_read(int fd, struct legacy *ret, struct custody *c)
{
	struct bytes text = { 0 };
	struct parcel_record r;
	struct slice rest;
	int rc = read_all(fd, &text);

	*ret = (struct legacy){ .channel = -1 };
	close(fd);
	rest = bytes_view(&text);
	while (rc == 0 && parcel_next(&rest, &r))
		unpack(&r, ret, c);
	/* A group below that is not of a worker alone. */
	if (rc == 0 && (rest.len || ret->group <= 1 || !own(ret->channel)))
		rc = -EBADMSG;
	bytes_free(&text);
	return rc;
}
