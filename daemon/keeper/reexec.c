/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/reexec.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/base/parcel.h"
#include "io/handover/sealed.h"
#include "keeper/descriptors.h"

enum { REEXEC_BYTES_MAX = 1 << 28 };

static void pack(const struct reexec *r, const struct descriptors *d, struct parcel *p)
{
	parcel_begin(p, "keeper");
	parcel_int(p, "log_level", r->log_level);
	parcel_int(p, "log_form", r->log_form);
	parcel_int(p, "channel", r->channel);
	parcel_int(p, "group", r->group);
	parcel_int(p, "worker", r->worker);
	parcel_int(p, "stop", r->stop);
	parcel_int(p, "keep", r->keep);
	parcel_int(p, "signals", (int64_t)r->signals);
	parcel_int(p, "within_us", r->within_us);
	parcel_int(p, "core", r->core);
	parcel_end(p);
	for (unsigned int i = 0; i < r->crashes.count; i++) {
		parcel_begin(p, "crash");
		parcel_int(p, "at_ns", r->crashes.at_ns[i]);
		parcel_int(p, "pause_ns", r->crashes.pause_ns);
		parcel_end(p);
	}
	for (size_t i = 0; i < descriptors_count(d); i++) {
		uint64_t id;
		int fd = descriptors_at(d, i, &id);

		parcel_begin(p, "kept");
		parcel_int(p, "id", (int64_t)id);
		parcel_int(p, "fd", fd);
		parcel_end(p);
	}
}

int reexec_make(const struct reexec *r, const struct descriptors *d)
{
	struct parcel p = { 0 };
	int fd, rc;

	pack(r, d, &p);
	rc = sealed_make(bytes_view(&p.text), &fd);
	parcel_free(&p);
	return rc < 0 ? rc : fd;
}

static int read_all(int fd, struct bytes *ret)
{
	struct stat st;
	ssize_t n = 1;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > REEXEC_BYTES_MAX)
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

static void unpack(const struct parcel_record *r, struct reexec *to, struct descriptors *d)
{
	if (slice_is(r->kind, "keeper")) {
		to->log_level = (int)parcel_get_int(r, "log_level");
		to->log_form = (int)parcel_get_int(r, "log_form");
		to->channel = (int)parcel_get_int(r, "channel");
		to->group = (pid_t)parcel_get_int(r, "group");
		to->worker = (pid_t)parcel_get_int(r, "worker");
		to->stop = (int)parcel_get_int(r, "stop");
		to->keep = (int)parcel_get_int(r, "keep");
		to->signals = (uint64_t)parcel_get_int(r, "signals");
		to->within_us = parcel_get_int(r, "within_us");
		to->core = parcel_get_int(r, "core");
	} else if (slice_is(r->kind, "crash")) {
		crashes_add(&to->crashes, parcel_get_int(r, "at_ns"));
		to->crashes.pause_ns = parcel_get_int(r, "pause_ns");
	} else if (slice_is(r->kind, "kept")) {
		int fd = (int)parcel_get_int(r, "fd");

		if (own(fd))
			descriptors_put(d, (uint64_t)parcel_get_int(r, "id"), fd);
	}
}

int reexec_read(int fd, struct reexec *ret, struct descriptors *d)
{
	struct bytes text = { 0 };
	struct parcel_record r;
	struct slice rest;
	int rc = read_all(fd, &text);

	*ret = (struct reexec){ .channel = -1 };
	close(fd);
	rest = bytes_view(&text);
	while (rc == 0 && parcel_next(&rest, &r))
		unpack(&r, ret, d);
	/* A group below that is not of a worker alone. */
	if (rc == 0 && (rest.len || ret->group <= 1 || !own(ret->channel)))
		rc = -EBADMSG;
	bytes_free(&text);
	return rc;
}
