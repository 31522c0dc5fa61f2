/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/http/question.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/resp.h"

enum { VALUES_MAX = 16 };

struct question {
	struct bufferevent *bev;
	struct event *deadline;
	struct resp_replies replies;
	void (*answered)(void *of, struct slice text);
	void *of;
};

static void read_more(struct bufferevent *bev, void *arg)
{
	struct evbuffer *input = bufferevent_get_input(bev);
	struct question *q = arg;
	struct slice text = { 0 };
	size_t used;

	text.len = evbuffer_get_length(input);
	text.data = (const char *)evbuffer_pullup(input, -1);
	switch (resp_read_reply(&q->replies, text, &used)) {
	case RESP_MORE:
		return;
	case RESP_DONE:
		text = q->replies.values[0].type == RESP_BULK ? q->replies.values[0].text : (struct slice){ 0 };
		break;
	case RESP_BROKEN:
		text = (struct slice){ 0 };
		break;
	}
	q->answered(q->of, text);
}

static void ended(struct bufferevent *bev, short what, void *arg)
{
	struct question *q = arg;

	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		q->answered(q->of, (struct slice){ 0 });
}

static void too_late(evutil_socket_t fd, short what, void *arg)
{
	struct question *q = arg;

	q->answered(q->of, (struct slice){ 0 });
}

/* -1: it cannot be reached. A socket whose queue is full counts as one, so that nothing waits for it. */
static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

struct question *question_new(struct event_base *base, const char *path, void (*answered)(void *of, struct slice text),
			      void *of)
{
	static const char request[] = "*1\r\n$7\r\nMETRICS\r\n";
	static const struct timeval patience = { .tv_sec = QUESTION_SECONDS };
	int fd = connect_to(path);
	struct question *q;

	if (fd < 0)
		return NULL;
	q = calloc(1, sizeof(*q));
	if (!q)
		abort();
	q->answered = answered;
	q->of = of;
	resp_replies_init(&q->replies, VALUES_MAX, QUESTION_BYTES_MAX);
	q->bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	q->deadline = evtimer_new(base, too_late, q);
	if (!q->bev || !q->deadline)
		abort();
	bufferevent_setcb(q->bev, read_more, NULL, ended, q);
	bufferevent_setwatermark(q->bev, EV_READ, 0, 2 * QUESTION_BYTES_MAX);
	bufferevent_enable(q->bev, EV_READ | EV_WRITE);
	bufferevent_write(q->bev, request, strlen(request));
	evtimer_add(q->deadline, &patience);
	return q;
}

void question_free(struct question *q)
{
	if (!q)
		return;
	bufferevent_free(q->bev);
	event_free(q->deadline);
	resp_replies_deinit(&q->replies);
	free(q);
}
