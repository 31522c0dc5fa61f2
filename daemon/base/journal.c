/* SPDX-License-Identifier: Apache-2.0 */
#include "base/journal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/bytes.h"

#define PRIORITY_WARNING '4'
/* Bytes of the name of a field, with what stands in front of it. journald takes 64. */
enum { FIELD_NAME_MAX = 64 };

/* In front of each datagram that waits. */
struct head {
	uint32_t bytes, line_bytes; /* of it all; of its MESSAGE */
	char priority;              /* a digit */
	bool may_be_dropped;
};

static struct {
	pthread_mutex_t mutex;
	bool is_open;
	int fd;
	struct sockaddr_un address;
	const char *identifier;
	struct bytes waiting; /* heads and datagrams, oldest first */
	_Atomic bool waits;   /* there are some, or lines were left out: for those who do not have the mutex */
	uint64_t left_out;    /* lines */
} journal = { .mutex = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

bool journal_is_stderr(void)
{
	const char *text = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return text && sscanf(text, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
	       st.st_dev == device && st.st_ino == inode;
}

int journal_open(const char *path)
{
	if (strlen(path) >= sizeof(journal.address.sun_path))
		return -ENAMETOOLONG;
	journal.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (journal.fd < 0)
		return -errno;
	journal.address.sun_family = AF_UNIX;
	memcpy(journal.address.sun_path, path, strlen(path) + 1);
	journal.identifier = getenv("LOCKBROKER_LOG_IDENTIFIER");
	if (!journal.identifier || !*journal.identifier)
		journal.identifier = "lockbrokerd";
	journal.is_open = true;
	return 0;
}

bool journal_is_open(void)
{
	return journal.is_open;
}

/* ---- an entry ---- */

static void add_field(struct bytes *entry, struct slice name, struct slice value)
{
	uint64_t len = value.len;

	bytes_slice(entry, name);
	bytes_char(entry, '\n');
	for (int i = 0; i < 8; i++)
		bytes_char(entry, (char)(len >> 8 * i & 0xff));
	bytes_slice(entry, value);
	bytes_char(entry, '\n');
}

static int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* Appends the value that begins there, as it was before it was quoted; returns its end. */
static const char *add_value(struct bytes *value, const char *at, const char *end)
{
	if (at == end || *at != '"') {
		while (at < end && *at != ' ')
			bytes_char(value, *at++);
		return at;
	}
	for (at++; at < end && *at != '"'; at++) {
		if (*at != '\\' || end - at < 2) {
			bytes_char(value, *at);
		} else if (*++at == 'x' && end - at > 2) {
			bytes_char(value, (char)(digit(at[1]) << 4 | digit(at[2])));
			at += 2;
		} else {
			bytes_char(value, *at);
		}
	}
	return at < end ? at + 1 : end;
}

/* LOCKBROKER_NAME of the name of a field, which has small letters, digits and '_'. */
static struct slice name_of(const char *at, const char *end, char ret[FIELD_NAME_MAX])
{
	static const char prefix[] = "LOCKBROKER_";
	size_t len = sizeof(prefix) - 1;

	memcpy(ret, prefix, len);
	for (; at < end && len < FIELD_NAME_MAX; at++)
		ret[len++] = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
	return (struct slice){ ret, len };
}

/* "key=value other="a value"", as log.h has it. */
static void add_fields(struct bytes *entry, struct slice fields)
{
	const char *at = fields.data, *end = at + fields.len, *equals;
	struct bytes value = { 0 };
	char name[FIELD_NAME_MAX];

	while (at < end) {
		if (*at == ' ') {
			at++;
			continue;
		}
		equals = memchr(at, '=', (size_t)(end - at));
		if (!equals)
			break;
		bytes_clear(&value);
		struct slice key = name_of(at, equals, name);

		at = add_value(&value, equals + 1, end);
		add_field(entry, key, bytes_view(&value));
	}
	bytes_free(&value);
}

/* Where the line stands in an entry. */
enum { LINE_AT = sizeof("MESSAGE\n") - 1 + 8 };

static void make_entry(struct bytes *entry, char priority, struct slice line, struct slice fields)
{
	add_field(entry, SLICE("MESSAGE"), line);
	add_field(entry, SLICE("PRIORITY"), (struct slice){ &priority, 1 });
	add_field(entry, SLICE("SYSLOG_IDENTIFIER"), slice_of(journal.identifier));
	add_fields(entry, fields);
}

/* ---- sent now, or later ---- */

/* False: the journal takes nothing at the moment. What it will never take is as good as sent. */
static bool send_entry(struct slice entry)
{
	ssize_t sent;

	do
		sent = sendto(journal.fd, entry.data, entry.len, MSG_NOSIGNAL, (struct sockaddr *)&journal.address,
			      sizeof(journal.address));
	while (sent < 0 && errno == EINTR);
	return sent >= 0 || errno == EMSGSIZE;
}

static struct head head_at(size_t at)
{
	struct head head;

	memcpy(&head, journal.waiting.data + at, sizeof(head));
	return head;
}

static void remove_at(size_t at, size_t len)
{
	struct bytes *b = &journal.waiting;

	b->len -= len;
	memmove(b->data + at, b->data + at + len, b->len - at);
}

/* Removes entries that may be dropped until there is room, the oldest first. */
static void make_room(size_t len)
{
	for (size_t at = 0; at < journal.waiting.len && journal.waiting.len + len > JOURNAL_WAITING_MAX;) {
		struct head head = head_at(at);

		if (head.may_be_dropped) {
			remove_at(at, sizeof(head) + head.bytes);
			journal.left_out++;
		} else {
			at += sizeof(head) + head.bytes;
		}
	}
}

static void wait_with(struct slice entry, struct head head)
{
	size_t len = sizeof(head) + entry.len;

	make_room(len);
	if (journal.waiting.len + len > JOURNAL_WAITING_MAX) {
		journal.left_out++;
		return;
	}
	bytes_append(&journal.waiting, &head, sizeof(head));
	bytes_slice(&journal.waiting, entry);
}

static void tell_left_out(void)
{
	struct bytes entry = { 0 };
	char line[160], fields[64];

	snprintf(fields, sizeof(fields), "event=unread lines=%llu", (unsigned long long)journal.left_out);
	snprintf(line, sizeof(line), "lines of the log were left out, because the journal did not take them: %llu  %s",
		 (unsigned long long)journal.left_out, fields);
	make_entry(&entry, PRIORITY_WARNING, slice_of(line), slice_of(fields));
	if (send_entry(bytes_view(&entry)))
		journal.left_out = 0;
	bytes_free(&entry);
}

/* Sends what waits, in order. */
static void go_on(void)
{
	size_t at = 0;

	while (at < journal.waiting.len) {
		struct head head = head_at(at);
		const struct slice entry = { journal.waiting.data + at + sizeof(head), head.bytes };

		if (!send_entry(entry))
			break;
		at += sizeof(head) + head.bytes;
	}
	if (at > 0)
		remove_at(0, at);
	if (journal.waiting.len > 0)
		return;
	bytes_free(&journal.waiting);
	if (journal.left_out > 0)
		tell_left_out();
}

void journal_line(const char *id, int priority, struct slice line, struct slice fields, bool may_be_dropped)
{
	struct head head = { .line_bytes = (uint32_t)line.len, .priority = (char)('0' + priority),
			     .may_be_dropped = may_be_dropped };
	struct bytes entry = { 0 };

	make_entry(&entry, head.priority, line, fields);
	if (id)
		add_field(&entry, SLICE("MESSAGE_ID"), slice_of(id));
	head.bytes = (uint32_t)entry.len;
	pthread_mutex_lock(&journal.mutex);
	if (journal.waiting.len > 0 || journal.left_out > 0)
		go_on();
	if (journal.waiting.len > 0 || !send_entry(bytes_view(&entry)))
		wait_with(bytes_view(&entry), head);
	journal.waits = journal.waiting.len > 0 || journal.left_out > 0;
	pthread_mutex_unlock(&journal.mutex);
	bytes_free(&entry);
}

bool journal_waits(void)
{
	return journal.waits;
}

void journal_go_on(void)
{
	pthread_mutex_lock(&journal.mutex);
	go_on();
	journal.waits = journal.waiting.len > 0 || journal.left_out > 0;
	pthread_mutex_unlock(&journal.mutex);
}

/* What nobody will send any more: the journal reads stderr, too, when it is back. */
static void leave_to_stderr(void)
{
	struct bytes line = { 0 };

	for (size_t at = 0; at < journal.waiting.len;) {
		struct head head = head_at(at);
		struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
		ssize_t written;

		bytes_clear(&line);
		bytes_char(&line, '<');
		bytes_char(&line, head.priority);
		bytes_char(&line, '>');
		bytes_append(&line, journal.waiting.data + at + sizeof(head) + LINE_AT, head.line_bytes);
		bytes_char(&line, '\n');
		if (poll(&p, 1, 0) == 0)
			break;
		written = write(STDERR_FILENO, line.data, line.len);
		(void)written;
		at += sizeof(head) + head.bytes;
	}
	bytes_free(&line);
}

void journal_close(void)
{
	if (!journal.is_open)
		return;
	journal_go_on();
	leave_to_stderr();
	close(journal.fd);
	bytes_free(&journal.waiting);
	journal.waits = false;
	journal.is_open = false;
	journal.left_out = 0;
}
