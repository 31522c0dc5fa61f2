/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/name_service.h"
#include "io/base/file.h"
#include "io/base/parcel.h"
#include "io/base/safe_dir.h"
#include "io/base/socket.h"

enum {
	LISTEN_GROUPS_MAX = 64, /* of this process */
	LISTEN_FD_FIRST = 3, /* SD_LISTEN_FDS_START */
	LISTEN_PATH_MAX = sizeof(((struct sockaddr_un *)0)->sun_path),
};

static int fail(char *error, int rc, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int fail(char *error, int rc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, LISTEN_ERROR_MAX, format, args);
	va_end(args);
	return rc;
}

int listen_group(const char *key, const char *group, gid_t *ret_gid, char error[LISTEN_ERROR_MAX])
{
	uint32_t gid;
	char *end;
	long number;
	int rc;

	*ret_gid = LISTEN_NO_GROUP;
	if (!group[0])
		return 0;
	rc = name_service_find(NAME_GROUP, group, &gid);
	if (rc == 0) {
		*ret_gid = gid;
		return 0;
	}
	number = strtol(group, &end, 10);
	if (rc != -ENOENT && *end)
		return fail(error, -EAGAIN, "%s = %s: the group cannot be looked up: %s", key, group, strerror(-rc));
	if (*end || number < 0 || number > INT32_MAX)
		return fail(error, -ENOENT,
			    "%s = %s: there is no such group; make it (groupadd) or set another", key, group);
	*ret_gid = (gid_t)number;
	return 0;
}

gid_t listen_usual_group(void)
{
	gid_t groups[LISTEN_GROUPS_MAX];
	uint32_t gid;
	int count;

	/* What cannot be looked up is no reason not to start: nobody has named that group. */
	if (name_service_find(NAME_GROUP, LISTEN_USUAL_GROUP, &gid) < 0)
		return LISTEN_NO_GROUP;
	if (geteuid() == 0 || getegid() == gid)
		return gid;
	count = getgroups(LISTEN_GROUPS_MAX, groups);
	for (int i = 0; i < count; i++)
		if (groups[i] == gid)
			return gid;
	return LISTEN_NO_GROUP;
}

/* This comes before anything is made beside the path, which may be mistyped. */
static int check_kind(const char *key, const char *path, char *error)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return S_ISSOCK(st.st_mode) ? 0 : fail(error, -EEXIST,
						       "%s = %s: the file exists and is not a socket", key, path);
	return errno == ENOENT ? 0 : fail(error, -errno, "%s: %s", path, strerror(errno));
}

int listen_check_dir(const struct listen_address *address, char error[LISTEN_ERROR_MAX])
{
	const char *slash = strrchr(address->path, '/');
	char dir[PATH_MAX];
	struct stat st;

	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - address->path) + 1 : 1, slash ? address->path : ".");
	if (stat(dir, &st) < 0 || safe_dir_is(&st))
		return 0;
	return fail(error, -EPERM,
		    "%s = %.300s: its directory must belong to the daemon's user or root, and not be writable by others "
		    "(chmod go-w), who could put another socket there",
		    address->key, address->path);
}

/* True: lock_fd is the lock file that is beside `path` now, so no other process has put a socket there. */
static bool is_locked_by(const char *path, int lock_fd)
{
	char lock[LISTEN_PATH_MAX + 8];
	struct stat is, was;

	snprintf(lock, sizeof(lock), "%s.lock", path);
	return fstat(lock_fd, &was) == 0 && lstat(lock, &is) == 0 && is.st_dev == was.st_dev && is.st_ino == was.st_ino;
}

static int take_lock(struct listener *l, const char *key, int lock_fd, char *error)
{
	char path[LISTEN_PATH_MAX + 8];

	if (lock_fd >= 0 && is_locked_by(l->path, lock_fd)) {
		l->lock_fd = lock_fd;
		return 0;
	}
	snprintf(path, sizeof(path), "%s.lock", l->path);
	l->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600 | NOT_AGED);
	if (l->lock_fd < 0)
		return fail(error, -errno, "%s = %s: cannot make files in its directory: %s", key, l->path,
			    strerror(errno));
	if (flock(l->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return fail(error, -EADDRINUSE, "another lockbrokerd is serving %s", l->path);
	return fail(error, -errno, "%s: %s", path, strerror(errno));
}

/* A daemon that answers there without holding the lock file (its socket was passed to it, for example) is live, too. */
static int probe(const char *path, char *error)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, rc;

	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail(error, -errno, "cannot make a socket: %s", strerror(errno));
	memcpy(addr.sun_path, path, strlen(path));
	rc = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ? errno : 0;
	close(fd);
	if (rc == ECONNREFUSED || rc == ENOENT)
		return 0;
	if (rc == 0 || rc == EAGAIN)
		return fail(error, -EADDRINUSE, "another lockbrokerd is serving %s", path);
	return fail(error, -rc, "cannot find out whether another lockbrokerd is serving %s: %s", path, strerror(rc));
}

/* A call that would change nothing is not made: under the unit's system call filter even that would fail. */
static int give_to_group(int dir_fd, gid_t gid)
{
	struct stat st;

	if (gid == LISTEN_NO_GROUP || (fstatat(dir_fd, "socket", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_gid == gid))
		return 0;
	return fchownat(dir_fd, "socket", (uid_t)-1, gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int bind_in(struct listener *l, int dir_fd, mode_t mode, gid_t gid, char *error)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int rc;

	/* Through the descriptor, because the name of the directory may be too long for a socket address. */
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/socket", dir_fd);
	if (bind(l->fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return fail(error, -errno, "%s: bind: %s", l->path, strerror(errno));
	rc = give_to_group(dir_fd, gid);
	if (rc < 0)
		return fail(error, rc,
			    "%s: cannot give it to the group %ld: %s; leave the key of its group empty, or make that group the "
			    "daemon's own (Group= of its unit)",
			    l->path, (long)gid, strerror(-rc));
	if (fchmodat(dir_fd, "socket", mode | NOT_AGED, 0) < 0)
		return fail(error, -errno, "%s: chmod: %s", l->path, strerror(errno));
	if (listen(l->fd, SOMAXCONN) < 0)
		return fail(error, -errno, "%s: listen: %s", l->path, strerror(errno));
	if (fstatat(dir_fd, "socket", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(error, -errno, "%s: %s", l->path, strerror(errno));
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	if (renameat(dir_fd, "socket", AT_FDCWD, l->path) < 0)
		return fail(error, -errno, "%s: %s", l->path, strerror(errno));
	return 0;
}

static int bind_in_place(struct listener *l, mode_t mode, gid_t gid, char *error)
{
	char dir[LISTEN_PATH_MAX + 16];
	int dir_fd, rc;

	snprintf(dir, sizeof(dir), "%s.XXXXXX", l->path);
	if (!mkdtemp(dir))
		return fail(error, -errno, "%s: cannot make a socket there: %s", l->path, strerror(errno));
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0) {
		rc = fail(error, -errno, "%s: %s", dir, strerror(errno));
	} else {
		rc = bind_in(l, dir_fd, mode, gid, error);
		if (rc < 0)
			unlinkat(dir_fd, "socket", 0);
		close(dir_fd);
	}
	rmdir(dir);
	return rc;
}

int listen_open(struct listener *l, const struct listen_address *address, int lock_fd, char error[LISTEN_ERROR_MAX])
{
	const char *path = address->path;
	int rc;

	*l = (struct listener){ .fd = -1, .lock_fd = -1 };
	if (strlen(path) >= LISTEN_PATH_MAX)
		return fail(error, -ENAMETOOLONG, "%s = %s: longer than the %d bytes of a socket's path",
			    address->key, path, LISTEN_PATH_MAX - 1);
	l->path = mem_text(path);
	rc = check_kind(address->key, path, error);
	if (rc == 0)
		rc = take_lock(l, address->key, lock_fd, error);
	if (rc == 0)
		rc = probe(path, error);
	if (rc == 0) {
		l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		rc = l->fd < 0 ? fail(error, -errno, "cannot make a socket: %s", strerror(errno))
			       : bind_in_place(l, address->mode, address->gid, error);
	}
	if (rc < 0) {
		if (l->lock_fd == lock_fd)
			l->lock_fd = -1;
		listen_close(l);
	}
	return rc;
}

/* Whether the service manager calls that socket by LISTEN_OPERATORS_NAME (FileDescriptorName=). */
static bool is_for_operators(const char *names, long at)
{
	for (; names && at > 0; at--) {
		names = strchr(names, ':');
		names += names != NULL;
	}
	return names && strcspn(names, ":") == strlen(LISTEN_OPERATORS_NAME) &&
	       strncmp(names, LISTEN_OPERATORS_NAME, strlen(LISTEN_OPERATORS_NAME)) == 0;
}

static int take_passed(struct listener *l, int fd, char *error)
{
	if (l->fd >= 0)
		return fail(error, -EINVAL,
			    "LISTEN_FDS passes two sockets of one kind; name the operators' socket "
			    "FileDescriptorName=" LISTEN_OPERATORS_NAME);
	if (!socket_is_stream(fd, true))
		return fail(error, -EINVAL,
			    "the descriptor that LISTEN_FDS passes is not a listening Unix stream socket");
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return fail(error, -errno, "the descriptor that LISTEN_FDS passes: %s", strerror(errno));
	l->fd = fd;
	return 0;
}

int listen_passed(struct listener *clients, struct listener *operators, char error[LISTEN_ERROR_MAX])
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
	bool ours = pid && fds && strtol(pid, NULL, 10) == getpid();
	long count = ours ? strtol(fds, NULL, 10) : 0;
	int rc = 0;

	*clients = *operators = (struct listener){ .fd = -1, .lock_fd = -1 };
	if (count < 0 || count > 2)
		rc = fail(error, -EINVAL, "LISTEN_FDS passes %ld sockets; at most two are expected", count);
	for (long i = 0; rc == 0 && i < count; i++)
		rc = take_passed(is_for_operators(names, i) ? operators : clients, LISTEN_FD_FIRST + (int)i, error);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return rc;
}

bool listen_take_back(struct listener *l, const char *path, int fd, int lock_fd)
{
	struct stat st;

	if (!socket_is_stream(fd, true) || strlen(path) >= LISTEN_PATH_MAX)
		return false;
	if (lock_fd >= 0 && (!is_locked_by(path, lock_fd) || lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode)))
		return false;
	*l = (struct listener){ .fd = fd, .lock_fd = lock_fd };
	if (lock_fd < 0)
		return true;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	l->path = mem_text(path);
	return true;
}

static bool is_there(const char *path, const struct listener *l)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno != ENOENT && errno != ENOTDIR;
	return !l->path || (st.st_dev == l->dev && st.st_ino == l->ino);
}

bool listen_is_missing(const struct listener *l)
{
	struct sockaddr_un addr = { 0 };
	socklen_t len = sizeof(addr) - 1;

	if (l->path)
		return !is_there(l->path, l);
	return getsockname(l->fd, (struct sockaddr *)&addr, &len) == 0 && addr.sun_path[0] == '/' &&
	       !is_there(addr.sun_path, l);
}

bool listen_lock_is_missing(const struct listener *l)
{
	return l->path && !is_locked_by(l->path, l->lock_fd);
}

int listen_lock_again(struct listener *l, const char *key, char error[LISTEN_ERROR_MAX])
{
	struct listener next = { .fd = -1, .lock_fd = -1, .path = l->path };
	int rc = take_lock(&next, key, -1, error);

	if (rc == 0 && dup3(next.lock_fd, l->lock_fd, O_CLOEXEC) < 0)
		rc = fail(error, -errno, "%s.lock: %s", l->path, strerror(errno));
	file_close(&next.lock_fd);
	return rc;
}

bool listen_differs(const struct listener *l, const struct listen_address *address, char text[LISTEN_ERROR_MAX])
{
	struct sockaddr_un addr = { 0 };
	socklen_t len = sizeof(addr);
	struct stat st;

	if (l->path || getsockname(l->fd, (struct sockaddr *)&addr, &len) < 0 || !addr.sun_path[0] ||
	    stat(addr.sun_path, &st) < 0)
		return false;
	if ((st.st_mode & 0777) == address->mode && (address->gid == LISTEN_NO_GROUP || st.st_gid == address->gid))
		return false;
	snprintf(text, LISTEN_ERROR_MAX,
		 "the socket that was passed has mode %04o and group %ld, and the keys beside %s do not change these: set "
		 "SocketMode= and SocketGroup= in its unit",
		 st.st_mode & 0777, (long)st.st_gid, address->key);
	return true;
}

void listen_pack(const struct listener *l, const char *word, struct parcel *p)
{
	struct entry_writer w = entry_begin(&p->text, word);

	parcel_fd(p, &w, "fd", l->fd);
	parcel_fd(p, &w, "lock", l->lock_fd);
	if (l->path)
		entry_text(&w, "path", slice_of(l->path));
	entry_number(&w, "dev", (int64_t)l->dev);
	entry_number(&w, "ino", (int64_t)l->ino);
	entry_end(&w);
}

int listen_unpack(struct listener *l, const char *word, struct parcel *p)
{
	struct entry e;
	struct slice path;

	if (!parcel_find(p, word, &e))
		return -ENOENT;
	path = parcel_get_text(&e, "path");
	*l = (struct listener){
		.fd = parcel_take_fd(p, &e, "fd"),
		.lock_fd = parcel_take_fd(p, &e, "lock"),
		.dev = (dev_t)parcel_get_number(&e, "dev"),
		.ino = (ino_t)parcel_get_number(&e, "ino"),
	};
	if (path.len)
		l->path = mem_text_part(path.data, path.len);
	/* A service manager that has it, too, makes it block whenever it passes it on. */
	return l->fd >= 0 && socket_is_stream(l->fd, true) && (!l->path || l->lock_fd >= 0) &&
			       fcntl(l->fd, F_SETFL, O_NONBLOCK) == 0
		       ? 0
		       : -EBADMSG;
}

void listen_close(struct listener *l)
{
	struct stat st;

	if (l->path && l->ino && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->path);
	file_close(&l->lock_fd);
	free(l->path);
	*l = (struct listener){ .fd = -1, .lock_fd = -1 };
}
