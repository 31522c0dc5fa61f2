/* SPDX-License-Identifier: Apache-2.0 */
#include "io/files/saved_left.h"

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

static void point(struct saved_left *l, struct saved_file *f)
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

static void use(struct saved_left *l, const struct saved_conf *conf)
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
static int lock(struct saved_left *l, const struct saved_conf *conf)
{
	if (flock(l->fd, LOCK_EX | LOCK_NB) == 0)
		use(l, conf);
	else if (errno == EWOULDBLOCK)
		return -EBUSY;
	else
		say(LOG_LEVEL_WARNING, "it cannot be locked");
	return 0;
}

int saved_left_read(struct saved_left **ret, const struct saved_conf *conf)
{
	int dir_fd = open(conf->rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	struct saved_left *l;

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
		saved_left_free(l);
	else
		*ret = l;
	return rc;
}

bool saved_left_is_ending(const char *rundir)
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

void saved_left_free(struct saved_left *l)
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

static void pack_password(struct parcel *p, const char *password)
{
	parcel_text(p, "password", (struct slice){ password, ZK_PASSWORD_BYTES });
}

static void unpack_password(const struct parcel_record *r, char *password)
{
	struct slice text = parcel_get_text(r, "password");

	if (text.len == ZK_PASSWORD_BYTES)
		memcpy(password, text.data, text.len);
}

static void pack_former(struct parcel *p, const struct saved_former *former)
{
	if (!former->id)
		return;
	parcel_begin(p, "former");
	parcel_int(p, "id", former->id);
	pack_password(p, former->password);
	parcel_int(p, "not_before_ns", former->not_before_ns);
	parcel_end(p);
}

static void pack_held(struct parcel *p, const struct saved_conn *c)
{
	parcel_begin(p, "held");
	parcel_int(p, "pid", c->pid);
	parcel_int(p, "start", (int64_t)c->start);
	parcel_int(p, "peer", (int64_t)c->peer);
	parcel_end(p);
}

void saved_left_pack(const struct saved_left *l, struct parcel *p)
{
	parcel_begin(p, "saved");
	parcel_fd(p, "fd", l->fd);
	parcel_int(p, "number", (int64_t)l->number);
	parcel_int(p, "unnamed", l->unnamed);
	parcel_int(p, "id", l->session.id);
	pack_password(p, l->session.password);
	parcel_int(p, "safe_until_ns", l->session.safe_until_ns);
	parcel_int(p, "timeout_ns", l->session.timeout_ns);
	parcel_int(p, "conn_count", (int64_t)l->conn_count);
	parcel_int(p, "held_session", l->held_session);
	parcel_int(p, "held_foreign", l->held_foreign);
	parcel_end(p);
	for (size_t i = 0; i < FORMERS_MAX; i++)
		pack_former(p, &l->former[i]);
	for (size_t i = 0; i < l->held_count; i++)
		pack_held(p, &l->held[i]);
}

static void unpack_former(struct saved_left *l, const struct parcel_record *r)
{
	for (size_t i = 0; i < FORMERS_MAX; i++) {
		if (l->former[i].id)
			continue;
		l->former[i].id = parcel_get_int(r, "id");
		l->former[i].not_before_ns = parcel_get_int(r, "not_before_ns");
		unpack_password(r, l->former[i].password);
		return;
	}
}

static void unpack_held(struct saved_left *l, const struct parcel_record *r)
{
	l->held = mem_resize(l->held, (l->held_count + 1) * sizeof(*l->held));
	l->held[l->held_count++] = (struct saved_conn){ .pid = (uint32_t)parcel_get_int(r, "pid"),
							.start = (uint64_t)parcel_get_int(r, "start"),
							.peer = (uint64_t)parcel_get_int(r, "peer") };
}

int saved_left_unpack(struct saved_left **ret, struct parcel *p)
{
	struct slice rest = bytes_view(&p->text);
	struct saved_left *l = mem_new(sizeof(*l));
	struct parcel_record r;
	struct stat st;
	int64_t conns;

	parcel_find(p, "saved", &r);
	l->fd = parcel_take_fd(p, &r, "fd");
	if (l->fd < 0 || fstat(l->fd, &st) < 0 || why_not_ours(&st)) {
		saved_left_free(l);
		return -EBADMSG;
	}
	l->here = true;
	l->session.id = parcel_get_int(&r, "id");
	unpack_password(&r, l->session.password);
	l->session.safe_until_ns = parcel_get_int(&r, "safe_until_ns");
	l->session.timeout_ns = parcel_get_int(&r, "timeout_ns");
	conns = parcel_get_int(&r, "conn_count");
	l->conn_count = conns > 0 && conns < SAVED_CONNS_MAX ? (size_t)conns : 0;
	l->held_session = parcel_get_int(&r, "held_session");
	l->held_foreign = parcel_get_int(&r, "held_foreign");
	while (parcel_next(&rest, &r))
		if (slice_eq(r.kind, SLICE("former")))
			unpack_former(l, &r);
		else if (slice_eq(r.kind, SLICE("held")))
			unpack_held(l, &r);
	*ret = l;
	return 0;
}

bool saved_left_is_latest(const struct parcel *p, const char *rundir)
{
	uint64_t finished;
	struct parcel_record r;
	int fd;

	parcel_find(p, "saved", &r);
	fd = parcel_look_at_fd(p, &r, "fd");
	if (fd < 0 || pread(fd, &finished, sizeof(finished), offsetof(struct saved_file, finished)) != (ssize_t)sizeof(finished))
		return false;
	/* A process of an earlier version gave its parcel no number. Each process that serves has a file of its own. */
	return finished == (uint64_t)parcel_get_int(&r, "number") &&
	       (parcel_get_int(&r, "unnamed") || named_is(rundir, "saved", fd));
}
