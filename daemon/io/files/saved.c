/* SPDX-License-Identifier: Apache-2.0 */
#include "io/files/saved.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
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
#include "io/base/file.h"
#include "io/base/parcel.h"
#include "io/base/peer.h"
#include "io/base/process.h"
#include "io/files/named.h"
#include "io/files/saved_previous.h"
#include "io/files/spare.h"
#include "protocol/session_page.h"

/* A run of the memory for the core, and where it is in the file. */
struct saved_piece {
	char *at;
	size_t bytes;
	uint64_t from;
};

struct saved {
	int fd; /* locked */
	int dir_fd;
	bool named;              /* otherwise it is saved.new */
	bool taken;              /* it was the spare */
	uint64_t packed;         /* the number of the latest parcel */
	int earlier_fd;          /* the earlier file, until it is named */
	size_t next_conns;       /* the next process makes places for so many connections */
	struct saved_file *file; /* up to the memory */
	uint64_t size;           /* of all */
	struct saved_conn *conns;
	struct saved_piece *more; /* all of the memory */
	size_t more_count;
	struct saved_piece *holes; /* of it: what was given back */
	size_t hole_count;
	uint64_t hole_bytes;
	/* Of the session that was the earlier daemon's last. */
	int64_t held_session;
	struct saved_conn *held;
	size_t held_count;
	bool held_foreign; /* the process numbers are from another namespace */
	int diag;          /* see peer.h */
	uint32_t *self;    /* our ends of the connections whose other ends are not known yet; 0: none */
	size_t used;       /* no connection had a place from here on */
	size_t look;       /* the holder to be asked about next */
};

#define LOOK_NS (2 * CLOCK_NS_PER_MS) /* for the questions of one call, while clients wait */

static struct saved_conn *place(const struct saved *s, uint32_t conn)
{
	assert(conn < s->file->conn_count);
	return &s->conns[conn];
}

size_t saved_clients(const struct saved *s)
{
	return s->file->conn_count;
}

/* The cookie is last: a place that has one is complete. */
void saved_connected(struct saved *s, uint32_t conn, const struct saved_conn *who, int fd)
{
	struct saved_conn *c;

	if (!s)
		return;
	c = place(s, conn);
	assert(!c->cookie && !c->holds);
	c->pid = who->pid;
	c->uid = who->uid;
	c->gid = who->gid;
	c->start = who->start;
	c->peer = who->peer;
	c->until_ns = who->until_ns;
	__atomic_store_n(&c->cookie, fd < 0 ? 0 : peer_cookie(fd), __ATOMIC_RELEASE);
	s->self[conn] = who->peer || fd < 0 ? 0 : peer_self(fd);
	if (conn >= s->used)
		s->used = conn + 1;
}

void saved_gone(struct saved *s, uint32_t conn)
{
	struct saved_conn *c;

	if (!s)
		return;
	c = place(s, conn);
	__atomic_store_n(&c->kept, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&c->cookie, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&c->holds, 0, __ATOMIC_RELEASE);
}

void saved_holder(struct saved *s, uint32_t conn, bool holds)
{
	if (s)
		__atomic_store_n(&place(s, conn)->holds, holds, __ATOMIC_RELEASE);
}

void saved_bearers(struct saved *s, bool hold)
{
	if (s)
		__atomic_store_n(&s->file->bearers, hold, __ATOMIC_RELEASE);
}

/* The next daemon must take a connection for open if this one did not learn its other end before it was killed. */
void saved_look(struct saved *s)
{
	int64_t until_ns = clock_now_ns() + LOOK_NS;

	if (!s)
		return;
	for (size_t i = 0; i < s->used; i++) {
		size_t conn = s->look++ % s->used;
		struct saved_conn *c = &s->conns[conn];

		if (!s->self[conn] || !c->holds)
			continue;
		__atomic_store_n(&c->peer, peer_of(s->diag, s->self[conn]), __ATOMIC_RELEASE);
		s->self[conn] = 0;
		if (clock_now_ns() >= until_ns)
			return;
	}
}

const struct saved_conn *saved_conn(const struct saved *s, uint32_t conn)
{
	return place(s, conn);
}

/* Whoever finds it kept finds whether it is busy. */
uint32_t *saved_keep(struct saved *s, uint32_t conn, bool busy)
{
	struct saved_conn *c = place(s, conn);

	__atomic_store_n(&c->busy, busy, __ATOMIC_RELEASE);
	__atomic_store_n(&c->kept, 1, __ATOMIC_RELEASE);
	return &c->busy;
}

bool saved_conn_lives(const struct saved *s, uint32_t conn)
{
	const struct saved_conn *c = place(s, conn);

	return process_lives((pid_t)c->pid, c->start) || peer_is_open(s->diag, (uint32_t)c->peer);
}

size_t saved_room(const struct saved *s)
{
	struct stat st;

	return fstat(s->fd, &st) == 0 && (uint64_t)st.st_size > s->size ? (size_t)st.st_size - s->size : 0;
}

void *saved_grow(struct saved *s, size_t bytes)
{
	uint64_t more = saved_pages(bytes);
	void *at;

	errno = ENOSPC;
	if (!bytes || bytes > SAVED_MEMORY_MAX - s->file->memory_bytes)
		return NULL;
	errno = posix_fallocate(s->fd, (off_t)s->size, (off_t)more);
	if (errno)
		return NULL;
	at = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, s->fd, (off_t)s->size);
	if (at == MAP_FAILED)
		return NULL;
	s->more = mem_resize(s->more, (s->more_count + 1) * sizeof(*s->more));
	s->more[s->more_count++] = (struct saved_piece){ at, more, s->size };
	s->size += more;
	__atomic_store_n(&s->file->memory_bytes, s->file->memory_bytes + more, __ATOMIC_RELEASE);
	return at;
}

static uint64_t place_of(const struct saved *s, const char *memory)
{
	const struct saved_piece *p = s->more;

	while (memory < p->at || memory >= p->at + p->bytes)
		p++;
	return p->from + (uint64_t)(memory - p->at);
}

void saved_give_back(struct saved *s, void *memory, size_t bytes)
{
	struct saved_piece hole = { memory, bytes, place_of(s, memory) };

	fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)hole.from, (off_t)bytes);
	s->holes = mem_resize(s->holes, (s->hole_count + 1) * sizeof(*s->holes));
	s->holes[s->hole_count++] = hole;
	s->hole_bytes += bytes;
}

/* Where the kernel cannot make its pages at once, each is made when it is written first. */
void *saved_refill(struct saved *s, size_t *ret_bytes)
{
	struct saved_piece hole;

	errno = 0;
	if (!s->hole_count)
		return NULL;
	hole = s->holes[s->hole_count - 1];
	errno = posix_fallocate(s->fd, (off_t)hole.from, (off_t)hole.bytes);
	if (errno)
		return NULL;
	madvise(hole.at, hole.bytes, MADV_POPULATE_WRITE);
	s->hole_count--;
	s->hole_bytes -= hole.bytes;
	*ret_bytes = hole.bytes;
	return hole.at;
}

#define FIRST_LOOK_NS (500 * CLOCK_NS_PER_MS) /* when nobody is served yet */

/* Of the next process: for each client, while the ghosts of as many are still there (socket/server.h). */
enum { PLACES = 2 };

enum { BLOCK = 512 }; /* of st_blocks */

/* ---- what was left ---- */

/* A session that was given up may already be listed, if the daemon was killed while it was still the present one. */
static void take_former(struct saved_file *f, const struct saved_former *left)
{
	struct saved_former *to = saved_former_find(f->former, 0);

	if (!left->id || saved_former_find(f->former, left->id))
		return;
	if (!to) {
		log_warning(session_former, LOG_FIELDS("state=%s own=%d", "left", 0),
			    "earlier daemons left too many sessions: the oldest stays until its timeout");
		memmove(f->former, f->former + 1, (FORMERS_MAX - 1) * sizeof(*left));
	}
	*(to ? to : &f->former[FORMERS_MAX - 1]) = *left;
}

/*
 * A process that connected may have ended and left the connection to a child, which nobody can name: so both must be
 * gone. A holder that has ended is not examined again, because there may be thousands. Holders for which no time is
 * left count as alive.
 */
static bool held_live(struct saved *s, int64_t time_ns)
{
	int64_t until_ns = clock_now_ns() + time_ns;
	const struct saved_conn *last;

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

static void keep_holders(struct saved *s, const struct saved_previous *previous)
{
	s->held_foreign = !previous->here;
	s->held = mem_new((previous->conn_count + 1) * sizeof(*s->held));
	/* Nobody can tell whether whoever knows the value is there: it counts as alive, and is examined last. */
	if (previous->file->bearers)
		s->held[s->held_count++] = (struct saved_conn){ 0 };
	for (size_t i = 0; i < previous->conn_count; i++)
		if (previous->conns[i].holds)
			s->held[s->held_count++] = previous->conns[i];
}

/* A proof never reaches further than the timeout: an instant beyond that, or of another clock, is not used. */
static int64_t not_before(const struct saved_previous *previous, int64_t now_ns)
{
	const struct saved_session *last = &previous->session;
	bool strange = previous->file->clock != process_clock() || last->safe_until_ns - last->timeout_ns > now_ns;

	return strange && last->timeout_ns > 0 ? now_ns + last->timeout_ns : last->safe_until_ns;
}

/* Its session is one of those that were left. */
static void take_over(struct saved *s, const struct saved_previous *previous, int64_t now_ns)
{
	struct saved_former last = { .id = previous->session.id };
	int64_t until_ns = not_before(previous, now_ns);

	for (size_t i = 0; i < FORMERS_MAX; i++)
		take_former(s->file, &previous->former[i]);
	memcpy(last.password, previous->session.password, sizeof(last.password));
	if (last.id && until_ns > now_ns) {
		keep_holders(s, previous);
		if (held_live(s, FIRST_LOOK_NS)) {
			s->held_session = last.id;
			last.not_before_ns = until_ns;
		}
	}
	take_former(s->file, &last);
	explicit_bzero(last.password, sizeof(last.password));
}

/* It is this daemon's present one. */
static void go_on(struct saved *s, struct saved_previous *previous)
{
	for (size_t i = 0; i < FORMERS_MAX; i++)
		take_former(s->file, &previous->former[i]);
	s->file->session[0] = previous->session;
	s->held_session = previous->held_session;
	s->held_foreign = previous->held_foreign;
	s->held = previous->held;
	s->held_count = previous->held_count;
	previous->held = NULL;
}

/* ---- the file ---- */

int saved_ahead(const char *rundir)
{
	int dir_fd = open(rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct stat st;

	if (dir_fd < 0)
		return -1;
	if (fstatat(dir_fd, "saved", &st, AT_SYMLINK_NOFOLLOW) == 0)
		fd = spare_ahead(dir_fd, 0600, (uint64_t)st.st_blocks * BLOCK);
	close(dir_fd);
	return fd < 0 ? -1 : fd;
}

static int make_file(struct saved *s, bool may_take)
{
	if (s->fd >= 0 && spare_name(s->dir_fd, "saved", s->fd, 0600, s->size) < 0) {
		file_close(&s->fd);
	}
	if (s->fd < 0)
		s->fd = spare_open(s->dir_fd, "saved", 0600, s->size, may_take, &s->taken);
	if (s->fd < 0)
		return s->fd;
	return flock(s->fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

static int map_file(struct saved *s)
{
	void *at = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	s->file = at;
	return 0;
}

static uint64_t table_bytes(const struct saved *s)
{
	return saved_memory_at(s->file->identity_bytes, s->file->conn_count);
}

static void unmap_file(struct saved *s)
{
	for (size_t i = 0; i < s->more_count; i++)
		munmap(s->more[i].at, s->more[i].bytes);
	mem_free(s->more);
	mem_free(s->holes);
	munmap(s->file, table_bytes(s));
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

static void write_header(struct saved *s, const struct saved_conf *conf, size_t conns)
{
	struct saved_file *f = s->file;

	f->magic = SAVED_MAGIC;
	f->version = SAVED_VERSION;
	sign(s);
	f->standalone = conf->standalone;
	f->conn_count = (uint32_t)conns;
	f->identity_bytes = conf->identity.len;
	snprintf(f->boot_id, SAVED_BOOT_ID_MAX, "%s", conf->boot_id);
	snprintf(f->host, SAVED_HOST_MAX, "%s", conf->host);
	if (conf->identity.len)
		memcpy((char *)f + saved_identity_at(), conf->identity.data, conf->identity.len);
	s->conns = (struct saved_conn *)(void *)((char *)f + saved_conns_at(f->identity_bytes));
	s->self = mem_new_array(conns + 1, sizeof(*s->self));
}

/* A file without a name, with places for as many connections. */
static int begin(struct saved *s, const struct saved_conf *conf, size_t conns, int ahead)
{
	int rc;

	s->fd = ahead;
	s->dir_fd = s->earlier_fd = -1;
	s->diag = peer_open();
	if (conf->identity.len > SAVED_IDENTITY_MAX || conns > SAVED_CONNS_MAX)
		return -E2BIG;
	s->dir_fd = open(conf->rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return -errno;
	s->size = saved_memory_at(conf->identity.len, conns);
	s->next_conns = conns > PLACES * conf->clients ? conns : PLACES * conf->clients;
	rc = make_file(s, conf->may_take);
	if (rc == 0)
		rc = map_file(s);
	if (rc == 0)
		write_header(s, conf, conns);
	return rc;
}

int saved_publish(struct saved *s)
{
	int rc = spare_publish(s->dir_fd, "saved", s->taken);

	if (rc < 0)
		return rc;
	s->named = true;
	file_close(&s->earlier_fd);
	return 0;
}

bool saved_is_missing(const struct saved *s, const char *rundir)
{
	return s->named && !named_is(rundir, "saved", s->fd);
}

static int copy(int fd, const struct saved_piece *p)
{
	size_t at = 0;

	while (at < p->bytes) {
		ssize_t n = pwrite(fd, p->at + at, p->bytes - at, (off_t)(p->from + at));

		if (n <= 0 && errno != EINTR)
			return n < 0 ? -errno : -EIO;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* In the same place, so that whoever has a pointer to it keeps that. Half of it would be worse than the end. */
static void map_again(int fd, const struct saved_piece *p)
{
	void *at = mmap(p->at, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)p->from);

	assert(at == p->at);
}

/* Nothing is written meanwhile: all who write are on the loop, and so is this. */
static int move(struct saved *s, int fd)
{
	const struct saved_piece table = { (char *)s->file, table_bytes(s), 0 };
	int rc = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : copy(fd, &table);

	for (size_t i = 0; rc == 0 && i < s->more_count; i++)
		rc = copy(fd, &s->more[i]);
	if (rc == 0 && dup3(fd, s->fd, O_CLOEXEC) < 0)
		rc = -errno;
	if (rc < 0)
		return rc;
	map_again(fd, &table);
	for (size_t i = 0; i < s->more_count; i++)
		map_again(fd, &s->more[i]);
	for (size_t i = 0; i < s->hole_count; i++)
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)s->holes[i].from,
			  (off_t)s->holes[i].bytes);
	sign(s);
	return 0;
}

int saved_again(struct saved *s, const char *rundir)
{
	int dir_fd = open(rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd, rc;

	if (dir_fd < 0)
		return -errno;
	rc = dup3(dir_fd, s->dir_fd, O_CLOEXEC) < 0 ? -errno : 0;
	close(dir_fd);
	if (rc < 0)
		return rc;
	fd = spare_open(s->dir_fd, "saved", 0600, s->size, true, &s->taken);
	if (fd < 0)
		return fd;
	rc = move(s, fd);
	close(fd);
	if (rc == 0)
		rc = saved_publish(s);
	if (rc == 0)
		saved_leave_spare(s);
	return rc;
}

/* Of a spare: with as much memory as this file has room for. */
static uint64_t next_size(const struct saved *s)
{
	return saved_memory_at(s->file->identity_bytes, s->next_conns) + s->file->memory_bytes - s->hole_bytes;
}

/* The room of a taken spare stays: the file system had no other. */
bool saved_has_excess(const struct saved *s)
{
	return !s->taken && saved_room(s) > 0;
}

bool saved_cut(const struct saved *s, uint64_t bytes)
{
	size_t room = saved_room(s);

	if (saved_has_excess(s))
		return ftruncate(s->fd, (off_t)(s->size + (room > bytes ? room - bytes : 0))) == 0;
	return s->named && spare_cut(s->dir_fd, "saved", next_size(s), bytes);
}

int saved_leave_spare(const struct saved *s)
{
	int rc = s->named ? spare_leave(s->dir_fd, "session", SESSION_PAGE_BYTES) : -EAGAIN;

	/* Who maps the page keeps its room when it is replaced: a process that takes its spare leaves the next one another. */
	if (rc == 0)
		rc = spare_leave(s->dir_fd, "session.spare", SESSION_PAGE_BYTES);
	return rc == 0 ? spare_leave(s->dir_fd, "saved", next_size(s)) : rc;
}

/* Written through the descriptor that has its lock: whatever keeps a file from being renamed, this one is open. */
void saved_spoil_earlier(const struct saved *s)
{
	const uint32_t none = 0;

	_Static_assert(offsetof(struct saved_file, magic) == 0, "the file begins with it");
	if (s->earlier_fd >= 0 && pwrite(s->earlier_fd, &none, sizeof(none), 0) != (ssize_t)sizeof(none))
		log_error(
			saved_failed, LOG_FIELDS("error=%v", strerror(errno)),
			"the file saved of the earlier process cannot be written: if this process is killed, remove that file");
}

static int finish(struct saved **ret, struct saved *s, int rc)
{
	if (rc < 0)
		saved_close(s);
	else
		*ret = s;
	return rc;
}

int saved_open(struct saved **ret, const struct saved_conf *conf, const struct saved_previous *previous)
{
	struct saved *s = mem_new(sizeof(*s));
	int rc = begin(s, conf, conf->clients, -1);

	if (rc == 0 && previous->file)
		take_over(s, previous, conf->now_ns);
	if (rc == 0)
		rc = saved_publish(s);
	return finish(ret, s, rc);
}

int saved_continue(struct saved **ret, const struct saved_conf *conf, struct saved_previous *previous, int ahead)
{
	struct saved *s = mem_new(sizeof(*s));
	size_t places = PLACES * conf->clients;
	int rc = begin(s, conf, places > previous->conn_count ? places : previous->conn_count, ahead);

	if (rc == 0) {
		go_on(s, previous);
		s->earlier_fd = previous->fd;
		previous->fd = -1;
	}
	return finish(ret, s, rc);
}

void saved_close(struct saved *s)
{
	if (!s)
		return;
	if (s->file)
		unmap_file(s);
	if (s->dir_fd >= 0 && !s->named && !s->taken)
		unlinkat(s->dir_fd, "saved.new", 0);
	file_close(&s->dir_fd);
	file_close(&s->fd);
	file_close(&s->earlier_fd);
	file_close(&s->diag);
	mem_free(s->self);
	mem_free(s->held);
	mem_free(s);
}

/* What this process leaves, as the next one finds it. */
void saved_pack(struct saved *s, struct parcel *p)
{
	struct saved_previous previous = { .fd = s->fd,
				       .number = (uint64_t)clock_now_ns(),
				       .unnamed = !s->named,
				       .session = s->file->session[s->file->present],
				       .conn_count = s->file->conn_count,
				       .held_session = s->held_session,
				       .held = s->held,
				       .held_count = s->held_count,
				       .held_foreign = s->held_foreign };

	memcpy(previous.former, s->file->former, sizeof(previous.former));
	saved_previous_pack(&previous, p);
	s->packed = previous.number;
}

void saved_finish(struct saved *s)
{
	__atomic_store_n(&s->file->finished, s->packed, __ATOMIC_RELEASE);
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
	const struct saved_former *left = saved_former_find(s->file->former, session);

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
	struct saved_former *left = saved_former_find(s->file->former, session);

	if (left)
		__atomic_store_n(&left->not_before_ns, 0, __ATOMIC_RELEASE);
}

void saved_end_former(struct saved *s, int64_t session)
{
	struct saved_former *left = saved_former_find(s->file->former, session);

	if (left)
		__atomic_store_n(&left->id, 0, __ATOMIC_RELEASE);
}

/* ---- the present session ---- */

static struct saved_session *present(const struct saved *s)
{
	return &s->file->session[s->file->present];
}

bool saved_present(const struct saved *s, struct zk_identity *ret)
{
	const struct saved_session *last = present(s);

	ret->session = last->id;
	memcpy(ret->password, last->password, sizeof(ret->password));
	return last->id;
}

void saved_session(struct saved *s, const struct zk_identity *identity, int64_t timeout_ns)
{
	struct saved_session *to;

	if (!s)
		return;
	if (present(s)->id == identity->session) {
		__atomic_store_n(&present(s)->timeout_ns, timeout_ns, __ATOMIC_RELEASE);
		return;
	}
	to = &s->file->session[!s->file->present];
	*to = (struct saved_session){ .id = identity->session, .timeout_ns = timeout_ns };
	memcpy(to->password, identity->password, sizeof(to->password));
	__atomic_store_n(&s->file->present, !s->file->present, __ATOMIC_RELEASE);
}

/*
 * The entry is complete before it gets its number; the daemon may be killed while the session is still the present one.
 */
void saved_add_former(struct saved *s, int64_t session)
{
	const struct saved_session *last = present(s);
	struct saved_former *to = saved_former_find(s->file->former, 0);

	assert(last->id == session);
	if (to) {
		memcpy(to->password, last->password, sizeof(to->password));
		to->not_before_ns = last->safe_until_ns;
		__atomic_store_n(&to->id, session, __ATOMIC_RELEASE);
	} else {
		log_warning(
			session_former, LOG_FIELDS("state=%s own=%d", "left", 1),
			"too many sessions were given up: the next daemon will not end the latest, which stays until its "
			"timeout");
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
