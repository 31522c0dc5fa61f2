/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/secret.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha1.h"

enum {
	DIGEST_SHA1_CHARS = 28, /* in base64 */
};

/* 20 bytes: six groups of three, and two that are left. */
static void base64(const uint8_t hash[SHA1_BYTES], char ret[DIGEST_SHA1_CHARS + 1])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *to = ret;

	for (int i = 0; i < SHA1_BYTES; i += 3) {
		uint32_t group =
			(uint32_t)hash[i] << 16 | (uint32_t)hash[i + 1] << 8 | (i + 2 < SHA1_BYTES ? hash[i + 2] : 0u);

		for (int shift = 18; shift >= 0; shift -= 6)
			*to++ = digits[group >> shift & 63];
	}
	ret[DIGEST_SHA1_CHARS - 1] = '=';
	ret[DIGEST_SHA1_CHARS] = '\0';
}

void digest_id(const char *secret, char *ret, size_t size)
{
	const char *colon = strchr(secret, ':');
	char text[DIGEST_SHA1_CHARS + 1];
	uint8_t hash[SHA1_BYTES];

	assert(colon && (size_t)(colon - secret) + 1 + sizeof(text) <= size);
	sha1_bytes(slice_of(secret), hash);
	base64(hash, text);
	snprintf(ret, size, "%.*s:%s", (int)(colon - secret), secret, text);
}

struct secret {
	size_t count;
	size_t at[SECRET_LINES_MAX];
	size_t len; /* of the file */
	char file[SECRET_BYTES_MAX];
	char lines[SECRET_BYTES_MAX + 1]; /* each with its end */
	char owner[SECRET_BYTES_MAX + DIGEST_SHA1_CHARS + 2];
};

void secret_path(const char *auth_file, char ret[SECRET_PATH_MAX])
{
	const char *folder = getenv("CREDENTIALS_DIRECTORY");
	int len;

	snprintf(ret, SECRET_PATH_MAX, "%s", auth_file);
	if (*auth_file || !folder)
		return;
	len = snprintf(ret, SECRET_PATH_MAX, "%s/zookeeper-auth", folder);
	if (len >= SECRET_PATH_MAX || (access(ret, F_OK) < 0 && errno == ENOENT))
		*ret = '\0';
}

/* Root's file that root has opened to a user by an ACL seems to be open to a group. */
static int check(int fd, bool from_manager)
{
	struct stat st;
	mode_t others = S_IRWXG | S_IRWXO;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if (from_manager && st.st_uid == 0)
		others &= ~(mode_t)S_IRGRP;
	if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & others))
		return -EPERM;
	return 0;
}

static bool is_line(const char *line)
{
	const char *colon = strchr(line, ':');

	return colon && colon != line && colon[1];
}

static int split(struct secret *s)
{
	size_t end = s->len && s->file[s->len - 1] == '\n' ? s->len - 1 : s->len;

	memcpy(s->lines, s->file, end);
	if (strlen(s->lines) != end)
		return -EBADMSG;
	for (size_t at = 0; at <= end; at += strlen(s->lines + at) + 1) {
		char *newline = strchr(s->lines + at, '\n');

		if (newline)
			*newline = '\0';
		if (s->count == SECRET_LINES_MAX || !is_line(s->lines + at))
			return -EBADMSG;
		s->at[s->count++] = at;
	}
	digest_id(secret_line(s, 0), s->owner, sizeof(s->owner));
	return 0;
}

static int fill(struct secret *s, int fd)
{
	ssize_t len = pread(fd, s->file, sizeof(s->file), 0);

	if (len < 0)
		return -errno;
	s->len = (size_t)len;
	return s->len == sizeof(s->file) ? -EBADMSG : split(s);
}

static struct secret *new_pages(void)
{
	void *at = mmap(NULL, sizeof(struct secret), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		abort();
	madvise(at, sizeof(struct secret), MADV_DONTDUMP);
	return at;
}

int secret_open(struct secret **ret, const char *auth_file)
{
	char path[SECRET_PATH_MAX];
	struct secret *s;
	int fd, rc;

	*ret = NULL;
	secret_path(auth_file, path);
	if (!*path)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	s = new_pages();
	rc = check(fd, !*auth_file);
	if (rc == 0)
		rc = fill(s, fd);
	close(fd);
	if (rc < 0)
		secret_close(s);
	else
		*ret = s;
	return rc;
}

int secret_read(struct secret **ret, int fd)
{
	struct secret *s = new_pages();
	int rc = fill(s, fd);

	*ret = NULL;
	if (rc < 0)
		secret_close(s);
	else
		*ret = s;
	return rc;
}

struct slice secret_text(const struct secret *s)
{
	return (struct slice){ s->file, s->len };
}

void secret_close(struct secret *s)
{
	if (!s)
		return;
	explicit_bzero(s, sizeof(*s));
	munmap(s, sizeof(*s));
}

size_t secret_lines(const struct secret *s)
{
	return s->count;
}

const char *secret_line(const struct secret *s, size_t at)
{
	return s->lines + s->at[at];
}

const char *secret_owner(const struct secret *s)
{
	return s->owner;
}

bool secret_is_of(const struct secret *s, struct slice owner)
{
	char id[sizeof(s->owner)];

	for (size_t i = 0; s && i < s->count; i++) {
		digest_id(secret_line(s, i), id, sizeof(id));
		if (slice_eq(slice_of(id), owner))
			return true;
	}
	return false;
}

bool secret_same(const struct secret *a, const struct secret *b)
{
	if (!a || !b)
		return a == b;
	return a->count == b->count && memcmp(a->lines, b->lines, sizeof(a->lines)) == 0;
}
