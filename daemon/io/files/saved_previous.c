/* SPDX-License-Identifier: Apache-2.0 */
#include "io/files/saved_previous.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/base/parcel.h"
#include "io/base/peer.h"
#include "io/base/process.h"
#include "io/files/named.h"
#include "io/files/saved.h"

/* ---- the file ---- */

static const char *why_not_ours(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (st->st_uid != geteuid())
		return "it belongs to another user";
	if (st->st_mode & 077)
		return "others have access to it";
	return NULL;
}

/* ZooKeeper counts timeouts in milliseconds of 32 bits; instants are none before the boot. */
static bool is_session(const struct saved_session *s)
{
	return s->safe_until_ns >= 0 && s->timeout_ns <= INT32_MAX * CLOCK_NS_PER_MS &&
	       s->timeout_ns >= (s->id ? CLOCK_NS_PER_MS : 0);
}

/* The daemon that wrote it may have been killed while it made the file longer: the memory may end before the file does. */
static const char *why_corrupt(const struct saved_file *f, size_t size)
{
	if (size < sizeof(*f) || f->magic != SAVED_MAGIC)
		return "it is corrupt";
	if (f->version != SAVED_VERSION)
		return "another version wrote it";
	if (f->identity_bytes > SAVED_IDENTITY_MAX || f->conn_count > SAVED_CONNS_MAX ||
	    f->memory_bytes > SAVED_MEMORY_MAX ||
	    size < saved_memory_at(f->identity_bytes, f->conn_count) + f->memory_bytes || f->present > 1 ||
	    !is_session(&f->session[f->present]) || !memchr(f->boot_id, '\0', SAVED_BOOT_ID_MAX) ||
	    !memchr(f->host, '\0', SAVED_HOST_MAX))
		return "it is corrupt";
	return NULL;
}

static bool writer_lives(const struct saved_file *f)
{
	return f->namespace == process_namespace() && (pid_t)f->writer != getpid() &&
	       process_lives((pid_t)f->writer, f->writer_start);
}

/* The lock says nothing about a daemon that wrote another copy of the file. */
static const char *why_living(const struct saved_file *f, const struct stat *st)
{
	if (f->device != st->st_dev || f->inode != st->st_ino)
		return "it is a copy, and the daemon that wrote it may be running";
	return writer_lives(f) ? "the daemon that wrote it is running" : NULL;
}

/*
 * The session of another name may be a living daemon's: the directory may have been copied with the image of its host.
 * So may the session of another boot, with a copy of its disk; and a boot takes longer than a session.
 */
static const char *why_other(const struct saved_file *f, const struct saved_conf *conf)
{
	if (strcmp(f->host, conf->host) != 0)
		return "it is from another zookeeper.host";
	return strcmp(f->boot_id, conf->boot_id) != 0 ? "it is from another boot" : NULL;
}

static bool read_all(int fd, void *to, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size) {
		n = pread(fd, (char *)to + len, size - len, (off_t)len);
		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		len += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Reads the whole file, which nobody writes any longer. NULL if it cannot be used; *ret_why then has the reason. */
static struct saved_file *read_whole(int fd, const char **ret_why)
{
	struct saved_file *f = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0) {
		*ret_why = strerror(errno);
		return NULL;
	}
	*ret_why = why_not_ours(&st);
	if (*ret_why)
		return NULL;
	if (st.st_size < (off_t)sizeof(*f) ||
	    st.st_size > (off_t)(saved_memory_at(SAVED_IDENTITY_MAX, SAVED_CONNS_MAX) + SAVED_MEMORY_MAX)) {
		*ret_why = "it is corrupt";
		return NULL;
	}
	f = mem_new((size_t)st.st_size);
	*ret_why = read_all(fd, f, (size_t)st.st_size) ? why_corrupt(f, (size_t)st.st_size) : "it cannot be read";
	if (!*ret_why)
		*ret_why = why_living(f, &st);
	if (!*ret_why)
		return f;
	mem_free(f);
	return NULL;
}

static void point(struct saved_previous *l, struct saved_file *f)
{
	const char *data = (const char *)f;

	l->file = f;
	l->standalone = f->standalone;
	l->here = f->namespace && f->namespace == process_namespace() && f->network && f->network == peer_namespace() &&
		  f->clock == process_clock();
	l->session = f->session[f->present];
	memcpy(l->former, f->former, sizeof(l->former));
	l->conns = (const struct saved_conn *)(const void *)(data + saved_conns_at(f->identity_bytes));
	l->conn_count = f->conn_count;
	l->identity = (struct slice){ data + saved_identity_at(), f->identity_bytes };
	l->memory = (struct slice){ data + saved_memory_at(f->identity_bytes, f->conn_count), f->memory_bytes };
}

static void say(enum log_level level, const char *why)
{
	log_event(
		level, LOG_EVENT_saved_unused, LOG_FIELDS("error=%v", why),
		"the file that an earlier daemon saved is not used: %s; a session that it did not end stays until its timeout",
		why);
}

static void use(struct saved_previous *l, const struct saved_conf *conf)
{
	const char *why = NULL;
	struct saved_file *f = read_whole(l->fd, &why);

	if (!f) {
		say(LOG_LEVEL_WARNING, why);
		return;
	}
	why = why_other(f, conf);
	if (!why) {
		point(l, f);
		return;
	}
	say(LOG_LEVEL_INFO, why);
	mem_free(f);
}

/* 0 or -EBUSY. */
static int lock(struct saved_previous *l, const struct saved_conf *conf)
{
	if (flock(l->fd, LOCK_EX | LOCK_NB) == 0)
		use(l, conf);
	else if (errno == EWOULDBLOCK)
		return -EBUSY;
	else
		say(LOG_LEVEL_WARNING, "it cannot be locked");
	return 0;
}

int saved_previous_read(struct saved_previous **ret, const struct saved_conf *conf)
{
	int dir_fd = open(conf->rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	struct saved_previous *l;

	if (dir_fd < 0)
		return -errno;
	l = mem_new(sizeof(*l));
	l->fd = openat(dir_fd, "saved", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (l->fd >= 0)
		rc = lock(l, conf);
	else if (errno != ENOENT)
		say(LOG_LEVEL_WARNING, errno == ELOOP ? "it is a symbolic link" : strerror(errno));
	close(dir_fd);
	if (rc < 0)
		saved_previous_free(l);
	else
		*ret = l;
	return rc;
}

bool saved_previous_is_ending(const char *rundir)
{
	char path[PATH_MAX];
	struct saved_file f;
	struct stat st;
	bool lives;
	int fd = -1;

	if (snprintf(path, sizeof(path), "%s/saved", rundir) < (int)sizeof(path))
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	lives = fstat(fd, &st) == 0 && !why_not_ours(&st) && read_all(fd, &f, sizeof(f)) &&
		!why_corrupt(&f, (size_t)st.st_size) && f.device == st.st_dev && f.inode == st.st_ino && writer_lives(&f);
	explicit_bzero(&f, sizeof(f));
	close(fd);
	return lives;
}

void saved_previous_free(struct saved_previous *l)
{
	if (!l)
		return;
	if (l->fd >= 0)
		close(l->fd);
	mem_free(l->held);
	/* Both have passwords of sessions. */
	if (l->file)
		explicit_bzero(l->file, sizeof(*l->file));
	mem_free(l->file);
	explicit_bzero(l, sizeof(*l));
	mem_free(l);
}

/* ---- the parcel ---- */

static void pack_password(struct entry_writer *w, const char *password)
{
	entry_text(w, "password", (struct slice){ password, ZK_PASSWORD_BYTES });
}

static void unpack_password(const struct entry *e, char *password)
{
	struct slice text = parcel_get_text(e, "password");

	if (text.len == ZK_PASSWORD_BYTES)
		memcpy(password, text.data, text.len);
}

static const struct field left_fields[] = {
	FIELD_ANY(struct saved_previous, "number", number),
	FIELD_FLAG(struct saved_previous, "unnamed", unnamed),
	FIELD_ANY(struct saved_previous, "id", session.id),
	FIELD_ANY(struct saved_previous, "safe_until_ns", session.safe_until_ns),
	FIELD_ANY(struct saved_previous, "timeout_ns", session.timeout_ns),
	FIELD_NUMBER(struct saved_previous, "conn_count", conn_count, 0, SAVED_CONNS_MAX),
	FIELD_ANY(struct saved_previous, "held_session", held_session),
	FIELD_FLAG(struct saved_previous, "held_foreign", held_foreign),
};

static const struct field former_fields[] = {
	FIELD_ANY(struct saved_former, "id", id),
	FIELD_ANY(struct saved_former, "not_before_ns", not_before_ns),
};

static const struct field held_fields[] = {
	FIELD_ANY(struct saved_conn, "pid", pid),
	FIELD_ANY(struct saved_conn, "start", start),
	FIELD_ANY(struct saved_conn, "peer", peer),
};

void saved_previous_pack(const struct saved_previous *l, struct parcel *p)
{
	struct entry_writer w = entry_begin(&p->text, "saved");

	parcel_fd(p, &w, "fd", l->fd);
	entry_fields(&w, FIELDS(left_fields), l);
	pack_password(&w, l->session.password);
	entry_end(&w);
	for (size_t i = 0; i < FORMERS_MAX; i++) {
		if (!l->former[i].id)
			continue;
		w = entry_begin(&p->text, "former");
		entry_fields(&w, FIELDS(former_fields), &l->former[i]);
		pack_password(&w, l->former[i].password);
		entry_end(&w);
	}
	for (size_t i = 0; i < l->held_count; i++) {
		w = entry_begin(&p->text, "held");
		entry_fields(&w, FIELDS(held_fields), &l->held[i]);
		entry_end(&w);
	}
}

static bool unpack_former(struct saved_previous *l, const struct entry *e)
{
	struct saved_former *to = saved_former_find(l->former, 0);

	if (!to)
		return true;
	unpack_password(e, to->password);
	return entry_get_fields(e, FIELDS(former_fields), to);
}

static bool unpack_held(struct saved_previous *l, const struct entry *e)
{
	l->held = mem_resize(l->held, (l->held_count + 1) * sizeof(*l->held));
	l->held[l->held_count] = (struct saved_conn){ 0 };
	return entry_get_fields(e, FIELDS(held_fields), &l->held[l->held_count++]);
}

int saved_previous_unpack(struct saved_previous **ret, struct parcel *p)
{
	struct saved_previous *l = mem_new(sizeof(*l));
	struct entry e;
	struct stat st;
	bool good;

	parcel_find(p, "saved", &e);
	l->fd = parcel_take_fd(p, &e, "fd");
	good = l->fd >= 0 && fstat(l->fd, &st) == 0 && !why_not_ours(&st) && entry_get_fields(&e, FIELDS(left_fields), l);
	l->here = true;
	unpack_password(&e, l->session.password);
	while (good && parcel_next(p, &e))
		if (slice_is(e.word, "former"))
			good = unpack_former(l, &e);
		else if (slice_is(e.word, "held"))
			good = unpack_held(l, &e);
	if (!good) {
		saved_previous_free(l);
		return -EBADMSG;
	}
	*ret = l;
	return 0;
}

bool saved_previous_is_latest(struct parcel *p, const char *rundir)
{
	uint64_t finished;
	struct entry e;
	int fd;

	parcel_find(p, "saved", &e);
	fd = parcel_look_at_fd(p, &e, "fd");
	if (fd < 0 || pread(fd, &finished, sizeof(finished), offsetof(struct saved_file, finished)) != (ssize_t)sizeof(finished))
		return false;
	/* A process of an earlier version gave its parcel no number. Each process that serves has a file of its own. */
	return finished == (uint64_t)parcel_get_number(&e, "number") &&
	       (parcel_get_number(&e, "unnamed") || named_is(rundir, "saved", fd));
}
