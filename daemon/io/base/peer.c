/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unit_name.h"
#include "io/base/file.h"

enum { CONTAINER_DIGITS = 64 };

static bool ends_with(struct slice text, const char *end)
{
	size_t len = strlen(end);

	return text.len > len && memcmp(text.data + text.len - len, end, len) == 0;
}

static struct slice cut(struct slice text, size_t from)
{
	return (struct slice){ text.data + from, text.len - from };
}

/* The characters that systemd.unit(5) allows. */
static bool is_name(struct slice name)
{
	static const char marks[] = ":-_.\\@";

	if (name.len > UNIT_NAME_MAX || (name.len && name.data[0] == '@'))
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) &&
		    (c == '\0' || !strchr(marks, c)))
			return false;
	}
	return name.len > 0;
}

/* The kinds of units that processes are put into, without slices. */
static bool is_unit(struct slice name)
{
	return is_name(name) && (ends_with(name, ".service") || ends_with(name, ".scope") || ends_with(name, ".socket") ||
				 ends_with(name, ".mount") || ends_with(name, ".swap"));
}

static bool is_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* A group that an engine makes itself is called as its container, by 64 hexadecimal digits, sometimes behind a word. */
static bool is_container(struct slice name)
{
	size_t digits = 0;

	while (digits < name.len && is_digit(name.data[name.len - digits - 1]))
		digits++;
	return is_name(name) && digits == CONTAINER_DIGITS;
}

/* The path in the hierarchy that systemd uses: the unified one or, on older systems, one of its own. */
static struct slice path_in(struct slice cgroup)
{
	const struct slice unified = SLICE("0::"), own = SLICE(":name=systemd:");
	struct slice unified_path = { 0 }, own_path = { 0 };

	while (cgroup.len) {
		struct slice line = slice_cut(&cgroup, '\n');
		const char *at = line.len ? memmem(line.data, line.len, own.data, own.len) : NULL;

		if (line.len > unified.len && memcmp(line.data, unified.data, unified.len) == 0)
			unified_path = cut(line, unified.len);
		if (at && at < line.data + line.len && memchr(line.data, ':', line.len) == at)
			own_path = cut(line, (size_t)(at - line.data) + own.len);
	}
	/* Where there are both, some engines use its own only: in the unified one a container is in the engine's unit. */
	return own_path.len > 1 ? own_path : unified_path;
}

static struct slice below(struct slice path, struct slice root)
{
	bool is_below = root.len && path.len > root.len && memcmp(path.data, root.data, root.len) == 0 &&
			path.data[root.len] == '/';

	return is_below ? cut(path, root.len) : path;
}

/* What is outside of this process' namespace of control groups the kernel shows relative to its root: /../web.service. */
static struct slice without_parents(struct slice path)
{
	while (path.len >= 3 && memcmp(path.data, "/..", 3) == 0 && (path.len == 3 || path.data[3] == '/'))
		path = cut(path, 3);
	return path;
}

struct slice unit_of(struct slice cgroup, struct slice root)
{
	struct slice rest = without_parents(below(path_in(cgroup), root)), part, unit;

	if (!rest.len || rest.data[0] != '/')
		return (struct slice){ 0 };
	rest = cut(rest, 1);
	do
		part = slice_cut(&rest, '/');
	while (rest.len && is_name(part) && ends_with(part, ".slice"));
	/* Names that the kernel has a use for are written with one more of these. */
	unit = part.len && part.data[0] == '_' ? cut(part, 1) : part;
	/* What containerd should have had systemd make, and made itself, is below its own service. */
	if (is_unit(unit) && !slice_eq(unit, SLICE("containerd.service")))
		return unit;
	while (rest.len && !is_container(part))
		part = slice_cut(&rest, '/');
	if (is_container(part))
		return part;
	return is_unit(unit) ? unit : (struct slice){ 0 };
}

static struct slice read_cgroup(pid_t pid, char text[UNIT_CGROUP_MAX])
{
	char path[32];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	len = file_read(AT_FDCWD, path, 0, text, UNIT_CGROUP_MAX);
	/* What is cut off could be the line that counts. */
	return (struct slice){ text, len > 0 && len < UNIT_CGROUP_MAX - 1 ? (size_t)len : 0 };
}

struct slice unit_root(char text[UNIT_CGROUP_MAX])
{
	struct slice root = path_in(read_cgroup(1, text));

	return ends_with(root, "/init.scope") ? (struct slice){ root.data, root.len - strlen("/init.scope") }
					      : (struct slice){ 0 };
}

struct slice unit_read(pid_t pid, struct slice root, char text[UNIT_CGROUP_MAX])
{
	struct slice cgroup = pid > 0 ? read_cgroup(pid, text) : (struct slice){ 0 };

	return cgroup.len ? unit_of(cgroup, root) : SLICE(UNIT_UNKNOWN);
}

enum { PEER_PIDFD = 77 /* SO_PEERPIDFD, which the headers of older systems do not have */ };

uint32_t peer_self(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (uint32_t)st.st_ino : 0;
}

uint64_t peer_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

union answer {
	struct nlmsghdr header;
	char bytes[1024];
};

/* Asks for the message about that socket; its length, or -errno. */
static int ask(int diag, uint32_t inode, union answer *ret)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} question = {
		.header = { .nlmsg_len = sizeof(question),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST },
		.request = { .sdiag_family = AF_UNIX,
			     .udiag_states = UINT32_MAX,
			     .udiag_ino = inode,
			     .udiag_show = UDIAG_SHOW_PEER,
			     .udiag_cookie = { UINT32_MAX, UINT32_MAX } },
	};
	struct nlmsgerr error;
	ssize_t len;

	if (diag < 0 || send(diag, &question, sizeof(question), 0) != (ssize_t)sizeof(question))
		return -EIO;
	len = recv(diag, ret, sizeof(*ret), 0);
	if (len < (ssize_t)sizeof(ret->header) || ret->header.nlmsg_len > (size_t)len)
		return -EIO;
	if (ret->header.nlmsg_type == SOCK_DIAG_BY_FAMILY)
		return (int)ret->header.nlmsg_len;
	if (ret->header.nlmsg_type != NLMSG_ERROR || ret->header.nlmsg_len < NLMSG_LENGTH(sizeof(error)))
		return -EIO;
	memcpy(&error, NLMSG_DATA(&ret->header), sizeof(error));
	return error.error < 0 ? error.error : -EIO;
}

int peer_open(void)
{
	/* The kernel answers within send(): there is nothing to wait for. */
	int diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	union answer answer;

	/* The first question may make the kernel load a module, which must not happen while somebody waits. */
	(void)ask(diag, 1, &answer);
	return diag;
}

uint32_t peer_of(int diag, uint32_t self)
{
	union answer answer;
	int len = self ? ask(diag, self, &answer) : -ENOENT;
	const struct rtattr *at;
	uint32_t peer = 0;

	if (len < (int)NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
		return 0;
	at = (const struct rtattr *)(const void *)(answer.bytes + NLMSG_SPACE(sizeof(struct unix_diag_msg)));
	for (len -= (int)NLMSG_SPACE(sizeof(struct unix_diag_msg)); RTA_OK(at, len); at = RTA_NEXT(at, len))
		if (at->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(at) >= sizeof(peer))
			memcpy(&peer, RTA_DATA(at), sizeof(peer));
	return peer;
}

bool peer_is_open(int diag, uint32_t peer)
{
	union answer answer;

	return !peer || ask(diag, peer, &answer) != -ENOENT;
}

uint64_t peer_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

void peer_groups(int fd, gid_t gid, struct peer_groups *ret)
{
	socklen_t len = (PEER_GROUPS_MAX - 1) * sizeof(gid_t);

	ret->list[0] = gid;
	ret->count = 1;
	ret->all = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, ret->list + 1, &len) == 0;
	if (ret->all)
		ret->count += len / sizeof(gid_t);
}

int peer_process(int fd)
{
	socklen_t len = sizeof(int);
	int process;

	if (getsockopt(fd, SOL_SOCKET, PEER_PIDFD, &process, &len) == 0)
		return process;
	return errno == ENOPROTOOPT ? PEER_PROCESS_UNKNOWN : -1;
}

bool peer_process_lives(int process)
{
	struct pollfd ended = { .fd = process, .events = POLLIN };
	bool lives;

	if (process < 0)
		return false;
	lives = poll(&ended, 1, 0) == 0;
	close(process);
	return lives;
}
