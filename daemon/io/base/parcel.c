/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/parcel.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "protocol/number.h"

static const char snapshot[] = "snapshot";

/* ---- packing ---- */

size_t parcel_add_fd(struct parcel *p, int fd)
{
	p->fds = mem_room(p->fds, p->fd_count, &p->fd_cap, sizeof(*p->fds));
	p->fds[p->fd_count] = fd;
	return p->fd_count++;
}

/* Numbered from 1: 0 is none. */
void parcel_fd(struct parcel *p, struct entry_writer *w, const char *key, int fd)
{
	if (fd >= 0)
		entry_number(w, key, (int64_t)parcel_add_fd(p, fd) + 1);
}

void parcel_end(struct parcel *p)
{
	struct entry_writer w = entry_begin(&p->text, snapshot);

	entry_end(&w);
}

/* ---- records of 0.2.0 ---- */

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

/* A key and its value, which may be meant as a number or as a text. Spaces may stand before the number of bytes. */
static bool read_field(struct slice *rest, struct resp_value pair[2])
{
	struct slice digits;
	int64_t len, number = 0;

	pair[0] = (struct resp_value){ .type = RESP_STATUS, .span = 1 };
	if (!read_until(rest, ' ', &pair[0].text) || !read_until(rest, ':', &digits))
		return false;
	while (digits.len && digits.data[0] == ' ')
		digits = (struct slice){ digits.data + 1, digits.len - 1 };
	if (!number_parse(digits, &len) || len < 0 || (uint64_t)len >= rest->len || rest->data[len] != ',')
		return false;
	pair[1] = (struct resp_value){ .type = RESP_BULK, .text = { rest->data, (size_t)len }, .span = 1 };
	if (number_parse(pair[1].text, &number))
		pair[1].type = RESP_INTEGER;
	pair[1].integer = number;
	*rest = (struct slice){ rest->data + len + 1, rest->len - (size_t)len - 1 };
	return true;
}

static bool read_record(struct entry_reader *r, struct entry *ret)
{
	const size_t pairs_max = sizeof(r->usual) / sizeof(r->usual[0]) / 2;
	struct slice at = r->rest;
	bool good;

	*ret = (struct entry){ .values = r->usual, .why = r->why };
	good = read_until(&at, ' ', &ret->word);
	while (good && at.len && at.data[0] != '\n') {
		good = ret->pairs < pairs_max && read_field(&at, r->usual + 2 * ret->pairs);
		ret->pairs++;
	}
	if (good && at.len)
		r->rest = (struct slice){ at.data + 1, at.len - 1 };
	else
		bytes_text(r->why, "it is garbled");
	return good && at.len;
}

/* ---- unpacking ---- */

void parcel_rewind(struct parcel *p)
{
	bytes_clear(&p->why);
	p->snapshot = SLICE("");
	entry_reader_deinit(&p->reader);
	entry_reader_init(&p->reader, bytes_view(&p->text), &p->why);
}

bool parcel_next(struct parcel *p, struct entry *ret)
{
	struct slice rest = p->reader.rest;

	if (!rest.len || rest.data[0] == '*' ? entry_next(&p->reader, ret) : read_record(&p->reader, ret)) {
		if (!slice_is(ret->word, snapshot))
			return true;
		p->snapshot = p->reader.rest;
		p->reader.rest = SLICE("");
	}
	*ret = (struct entry){ 0 };
	return false;
}

bool parcel_find(struct parcel *p, const char *word, struct entry *ret)
{
	parcel_rewind(p);
	while (parcel_next(p, ret))
		if (slice_eq(ret->word, slice_of(word)))
			return true;
	return false;
}

struct slice parcel_snapshot(struct parcel *p)
{
	struct entry e;
	struct slice text;

	parcel_find(p, "process", &e);
	text = parcel_get_text(&e, "broker");
	while (!text.len && parcel_next(p, &e))
		;
	return text.len ? text : p->snapshot;
}

int64_t parcel_get_number(const struct entry *e, const char *key)
{
	const struct resp_value *v = entry_value(e, key);

	return v ? v->integer : 0;
}

struct slice parcel_get_text(const struct entry *e, const char *key)
{
	const struct resp_value *v = entry_value(e, key);

	return v ? v->text : SLICE("");
}

int parcel_look_at_fd(const struct parcel *p, const struct entry *e, const char *key)
{
	int64_t number = parcel_get_number(e, key);

	return number < 1 || (uint64_t)number > p->fd_count ? -1 : p->fds[number - 1];
}

int parcel_take_fd(struct parcel *p, const struct entry *e, const char *key)
{
	int fd = parcel_look_at_fd(p, e, key);

	if (fd >= 0)
		p->fds[parcel_get_number(e, key) - 1] = -1;
	return fd;
}

void parcel_free(struct parcel *p)
{
	if (p->text_is_mapped)
		munmap(p->text.data, p->text.len);
	else
		bytes_free(&p->text);
	mem_free(p->fds);
	entry_reader_deinit(&p->reader);
	bytes_free(&p->why);
	*p = (struct parcel){ 0 };
}

void parcel_discard(struct parcel *p)
{
	for (size_t i = 0; i < p->fd_count; i++)
		if (p->fds[i] >= 0)
			close(p->fds[i]);
	parcel_free(p);
}
