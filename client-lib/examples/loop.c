/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A lock in an event loop, here libevent's: the program waits in its loop, never in the library.
 *
 * loop LOCK works while it holds LOCK, a step every 100 ms, and repeats each line of the standard input at once, also
 * while it waits for the lock. When the lock is lost, it stops the work and asks for the lock again; when somebody asks
 * for it back, it gives it back first. It ends with its input.
 *
 *     cc loop.c -llockbroker -levent_core -o loop
 */
#include <event2/event.h>
#include <inttypes.h>
#include <lockbroker.h>
#include <stdio.h>
#include <unistd.h>

enum { STEP_MS = 100, AGAIN_MS = 1000 };
/* A call may keep the loop waiting for as long: if the broker is not there, and if it hangs. */
enum { CONNECT_MS = 200, PATIENCE_MS = 5000 };

struct job {
	const char *name; /* of the lock */
	struct lb *lb;
	struct event_base *base;
	struct event *broker; /* the connection has something to say */
	struct event *step;   /* pending while the lock is held */
	struct event *again;  /* pending while the lock is neither held nor asked for */
};

static void after(struct event *timer, int ms)
{
	const struct timeval time = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	event_add(timer, &time);
}

static void stop_work(struct job *job)
{
	event_del(job->step);
	after(job->again, AGAIN_MS);
}

static void handle(struct job *job, const struct lb_event *e)
{
	switch (e->type) {
	case LB_EVENT_GRANTED:
		printf("held %" PRId64 "\n", e->token);
		after(job->step, STEP_MS);
		break;
	case LB_EVENT_LOST:
		printf("lost %s\n", e->reason);
		stop_work(job);
		break;
	case LB_EVENT_FAILED:
		printf("failed: %s\n", e->reason);
		stop_work(job);
		break;
	case LB_EVENT_REVOKE:
		printf("released: %s\n", e->reason);
		lb_unlock(job->lb, job->name);
		stop_work(job);
		break;
	case LB_EVENT_JEOPARDY:
	case LB_EVENT_SAFE:
	case LB_EVENT_TIMEOUT:
	case LB_EVENT_LEADER:
	case LB_EVENT_UNOBSERVED:
	case LB_EVENT_OTHER:
		break;
	}
}

static void readable(evutil_socket_t fd, short what, void *arg);

/* Events may have been read by an earlier call: none is left when the loop waits for the socket, which may be a new one. */
static void listen_to(struct job *job)
{
	struct lb_event e;

	while (lb_event(job->lb, 0, &e) == LB_OK)
		handle(job, &e);
	event_del(job->broker);
	if (lb_fd(job->lb) < 0)
		return;
	event_assign(job->broker, job->base, lb_fd(job->lb), EV_READ | EV_PERSIST, readable, job);
	event_add(job->broker, NULL);
}

static void readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	listen_to(arg);
}

static void ask(evutil_socket_t fd, short what, void *arg)
{
	struct job *job = arg;
	enum lb_result r;

	(void)fd;
	(void)what;
	lb_set_patience(job->lb, lb_fd(job->lb) < 0 ? CONNECT_MS : PATIENCE_MS);
	r = lb_enqueue(job->lb, job->name, NULL);
	/* A loss is told once more, for those who do not read events. */
	if (r == LB_LOST)
		r = lb_enqueue(job->lb, job->name, NULL);
	lb_set_patience(job->lb, PATIENCE_MS);
	if (r == LB_OK) {
		printf("waiting\n");
	} else {
		printf("again soon: %s\n", lb_error(job->lb));
		after(job->again, AGAIN_MS);
	}
	listen_to(job);
}

/* The event of a loss may still be on its way, but the proof tells. */
static void step(evutil_socket_t fd, short what, void *arg)
{
	struct job *job = arg;
	int64_t ms = 0;

	(void)fd;
	(void)what;
	if (lb_valid(job->lb, job->name, &ms) == LB_OK && ms > STEP_MS)
		printf("step\n");
	after(job->step, STEP_MS);
	listen_to(job);
}

static void input(evutil_socket_t fd, short what, void *arg)
{
	struct job *job = arg;
	char line[512];
	ssize_t len = read(fd, line, sizeof(line));

	(void)what;
	if (len > 0)
		printf("heard %.*s", (int)len, line);
	else
		event_base_loopbreak(job->base);
}

/* The input may be a file, or /dev/null, which epoll does not watch. */
static struct event_base *make_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	event_config_avoid_method(config, "epoll");
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

int main(int argc, char **argv)
{
	struct job job = { .name = argc == 2 ? argv[1] : NULL, .base = make_base() };
	struct event *lines;

	if (!job.name || !job.base) {
		fprintf(stderr, "Usage: loop LOCK\n");
		return 64;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Before the loop, because it may wait. If nobody serves then, lb_enqueue() tells and is tried again. */
	lb_open(NULL, &job.lb);
	job.broker = event_new(job.base, -1, 0, readable, &job);
	job.step = evtimer_new(job.base, step, &job);
	job.again = evtimer_new(job.base, ask, &job);
	lines = event_new(job.base, STDIN_FILENO, EV_READ | EV_PERSIST, input, &job);
	event_add(lines, NULL);
	after(job.again, 0);
	event_base_dispatch(job.base);
	event_free(lines);
	event_free(job.broker);
	event_free(job.step);
	event_free(job.again);
	event_base_free(job.base);
	lb_close(job.lb); /* releases the lock */
	return 0;
}
