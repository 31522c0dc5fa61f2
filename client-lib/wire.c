/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "wire.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "reply.h"

enum { EVENTS_BYTES_MAX = 1024 * 1024 };

int64_t wire_now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

int64_t wire_deadline(int64_t ms)
{
	int64_t now = wire_now_ms();

	return ms < 0 || ms > WIRE_FOREVER - now ? WIRE_FOREVER : now + ms;
}

void wire_whole_characters(char *text)
{
	size_t len = strlen(text), begin = len;
	unsigned char first;

	while (begin > 0 && ((unsigned char)text[begin - 1] & 0xc0) == 0x80)
		begin--;
	if (begin == 0)
		return;
	first = (unsigned char)text[--begin];
	if (first >= 0xc0 && len - begin < (first >= 0xf0 ? 4u : first >= 0xe0 ? 3u : 2u))
		text[begin] = '\0';
}

enum lb_result wire_fail(struct lb *lb, enum lb_result result, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(lb->error, sizeof(lb->error), format, args);
	va_end(args);
	wire_whole_characters(lb->error);
	return result;
}

enum lb_result wire_hang_up(struct lb *lb, const char *why, int error)
{
	close(lb->fd);
	lb->fd = -1;
	lb->ends++;
	lb->unlocks = 0;
	lb->asks_page = false;
	lb->reply_bytes = 0;
	bytes_clear(&lb->unanswered);
	bytes_clear(&lb->in);
	delegations_drop(&lb->delegations);
	holdings_disconnect(&lb->holdings, &lb->events);
	wire_fail(lb, LB_CONNECTION, "The connection to lockbrokerd is closed: %s%s%s.", why, error ? ": " : "",
		  error ? strerror(error) : "");
	memcpy(lb->end, lb->error, sizeof(lb->end));
	return LB_CONNECTION;
}

/* ---- bytes in and out ---- */

static enum lb_result wait_for(struct lb *lb, short events, int64_t deadline)
{
	struct pollfd p = { .fd = lb->fd, .events = events };

	for (;;) {
		int64_t left = deadline == WIRE_FOREVER ? -1 : deadline - wire_now_ms();
		int n;

		if (deadline != WIRE_FOREVER && left < 0)
			left = 0;
		if (lb->waiting && events == POLLIN && (left < 0 || left > lb->waiting_ms))
			left = lb->waiting_ms;
		n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
		if (n > 0)
			return LB_OK;
		if (n == 0 && lb->waiting && events == POLLIN)
			lb->waiting(lb->waiting_context);
		if (n < 0 && errno != EINTR)
			return wire_hang_up(lb, "poll failed", errno);
		if (n == 0 && deadline != WIRE_FOREVER && wire_now_ms() >= deadline)
			return LB_NONE;
	}
}

enum lb_result wire_send(struct lb *lb)
{
	int64_t deadline = WIRE_FOREVER; /* the clock is read only if the call has to wait */
	size_t sent = 0;

	while (sent < lb->out.len) {
		ssize_t n = send(lb->fd, lb->out.data + sent, lb->out.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		enum lb_result r;

		if (n > 0) {
			sent += (size_t)n;
			continue;
		}
		/* A daemon that refuses a client sends the reason before it closes: the receiver finds it. */
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return LB_NONE;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return wire_hang_up(lb, "sending the request failed", errno);
		if (deadline == WIRE_FOREVER)
			deadline = wire_deadline(lb->patience_ms);
		r = wait_for(lb, POLLOUT, deadline);
		if (r == LB_NONE)
			return wire_hang_up(lb, "the daemon did not take the request in time", 0);
		if (r != LB_OK)
			return r;
	}
	return LB_OK;
}

/* Of several descriptors the first is kept. */
static void take_fds(struct lb *lb, struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int fd;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (lb->taken_fd < 0)
				lb->taken_fd = fd;
			else
				close(fd);
		}
	}
}

static ssize_t receive(struct lb *lb, void *room, size_t len)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct iovec bytes = { .iov_base = room, .iov_len = len };
	struct msghdr message = {
		.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control),
	};
	ssize_t n;

	if (!lb->takes_fd)
		return recv(lb->fd, room, len, MSG_DONTWAIT);
	n = recvmsg(lb->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n >= 0)
		take_fds(lb, &message);
	return n;
}

/*
 * LB_NONE: `deadline` passed. A thread that sleeps in recv() on a Unix socket is woken when the daemon reads its request,
 * because there is room to send again, and once more by the answer; in poll() only the answer wakes it.
 */
static enum lb_result receive_more(struct lb *lb, int64_t deadline)
{
	for (;;) {
		enum lb_result r;
		ssize_t n;

		r = wait_for(lb, POLLIN, deadline);
		if (r != LB_OK)
			return r;
		bytes_reserve(&lb->in, 4096);
		n = receive(lb, lb->in.data + lb->in.len, lb->in.cap - lb->in.len);
		if (n > 0) {
			lb->in.len += (size_t)n;
			return LB_OK;
		}
		lb->ended = n == 0 || errno == ECONNRESET;
		if (n == 0)
			return wire_hang_up(lb, "the daemon has ended, or has closed it", 0);
		if (errno != EAGAIN && errno != EINTR)
			return wire_hang_up(lb, "receiving failed", errno);
	}
}

void wire_drop(struct bytes *b, size_t n)
{
	assert(n <= b->len);
	b->len -= n;
	if (b->len > 0)
		memmove(b->data, b->data + n, b->len);
}

/* The memory of an unusually large reply is not kept. */
static void drop_reply(struct lb *lb)
{
	wire_drop(&lb->in, lb->reply_bytes);
	lb->reply_bytes = 0;
	if (lb->in.len == 0 && lb->in.cap > WIRE_REPLY_BYTES_MAX / 256)
		bytes_free(&lb->in);
}

/* An event changes what is held at once, whenever the program reads it. Items of a push are never nested. */
static void heed_event(struct lb *lb)
{
	const struct resp_replies *e = &lb->replies;
	struct slice kind = e->count >= 3 ? reply_text(&e->values[1]) : SLICE(""), name;
	bool token = e->count >= 4 && e->values[3].type == RESP_INTEGER;

	if (kind.len == 0)
		return;
	name = reply_text(&e->values[2]);
	if (token && slice_is(kind, "lost"))
		holdings_gone(&lb->holdings, name, e->values[3].integer);
	else if (token && slice_is(kind, "granted"))
		holdings_granted(&lb->holdings, name, e->values[3].integer);
	else if (slice_is(kind, "timeout") || slice_is(kind, "failed"))
		holdings_unwait(&lb->holdings, name);
	else if (slice_is(kind, "unobserved"))
		holdings_observe(&lb->holdings, name, false);
}

static enum lb_result keep_event(struct lb *lb, size_t bytes)
{
	heed_event(lb);
	if (lb->events.len + bytes > EVENTS_BYTES_MAX)
		return wire_hang_up(lb, "the program does not read its events (lb_event())", 0);
	bytes_append(&lb->events, lb->in.data, bytes);
	wire_drop(&lb->in, bytes);
	return LB_OK;
}

void wire_map_page(struct lb *lb)
{
	const struct lb_reply *hello = (const struct lb_reply *)lb->replies.values;
	struct slice path, id;

	lb->delegations.offered = lb_reply_integer(lb_reply_field(hello, "delegation")) > 0;
	path.data = lb_reply_text(lb_reply_field(hello, "session_page"), &path.len);
	id.data = lb_reply_text(lb_reply_field(hello, "session_page_id"), &id.len);
	holdings_map(&lb->holdings, path, id);
	lb->asks_page = false;
}

void wire_add_question(struct lb *lb)
{
	const struct slice hello = SLICE("HELLO");

	if (lb->asks_page || !holdings_moved(&lb->holdings))
		return;
	resp_request(&lb->out, 1, &hello);
	bytes_append(&lb->unanswered, "", 1);
	lb->asks_page = true;
}

/* Whoever reads will see that the daemon has ended. */
enum lb_result wire_ask_page(struct lb *lb)
{
	enum lb_result r = wire_begin(lb);

	if (r != LB_OK)
		return r;
	wire_add_question(lb);
	r = lb->out.len > 0 ? wire_send(lb) : LB_OK;
	return r == LB_NONE ? LB_OK : r;
}

/* A lock whose unlock failed is not held, whatever its depth was. */
static enum lb_result take_unlock(struct lb *lb, struct slice name)
{
	const struct resp_value *answer = &lb->replies.values[0];

	if (answer->type != RESP_INTEGER && answer->type != RESP_ERROR)
		return wire_hang_up(lb, "the daemon gave UNLOCK an answer that this library does not understand", 0);
	if (answer->type == RESP_ERROR) {
		holdings_remove(&lb->holdings, name, -1);
		holdings_told(&lb->holdings, name);
		if (lb->late_error.len == 0) {
			bytes_slice(&lb->late_error, answer->text);
			bytes_slice(&lb->late_name, name);
		}
	}
	lb->unlocks--;
	return LB_OK;
}

/* The oldest answer that nobody waits for. */
static enum lb_result take_unanswered(struct lb *lb, size_t bytes)
{
	struct slice name = slice_of(lb->unanswered.data);
	enum lb_result r = LB_OK;

	if (name.len > 0)
		r = take_unlock(lb, name);
	else
		wire_map_page(lb);
	if (r != LB_OK)
		return r;
	wire_drop(&lb->unanswered, name.len + 1);
	wire_drop(&lb->in, bytes);
	return LB_OK;
}

enum lb_result wire_read(struct lb *lb, int64_t deadline, bool *ret_push)
{
	for (;;) {
		enum lb_result r;
		size_t used;

		switch (lb->in.len ? resp_read_reply(&lb->replies, bytes_view(&lb->in), &used) : RESP_MORE) {
		case RESP_DONE:
			*ret_push = lb->replies.values[0].type == RESP_PUSH;
			if (*ret_push)
				return keep_event(lb, used);
			if (lb->unanswered.len > 0) {
				r = take_unanswered(lb, used);
				if (r != LB_OK)
					return r;
				continue;
			}
			lb->reply_bytes = used;
			return LB_OK;
		case RESP_BROKEN:
			return wire_hang_up(lb, lb->replies.error, 0);
		case RESP_MORE:
			break;
		}
		r = receive_more(lb, deadline);
		if (r != LB_OK)
			return r;
	}
}

enum lb_result wire_begin(struct lb *lb)
{
	if (lb->fd < 0)
		return wire_fail(lb, LB_CONNECTION, "%s", lb->end);
	drop_reply(lb);
	bytes_clear(&lb->out);
	return LB_OK;
}

enum lb_result wire_read_push(struct lb *lb, int64_t deadline)
{
	enum lb_result r = wire_begin(lb);
	bool push = false;

	if (r == LB_OK)
		r = wire_read(lb, deadline, &push);
	return r == LB_OK && !push ? wire_hang_up(lb, "the daemon sent an answer to no request", 0) : r;
}
