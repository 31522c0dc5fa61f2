/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/reexec.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/base/parcel.h"
#include "io/handover/channel.h"
#include "keeper/descriptors.h"

enum { REEXEC_BYTES_MAX = 1 << 28 };

static const struct field fields[] = {
	FIELD_ANY(struct reexec, "log_level", log_level),
	FIELD_ANY(struct reexec, "log_form", log_form),
	FIELD_ANY(struct reexec, "channel", channel),
	FIELD_ANY(struct reexec, "group", group),
	FIELD_ANY(struct reexec, "worker", worker),
	FIELD_ANY(struct reexec, "stop", stop),
	FIELD_ANY(struct reexec, "keep", keep),
	FIELD_ANY(struct reexec, "signals", signals),
	FIELD_ANY(struct reexec, "within_us", within_us),
	FIELD_ANY(struct reexec, "core", core),
};

static void pack(const struct reexec *r, const struct descriptors *d, struct bytes *text)
{
	struct entry_writer w = entry_begin(text, "keeper");

	entry_fields(&w, FIELDS(fields), r);
	entry_end(&w);
	for (unsigned int i = 0; i < r->crashes.count; i++) {
		w = entry_begin(text, "crash");
		entry_number(&w, "at_ns", r->crashes.at_ns[i]);
		entry_number(&w, "pause_ns", r->crashes.pause_ns);
		entry_end(&w);
	}
	for (size_t i = 0; i < descriptors_count(d); i++) {
		uint64_t id;
		int fd = descriptors_at(d, i, &id);

		w = entry_begin(text, "kept");
		entry_number(&w, "id", (int64_t)id);
		entry_number(&w, "fd", fd);
		entry_end(&w);
	}
}

int reexec_make(const struct reexec *r, const struct descriptors *d)
{
	struct bytes text = { 0 };
	int fd, rc;

	pack(r, d, &text);
	rc = sealed_make(bytes_view(&text), &fd);
	bytes_free(&text);
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

static bool unpack(const struct entry *e, struct reexec *to, struct descriptors *d)
{
	if (slice_is(e->word, "keeper"))
		return entry_get_fields(e, FIELDS(fields), to);
	if (slice_is(e->word, "crash")) {
		crashes_add(&to->crashes, parcel_get_number(e, "at_ns"));
		to->crashes.pause_ns = parcel_get_number(e, "pause_ns");
	} else if (slice_is(e->word, "kept")) {
		int fd = (int)parcel_get_number(e, "fd");

		if (own(fd))
			descriptors_put(d, (uint64_t)parcel_get_number(e, "id"), fd);
	}
	return true;
}

int reexec_read(int fd, struct reexec *ret, struct descriptors *d)
{
	struct parcel p = { 0 };
	struct entry e;
	int rc = read_all(fd, &p.text);

	*ret = (struct reexec){ .channel = -1 };
	close(fd);
	parcel_rewind(&p);
	while (rc == 0 && parcel_next(&p, &e))
		rc = unpack(&e, ret, d) ? 0 : -EBADMSG;
	/* A group below that is not of a worker alone. */
	if (rc == 0 && (p.why.len || ret->group <= 1 || !own(ret->channel)))
		rc = -EBADMSG;
	parcel_free(&p);
	return rc;
}
