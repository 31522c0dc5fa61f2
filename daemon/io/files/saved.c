/* SPDX-License-Identifier: Apache-2.0 */
#include "io/files/saved.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/session/former.h"
#include "io/base/parcel.h"
#include "io/base/peer.h"
#include "io/base/process.h"

enum { SAVED_MAGIC = 0x4c425356, SAVED_VERSION = 3, BOOT_ID_MAX = 64, HOST_MAX = 256 };

#define LOOK_NS (2 * CLOCK_NS_PER_MS)         /* for the questions of one call, while clients wait */
#define FIRST_LOOK_NS (500 * CLOCK_NS_PER_MS) /* when nobody is served yet */

struct file_session {
	int64_t id; /* 0: none */
	char password[ZK_PASSWORD_BYTES];
	int64_t safe_until_ns, timeout_ns;
};

struct file_former {
	int64_t id; /* 0: none */
	char password[ZK_PASSWORD_BYTES];
	int64_t not_before_ns;
};

struct file_holder {
	uint32_t holds, pid;
	uint64_t start;
	uint64_t peer; /* its end of the connection; 0: not known yet */
};

struct file {
	uint32_t magic, version;
	uint64_t namespace;     /* of the process numbers */
	uint64_t network;       /* of the connections */
	uint64_t device, inode; /* of this file: a copy has others */
	uint64_t clock;         /* the namespace of the instants */
	uint64_t writer_start;
	uint32_t writer, unused;        /* the daemon */
	uint32_t holder_count, present; /* which of the two sessions */
	char boot_id[BOOT_ID_MAX], host[HOST_MAX];
	struct file_session session[2];
	struct file_former former[FORMERS_MAX];
	struct file_holder holder[];
};

struct saved {
	int fd; /* locked */
	struct file *file;
	size_t size;
	/* Of the session that was the earlier daemon's last. */
	int64_t held_session;
	struct file_holder *held;
	size_t held_count;
	bool held_foreign; /* the process numbers are from another namespace */
	int diag;          /* see peer.h */
	uint32_t *self;    /* our ends of the connections whose other ends are not known yet; 0: none */
	size_t look;       /* the holder to be asked about next */
};

static size_t size_of(size_t holders)
{
	return sizeof(struct file) + holders * sizeof(struct file_holder);
}

/* ---- what was left ---- */

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

static const char *why_corrupt(const struct file *f, size_t size)
{
	if (size < sizeof(*f) || f->magic != SAVED_MAGIC)
		return "it is corrupt";
	if (f->version != SAVED_VERSION)
		return "another version wrote it";
	if (size != size_of(f->holder_count) || f->present > 1 || !memchr(f->boot_id, '\0', BOOT_ID_MAX) ||
	    !memchr(f->host, '\0', HOST_MAX))
		return "it is corrupt";
	return NULL;
}

/* The lock says nothing about a daemon that wrote another copy of the file. */
static const char *why_living(const struct file *f, const struct stat *st)
{
	if (f->device != st->st_dev || f->inode != st->st_ino)
		return "it is a copy, and the daemon that wrote it may be running";
	if (f->namespace == process_namespace() && (pid_t)f->writer != getpid() &&
	    process_lives((pid_t)f->writer, f->writer_start))
		return "the daemon that wrote it is running";
	return NULL;
}

/* Reads the whole file, which nobody writes any longer. NULL if it cannot be used; *ret_why then has the reason. */
static struct file *read_whole(int fd, const char **ret_why)
{
	struct file *f = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0) {
		*ret_why = strerror(errno);
		return NULL;
	}
	*ret_why = why_not_ours(&st);
	if (*ret_why)
		return NULL;
	if (st.st_size < (off_t)sizeof(*f) || st.st_size > (off_t)size_of(UINT32_MAX / 1024)) {
		*ret_why = "it is corrupt";
		return NULL;
	}
	f = mem_new((size_t)st.st_size);
	*ret_why = pread(fd, f, (size_t)st.st_size, 0) == st.st_size ? why_corrupt(f, (size_t)st.st_size)
								     : "it cannot be read";
	if (!*ret_why)
		*ret_why = why_living(f, &st);
	if (!*ret_why)
		return f;
	mem_free(f);
	return NULL;
}

/* The earlier daemon's file, locked; *ret_old is NULL if it cannot be used. Returns the descriptor; -1: none; -EBUSY. */
static int open_old(int dir_fd, struct file **ret_old)
{
	int fd = openat(dir_fd, "saved", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	const char *why = NULL;

	*ret_old = NULL;
	if (fd < 0 && errno == ENOENT)
		return -1;
	if (fd < 0) {
		why = errno == ELOOP ? "it is a symbolic link" : strerror(errno);
	} else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK) {
			close(fd);
			return -EBUSY;
		}
		why = "it cannot be locked";
	} else {
		*ret_old = read_whole(fd, &why);
	}
	if (why)
		log_warning("the file that an earlier daemon saved is not used: %s; a session that it did not end stays "
			    "until its timeout",
			    why);
	return fd;
}

static struct file_former *find(struct file *f, int64_t session)
{
	for (size_t i = 0; i < FORMERS_MAX; i++)
		if (f->former[i].id == session)
			return &f->former[i];
	return NULL;
}

/* A session that was given up may already be listed, if the daemon was killed while it was still the present one. */
static void take_former(struct file *f, const struct file_former *left)
{
	struct file_former *to = find(f, 0);

	if (!left->id || find(f, left->id))
		return;
	if (!to) {
		log_warning("earlier daemons left too many sessions: 0x%016" PRIx64 " stays until its timeout",
			    (uint64_t)f->former[0].id);
		memmove(f->former, f->former + 1, (FORMERS_MAX - 1) * sizeof(*left));
		to = &f->former[FORMERS_MAX - 1];
	}
	*to = *left;
}

/*
 * A process that connected may have ended and left the connection to a child, which nobody can name: so both must be
 * gone. A holder that has ended is not examined again, because there may be thousands. Holders for which no time is
 * left count as alive.
 */
static bool held_live(struct saved *s, int64_t time_ns)
{
	int64_t until_ns = clock_now_ns() + time_ns;
	const struct file_holder *last;

	while (s->held_count) {
		last = &s->held[s->held_count - 1];
		if (clock_now_ns() >= until_ns)
			return true;
		if (s->held_foreign || process_lives((pid_t)last->pid, last->start) ||
		    peer_is_open(s->diag, (uint32_t)last->peer))
			return true;
		s->held_count--;
	}
	return false;
}

static void keep_holders(struct saved *s, const struct file *old)
{
	s->held_foreign = !old->namespace || old->namespace != process_namespace() || !old->network ||
			  old->network != peer_namespace();
	s->held = mem_new(old->holder_count * sizeof(*s->held) + 1);
	for (size_t i = 0; i < old->holder_count; i++)
		if (old->holder[i].holds)
			s->held[s->held_count++] = old->holder[i];
}

/* A proof never reaches further than the timeout: an instant beyond that, or of another clock, is not used. */
static int64_t not_before(const struct file *f, const struct file_session *session, int64_t now_ns)
{
	bool strange = f->clock != process_clock() || session->safe_until_ns - session->timeout_ns > now_ns;

	return strange && session->timeout_ns > 0 ? now_ns + session->timeout_ns : session->safe_until_ns;
}

/*
 * The session of another name may be a living daemon's: the directory may have been copied with the image of its host.
 * So may the session of another boot, with a copy of its disk; and a boot takes longer than a session.
 */
static const char *why_not_taken_over(const struct file *old, const struct saved_conf *conf)
{
	if (strcmp(old->host, conf->host) != 0)
		return "it is from another zookeeper.host";
	return strcmp(old->boot_id, conf->boot_id) != 0 ? "it is from another boot" : NULL;
}

static void take_over(struct saved *s, const struct file *old, const struct saved_conf *conf)
{
	const struct file_session *last = &old->session[old->present];
	struct file_former left = { .id = last->id };
	const char *why = why_not_taken_over(old, conf);
	int64_t until_ns = not_before(old, last, conf->now_ns);

	if (why) {
		log_info("the file that an earlier daemon saved is not used: %s; a session that it did not end stays until "
			 "its timeout",
			 why);
		return;
	}
	for (size_t i = 0; i < FORMERS_MAX; i++)
		take_former(s->file, &old->former[i]);
	memcpy(left.password, last->password, sizeof(left.password));
	if (last->id && until_ns > conf->now_ns) {
		keep_holders(s, old);
		if (held_live(s, FIRST_LOOK_NS)) {
			s->held_session = last->id;
			left.not_before_ns = until_ns;
		}
	}
	take_former(s->file, &left);
}

/* ---- the file ---- */

/*
 * NULL: see errno. The memory is allocated before it is written: a full file system is an error now, not a signal later.
 */
static struct file *map_new(struct saved *s, int dir_fd, size_t clients)
{
	void *at;

	if (unlinkat(dir_fd, "saved.new", 0) < 0 && errno != ENOENT)
		return NULL;
	s->fd = openat(dir_fd, "saved.new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->fd < 0 || fchmod(s->fd, 0600) < 0 || flock(s->fd, LOCK_EX | LOCK_NB) < 0)
		return NULL;
	s->size = size_of(clients);
	errno = posix_fallocate(s->fd, 0, (off_t)s->size);
	if (errno)
		return NULL;
	at = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

static void sign(struct saved *s)
{
	char text[PROCESS_STAT_MAX];
	struct process self = { 0 };
	struct stat st;

	if (fstat(s->fd, &st) == 0) {
		s->file->device = st.st_dev;
		s->file->inode = st.st_ino;
	}
	s->file->namespace = process_namespace();
	s->file->network = peer_namespace();
	s->file->clock = process_clock();
	s->file->writer = (uint32_t)getpid();
	if (process_read(getpid(), text, &self) == 0)
		s->file->writer_start = self.start;
}

/* The file gets its name only when it is complete, with everything that the old one contained. */
static int begin(struct saved *s, int dir_fd, const struct file *old, const struct saved_conf *conf)
{
	s->file = map_new(s, dir_fd, conf->clients);
	if (!s->file)
		return -errno;
	s->file->magic = SAVED_MAGIC;
	s->file->version = SAVED_VERSION;
	sign(s);
	s->file->holder_count = (uint32_t)conf->clients;
	snprintf(s->file->boot_id, BOOT_ID_MAX, "%s", conf->boot_id);
	snprintf(s->file->host, HOST_MAX, "%s", conf->host);
	if (old)
		take_over(s, old, conf);
	return renameat(dir_fd, "saved.new", dir_fd, "saved") < 0 ? -errno : 0;
}

int saved_open(struct saved **ret_saved, const struct saved_conf *conf)
{
	int dir_fd = open(conf->rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), old_fd, rc;
	struct saved *s;
	struct file *old;

	if (dir_fd < 0)
		return -errno;
	old_fd = open_old(dir_fd, &old);
	if (old_fd == -EBUSY) {
		close(dir_fd);
		return -EBUSY;
	}
	s = mem_new(sizeof(*s));
	s->fd = -1;
	s->diag = peer_open();
	s->self = mem_new(conf->clients * sizeof(*s->self) + 1);
	rc = begin(s, dir_fd, old, conf);
	mem_free(old);
	if (old_fd >= 0)
		close(old_fd);
	close(dir_fd);
	if (rc < 0)
		saved_close(s);
	else
		*ret_saved = s;
	return rc;
}

void saved_close(struct saved *s)
{
	if (!s)
		return;
	if (s->file)
		munmap(s->file, s->size);
	if (s->fd >= 0)
		close(s->fd);
	if (s->diag >= 0)
		close(s->diag);
	mem_free(s->self);
	mem_free(s->held);
	mem_free(s);
}

/* ---- a hand-over ---- */

void saved_pack(const struct saved *s, struct parcel *p)
{
	parcel_begin(p, "saved");
	parcel_fd(p, "fd", s->fd);
	parcel_int(p, "held_session", s->held_session);
	parcel_text(p, "held", (struct slice){ (const char *)s->held, s->held_count * sizeof(*s->held) });
	parcel_int(p, "held_foreign", s->held_foreign);
	parcel_end(p);
}

static int map_passed(struct saved *s)
{
	const char *why = NULL;
	struct stat st;
	void *at;

	if (s->fd < 0 || fstat(s->fd, &st) < 0 || st.st_size < (off_t)sizeof(struct file))
		return -EBADMSG;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	s->file = at;
	s->size = (size_t)st.st_size;
	why = why_not_ours(&st);
	if (!why)
		why = why_corrupt(s->file, s->size);
	return why ? -EBADMSG : 0;
}

/* The holders of a former session that lived at the last look. */
static void keep_held(struct saved *s, const struct parcel_record *r)
{
	struct slice held = parcel_get_text(r, "held");

	s->held_session = parcel_get_int(r, "held_session");
	s->held_foreign = parcel_get_int(r, "held_foreign");
	s->held_count = held.len / sizeof(*s->held);
	s->held = mem_new(held.len + 1);
	memcpy(s->held, held.data, held.len);
}

int saved_unpack(struct saved **ret_saved, struct parcel *p)
{
	struct saved *s = mem_new(sizeof(*s));
	struct parcel_record r;
	int rc;

	parcel_find(p, "saved", &r);
	s->fd = parcel_take_fd(p, &r, "fd");
	s->diag = peer_open();
	rc = map_passed(s);
	if (rc < 0) {
		saved_close(s);
		return rc;
	}
	s->self = mem_new(s->file->holder_count * sizeof(*s->self) + 1);
	keep_held(s, &r);
	*ret_saved = s;
	return 0;
}

size_t saved_clients(const struct saved *s)
{
	return s->file->holder_count;
}

void saved_take_over(struct saved *s)
{
	sign(s);
}

void saved_reconnected(struct saved *s, uint32_t conn, int fd)
{
	if (s && !s->file->holder[conn].peer)
		s->self[conn] = peer_self(fd);
}

/* ---- formers ---- */

size_t saved_formers(const struct saved *s, struct broker_former *ret_list)
{
	size_t count = 0;

	for (size_t i = 0; i < FORMERS_MAX; i++)
		if (s->file->former[i].id)
			ret_list[count++] =
				(struct broker_former){ s->file->former[i].id, s->file->former[i].not_before_ns };
	return count;
}

bool saved_identity(const struct saved *s, int64_t session, struct zk_identity *ret)
{
	const struct file_former *left = find(s->file, session);

	if (!left)
		return false;
	ret->session = left->id;
	memcpy(ret->password, left->password, sizeof(ret->password));
	return true;
}

bool saved_holders_live(struct saved *s)
{
	return held_live(s, LOOK_NS);
}

int64_t saved_held_session(const struct saved *s)
{
	return s->held_session;
}

void saved_free_former(struct saved *s, int64_t session)
{
	struct file_former *left = find(s->file, session);

	if (left)
		__atomic_store_n(&left->not_before_ns, 0, __ATOMIC_RELEASE);
}

void saved_end_former(struct saved *s, int64_t session)
{
	struct file_former *left = find(s->file, session);

	if (left)
		__atomic_store_n(&left->id, 0, __ATOMIC_RELEASE);
}

/* ---- the present session ---- */

static struct file_session *present(const struct saved *s)
{
	return &s->file->session[s->file->present];
}

bool saved_present(const struct saved *s, struct zk_identity *ret)
{
	const struct file_session *last = present(s);

	ret->session = last->id;
	memcpy(ret->password, last->password, sizeof(ret->password));
	return last->id;
}

void saved_session(struct saved *s, const struct zk_identity *identity, int64_t timeout_ns)
{
	struct file_session *to;

	if (!s)
		return;
	if (present(s)->id == identity->session) {
		__atomic_store_n(&present(s)->timeout_ns, timeout_ns, __ATOMIC_RELEASE);
		return;
	}
	to = &s->file->session[!s->file->present];
	*to = (struct file_session){ .id = identity->session, .timeout_ns = timeout_ns };
	memcpy(to->password, identity->password, sizeof(to->password));
	__atomic_store_n(&s->file->present, !s->file->present, __ATOMIC_RELEASE);
}

/*
 * The entry is complete before it gets its number; the daemon may be killed while the session is still the present one.
 */
void saved_add_former(struct saved *s, int64_t session)
{
	const struct file_session *last = present(s);
	struct file_former *to = find(s->file, 0);

	assert(last->id == session);
	if (to) {
		memcpy(to->password, last->password, sizeof(to->password));
		to->not_before_ns = last->safe_until_ns;
		__atomic_store_n(&to->id, session, __ATOMIC_RELEASE);
	} else {
		log_warning("too many sessions were given up: the next daemon will not end 0x%016" PRIx64 ", which stays "
			    "until its timeout",
			    (uint64_t)session);
	}
	saved_session_ended(s);
}

void saved_session_ended(struct saved *s)
{
	if (s)
		__atomic_store_n(&present(s)->id, 0, __ATOMIC_RELEASE);
}

void saved_safe_until(struct saved *s, int64_t safe_until_ns)
{
	if (s && safe_until_ns > present(s)->safe_until_ns)
		__atomic_store_n(&present(s)->safe_until_ns, safe_until_ns, __ATOMIC_RELEASE);
}

void saved_connected(struct saved *s, uint32_t conn, pid_t pid, uint64_t start, int fd)
{
	struct file_holder *holder;

	if (!s)
		return;
	assert(conn < s->file->holder_count);
	holder = &s->file->holder[conn];
	assert(!holder->holds);
	holder->pid = (uint32_t)pid;
	holder->start = start;
	holder->peer = 0;
	s->self[conn] = peer_self(fd);
}

/* The next daemon must take a connection for open if this one did not learn its other end before it was killed. */
void saved_look(struct saved *s)
{
	int64_t until_ns = clock_now_ns() + LOOK_NS;

	if (!s)
		return;
	for (size_t i = 0; i < s->file->holder_count; i++) {
		size_t conn = s->look++ % s->file->holder_count;
		struct file_holder *holder = &s->file->holder[conn];

		if (!holder->holds || !s->self[conn])
			continue;
		__atomic_store_n(&holder->peer, peer_of(s->diag, s->self[conn]), __ATOMIC_RELEASE);
		s->self[conn] = 0;
		if (clock_now_ns() >= until_ns)
			return;
	}
}

void saved_holder(struct saved *s, uint32_t conn, bool holds)
{
	if (!s)
		return;
	assert(conn < s->file->holder_count);
	__atomic_store_n(&s->file->holder[conn].holds, holds, __ATOMIC_RELEASE);
}
