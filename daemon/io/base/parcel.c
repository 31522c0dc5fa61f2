/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/parcel.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "protocol/number.h"

void parcel_begin(struct parcel *p, const char *kind)
{
	bytes_text(&p->text, kind);
	bytes_char(&p->text, ' ');
}

void parcel_text(struct parcel *p, const char *key, struct slice value)
{
	if (value.len == 0)
		return;
	bytes_text(&p->text, key);
	bytes_char(&p->text, ' ');
	bytes_int(&p->text, (int64_t)value.len);
	bytes_char(&p->text, ':');
	bytes_slice(&p->text, value);
	bytes_char(&p->text, ',');
}

/* Room for the length, which is known only at the end. */
size_t parcel_open_text(struct parcel *p, const char *key)
{
	bytes_text(&p->text, key);
	bytes_char(&p->text, ' ');
	bytes_reserve(&p->text, NUMBER_CHARS_MAX + 1);
	memset(p->text.data + p->text.len, ' ', NUMBER_CHARS_MAX);
	p->text.len += NUMBER_CHARS_MAX;
	bytes_char(&p->text, ':');
	return p->text.len;
}

void parcel_close_text(struct parcel *p, size_t begin)
{
	number_write((int64_t)(p->text.len - begin), p->text.data + begin - 1);
	bytes_char(&p->text, ',');
}

void parcel_int(struct parcel *p, const char *key, int64_t value)
{
	char text[NUMBER_CHARS_MAX], *end = text + sizeof(text), *begin = number_write(value, end);

	if (value)
		parcel_text(p, key, (struct slice){ begin, (size_t)(end - begin) });
}

size_t parcel_add_fd(struct parcel *p, int fd)
{
	if (p->fd_count == p->fd_cap) {
		p->fd_cap = p->fd_cap ? 2 * p->fd_cap : 64;
		p->fds = mem_resize(p->fds, p->fd_cap * sizeof(*p->fds));
	}
	p->fds[p->fd_count] = fd;
	return p->fd_count++;
}

/* Numbered from 1: 0 is none. */
void parcel_fd(struct parcel *p, const char *key, int fd)
{
	if (fd >= 0)
		parcel_int(p, key, (int64_t)parcel_add_fd(p, fd) + 1);
}

void parcel_end(struct parcel *p)
{
	bytes_char(&p->text, '\n');
}

/* What stands before `end`, which is skipped; false: it does not come. */
static bool read_until(struct slice *rest, char end, struct slice *ret)
{
	const char *at = rest->len ? memchr(rest->data, end, rest->len) : NULL;

	if (!at)
		return false;
	*ret = (struct slice){ rest->data, (size_t)(at - rest->data) };
	*rest = (struct slice){ at + 1, rest->len - ret->len - 1 };
	return true;
}

static bool read_field(struct slice *rest, struct slice *ret_key, struct slice *ret_value)
{
	struct slice digits;
	int64_t len;

	if (!read_until(rest, ' ', ret_key) || !read_until(rest, ':', &digits))
		return false;
	while (digits.len && digits.data[0] == ' ')
		digits = (struct slice){ digits.data + 1, digits.len - 1 };
	if (!number_parse(digits, &len) || len < 0 || (uint64_t)len >= rest->len || rest->data[len] != ',')
		return false;
	*ret_value = (struct slice){ rest->data, (size_t)len };
	*rest = (struct slice){ rest->data + len + 1, rest->len - (size_t)len - 1 };
	return true;
}

bool parcel_next(struct slice *rest, struct parcel_record *ret)
{
	struct slice at = *rest;

	ret->count = 0;
	if (!read_until(&at, ' ', &ret->kind))
		return false;
	while (at.len && at.data[0] != '\n') {
		if (ret->count == PARCEL_FIELDS_MAX ||
		    !read_field(&at, &ret->fields[ret->count].key, &ret->fields[ret->count].value))
			return false;
		ret->count++;
	}
	if (!at.len)
		return false;
	*rest = (struct slice){ at.data + 1, at.len - 1 };
	return true;
}

bool parcel_find(const struct parcel *p, const char *kind, struct parcel_record *ret)
{
	struct slice rest = bytes_view(&p->text);

	while (parcel_next(&rest, ret))
		if (slice_eq(ret->kind, slice_of(kind)))
			return true;
	ret->count = 0;
	return false;
}

struct slice parcel_get_text(const struct parcel_record *r, const char *key)
{
	for (size_t i = 0; i < r->count; i++)
		if (slice_eq(r->fields[i].key, slice_of(key)))
			return r->fields[i].value;
	return (struct slice){ "", 0 };
}

int64_t parcel_get_int(const struct parcel_record *r, const char *key)
{
	int64_t value = 0;

	number_parse(parcel_get_text(r, key), &value);
	return value;
}

int parcel_look_at_fd(const struct parcel *p, const struct parcel_record *r, const char *key)
{
	int64_t number = parcel_get_int(r, key);

	return number < 1 || (uint64_t)number > p->fd_count ? -1 : p->fds[number - 1];
}

int parcel_take_fd(struct parcel *p, const struct parcel_record *r, const char *key)
{
	int fd = parcel_look_at_fd(p, r, key);

	if (fd >= 0)
		p->fds[parcel_get_int(r, key) - 1] = -1;
	return fd;
}

void parcel_free(struct parcel *p)
{
	if (p->text_is_mapped)
		munmap(p->text.data, p->text.len);
	else
		bytes_free(&p->text);
	mem_free(p->fds);
	*p = (struct parcel){ 0 };
}

void parcel_discard(struct parcel *p)
{
	for (size_t i = 0; i < p->fd_count; i++)
		if (p->fds[i] >= 0)
			close(p->fds[i]);
	parcel_free(p);
}
