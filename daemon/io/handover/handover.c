/* SPDX-License-Identifier: Apache-2.0 */
#include "io/handover/handover.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cold.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "core/snapshot.h"
#include "io/base/feed.h"
#include "io/base/file.h"
#include "io/base/keeper.h"
#include "io/base/parcel.h"
#include "io/base/socket.h"
#include "io/base/watch.h"
#include "io/conf/conf.h"
#include "io/files/page.h"
#include "io/files/saved.h"
#include "io/files/tokens.h"
#include "io/handover/channel.h"
#include "io/handover/identity.h"
#include "io/handover/program.h"
#include "io/socket/listen.h"
#include "io/socket/server.h"
#include "io/zookeeper/zookeeper.h"

#define WARM_NS (10 * CLOCK_NS_PER_S)
#define ENDING_NS CLOCK_NS_PER_S
#define LOOK_NS (10 * CLOCK_NS_PER_MS)
#define FROZEN_NS (2 * CLOCK_NS_PER_S)

enum { FROZEN_PART = 12, SENTENCE_MAX = 1024 };

enum state { IDLE, WARMING, ENDING, READY };

struct handover {
	struct handover_parts parts;
	enum state state;
	bool asked, stopping;
	bool reread; /* the configuration, since the new process was started */
	bool committed;
	pid_t pid;   /* of the new process */
	int channel; /* -1: none */
	struct watch *input, *timer;
	int64_t due_ns; /* ENDING: it is killed then */
	bool failed;    /* and the broker is to be told why: */
	char sentence[SENTENCE_MAX];
};

/* ---- the new process ---- */

static void drop(struct handover *h)
{
	watch_clear(h->input);
	watch_clear(h->timer);
	file_close(&h->channel);
	h->pid = 0;
	h->state = IDLE;
}

/* It must be gone before this process goes on. */
static void kill_successor(struct handover *h)
{
	if (h->pid <= 0)
		return;
	kill(h->pid, SIGKILL);
	while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* The broker is told when the turn settles. */
static void say_failed(struct handover *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say_failed(struct handover *h, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(h->sentence, sizeof(h->sentence), format, args);
	va_end(args);
	h->failed = true;
	log_warning(hand_over_failed, LOG_FIELDS("error=%v", h->sentence), "no hand-over: %s; this process goes on",
		    h->sentence);
	feed_hurry(h->parts.feed);
}

#define give_up(h, ...) \
	do { \
		kill_successor(h); \
		drop(h); \
		say_failed(h, __VA_ARGS__); \
	} while (0)

/* `what` begins a sentence: it did so before it was ready. */
static void give_up_ended(struct handover *h, int status)
{
	drop(h);
	if (WIFSIGNALED(status))
		say_failed(h, "the new process was killed by signal %d (%s) before it was ready", WTERMSIG(status),
			   strsignal(WTERMSIG(status)));
	else
		say_failed(h, "the new process ended with status %d before it was ready; its messages are in the log",
			   WEXITSTATUS(status));
}

/* ---- warming ---- */

static void look_for_end(struct handover *h)
{
	int status = 0;
	pid_t rc = waitpid(h->pid, &status, WNOHANG);

	if (rc == h->pid)
		give_up_ended(h, status);
	else if (rc < 0 || clock_now_ns() >= h->due_ns)
		give_up(h, "the new process closed its connection before it was ready");
	else
		watch_set(h->timer, -1, 0, LOOK_NS);
}

static void said(struct handover *h, const struct channel_message *m)
{
	if (h->state == WARMING && m->kind == CHANNEL_READY) {
		h->state = READY;
		feed_hurry(h->parts.feed);
	} else if (m->kind == CHANNEL_REFUSED) {
		give_up(h, "%.*s", (int)m->len, m->text);
	} else {
		give_up(h, "the new process says what this one does not understand");
	}
}

static void input(int fd, short what, void *arg)
{
	struct handover *h = arg;
	struct channel_message m;
	int rc = channel_receive(fd, &m, 0);

	if (rc == 0) {
		said(h, &m);
	} else if (rc == -EPIPE) {
		watch_clear(h->input);
		h->state = ENDING;
		h->due_ns = clock_now_ns() + ENDING_NS;
		look_for_end(h);
	} else if (rc != -ETIMEDOUT) {
		give_up(h, "the new process says what this one does not understand");
	}
}

static void timer(int fd, short what, void *arg)
{
	struct handover *h = arg;

	if (h->state == ENDING)
		look_for_end(h);
	else if (h->state == WARMING)
		give_up(h, "the new process was not ready after %d s", (int)(WARM_NS / CLOCK_NS_PER_S));
	else if (h->state == READY)
		give_up(h, "this process was still reading or writing a file after %d s",
			(int)(WARM_NS / CLOCK_NS_PER_S));
}

static void say_who(const struct handover *h, struct bytes *text)
{
	const struct identity self = { h->parts.conf, h->parts.secret, h->parts.standalone };

	identity_pack(text, &self);
}

static int introduce(const struct handover *h)
{
	struct parcel p = { 0 };
	struct entry_writer w;
	int rc;

	say_who(h, &p.text);
	w = entry_begin(&p.text, "broker");
	entry_number(&w, "bytes", (int64_t)snapshot_memory(feed_broker(h->parts.feed)));
	entry_end(&w);
	rc = channel_send_parcel(h->channel, &p, 0);
	parcel_free(&p);
	return rc;
}

static void start(struct handover *h)
{
	char error[PROGRAM_ERROR_MAX];
	struct program_gift gift = { .variable = PROGRAM_VARIABLE };
	int ends[2], rc = channel_pair(ends);

	if (rc < 0) {
		say_failed(h, "cannot make a socket pair: %s", strerror(-rc));
		return;
	}
	gift.fd = ends[1];
	rc = program_start(h->parts.program, &gift, &h->pid, error);
	close(ends[1]);
	h->channel = ends[0];
	if (rc < 0) {
		drop(h);
		say_failed(h, "%s", error);
		return;
	}
	log_info(hand_over, LOG_FIELDS("pid=%d", h->pid), "handing over to process %ld", (long)h->pid);
	h->reread = false;
	h->state = WARMING;
	watch_set(h->input, h->channel, WATCH_READ | WATCH_KEEP, WATCH_NO_TIMEOUT);
	watch_set(h->timer, -1, 0, WARM_NS);
	rc = introduce(h);
	/* If it has ended, what it said before is still to be read. */
	if (rc < 0 && rc != -EPIPE)
		give_up(h, "cannot write to the new process: %s", strerror(-rc));
}

static COLD void answer(struct handover *h)
{
	h->asked = false;
	if (h->stopping)
		say_failed(h, "the daemon is stopping");
	else if (h->state != IDLE)
		log_info(hand_over, LOG_FIELDS("pid=%d", h->pid),
			 "another hand-over is under way: its result counts for this order, too");
	else if (!h->parts.followed)
		say_failed(h,
			   "the daemon cannot give a service manager the number of the next process: NOTIFY_SOCKET is "
			   "not set (lockbrokerd(8), RESTART)");
	else
		start(h);
}

/* ---- the commit ---- */

static bool is_pending(int number)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, number) == 1;
}

static void pack(const struct handover *h, int64_t frozen_ns, struct parcel *p)
{
	const struct handover_parts *parts = &h->parts;
	struct entry_writer w = entry_begin(&p->text, "process");

	parcel_fd(p, &w, "pid_fd", parts->pid_fd);
	entry_number(&w, "frozen_ns", frozen_ns);
	entry_number(&w, "reread", h->reread);
	entry_end(&w);
	page_pack(parts->page, p);
	listen_pack(parts->listener, "listener", p);
	listen_pack(parts->operators, "operators", p);
	saved_pack(parts->saved, p);
	if (parts->standalone)
		tokens_pack(parts->tokens, p);
	else
		zookeeper_pack(parts->zookeeper, p);
	server_pack(parts->server, p);
	parcel_end(p);
	broker_snapshot(feed_broker(parts->feed), &p->text);
}

/* A signal to stop that came in the meantime is for this process, as long as it has not committed. */
static bool is_to_stop(void)
{
	return is_pending(SIGTERM) || is_pending(SIGINT) || is_pending(SIGQUIT);
}

static int64_t longest_ns(const struct handover *h)
{
	return h->parts.standalone ? FROZEN_NS
				   : min64(FROZEN_NS, broker_session_timeout(feed_broker(h->parts.feed)) / FROZEN_PART);
}

static int send_all(struct handover *h, int64_t frozen_ns, int64_t until_ns)
{
	struct parcel p = { 0 };
	int rc;

	/* Not for whoever is started later: that one has a keeper of its own. */
	keeper_pack(h->parts.keeper, &p);
	pack(h, frozen_ns, &p);
	rc = channel_send_parcel(h->channel, &p, until_ns);
	parcel_free(&p);
	return rc;
}

/* 0: it has checked everything. -ECANCELED: it has refused, and *ret_said is its sentence. */
static int await_accept(struct handover *h, int64_t frozen_ns, int64_t until_ns, struct channel_message *ret_said)
{
	int rc = send_all(h, frozen_ns, until_ns);

	/* If it has ended, what it said before is still to be read. */
	if (rc == 0 || rc == -EPIPE)
		rc = channel_receive(h->channel, ret_said, rc == 0 ? until_ns : 0);
	if (rc < 0)
		return rc;
	if (ret_said->kind == CHANNEL_REFUSED)
		return -ECANCELED;
	return ret_said->kind == CHANNEL_ACCEPT ? 0 : -EBADMSG;
}

/* Nobody is served until this returns. */
static COLD bool commit(struct handover *h, int64_t frozen_ns)
{
	int64_t until_ns = frozen_ns + longest_ns(h);
	struct channel_message said = { 0 };
	int rc = await_accept(h, frozen_ns, until_ns, &said);

	if (rc == 0 && is_to_stop())
		rc = -EINTR;
	if (rc == 0)
		rc = clock_now_ns() < until_ns ? channel_send(h->channel, CHANNEL_COMMIT, SLICE(""), until_ns)
					       : -ETIMEDOUT;
	h->committed = rc == 0;
	if (h->committed)
		return true;
	if (rc == -ECANCELED)
		give_up(h, "%.*s", (int)said.len, said.text);
	else if (rc == -EINTR)
		give_up(h, "the daemon is stopping");
	else if (rc == -ETIMEDOUT)
		give_up(h, "the new process did not take over within %d ms", (int)(longest_ns(h) / CLOCK_NS_PER_MS));
	else if (rc == -EPIPE)
		give_up(h, "the new process ended before it took over; its messages are in the log");
	else if (rc == -EBADMSG)
		give_up(h, "the new process says what this one does not understand");
	else
		give_up(h, "cannot hand over: %s", strerror(-rc));
	return false;
}

/* False: the tokens are still being written. */
static COLD bool freeze(const struct handover_parts *parts)
{
	if (parts->tokens && tokens_writing(parts->tokens))
		return false;
	if (parts->zookeeper)
		zookeeper_suspend(parts->zookeeper);
	server_come_to_rest(parts->server);
	/* The end of a connection may have led to another reservation. */
	return !parts->tokens || !tokens_writing(parts->tokens);
}

bool handover_is_ready(const struct handover *h)
{
	return h->state == READY;
}

bool handover_due(struct handover *h)
{
	int64_t frozen_ns;

	/* Asked in each turn: the clock is read only where it matters. */
	if (h->state != READY)
		return false;
	frozen_ns = clock_now_ns();
	return freeze(&h->parts) && commit(h, frozen_ns);
}

bool handover_freeze(struct handover *h, struct parcel *ret)
{
	int64_t frozen_ns = clock_now_ns();

	if (!freeze(&h->parts))
		return false;
	say_who(h, &ret->text);
	pack(h, frozen_ns, ret);
	return true;
}

void handover_finish(struct handover *h)
{
	saved_finish(h->parts.saved);
}

/* ---- the calls ---- */

struct handover *handover_new(const struct handover_parts *parts)
{
	struct handover *h = mem_new(sizeof(*h));

	h->parts = *parts;
	h->channel = -1;
	h->input = watch_new(feed_base(parts->feed), input, h);
	h->timer = watch_new(feed_base(parts->feed), timer, h);
	return h;
}

void handover_free(struct handover *h)
{
	if (!h)
		return;
	kill_successor(h);
	drop(h);
	watch_free(h->input);
	watch_free(h->timer);
	mem_free(h);
}

void handover_ask(struct handover *h)
{
	h->asked = true;
	feed_hurry(h->parts.feed);
}

void handover_cancel(struct handover *h, const char *why)
{
	if (h->state != IDLE)
		give_up(h, "%s", why);
	else if (h->asked)
		say_failed(h, "%s", why);
	h->asked = false;
}

void handover_stop(struct handover *h)
{
	h->stopping = true;
	handover_cancel(h, "the daemon is stopping");
}

void handover_reread(struct handover *h)
{
	h->reread = true;
}

static COLD void tell_failed(struct handover *h)
{
	const struct event event = { .type = EVENT_RESTART_OVER, .restart.sentence = slice_of(h->sentence) };

	h->failed = false;
	feed_event(h->parts.feed, &event);
}

void handover_settle(struct handover *h)
{
	if (h->asked)
		answer(h);
	if (h->failed)
		tell_failed(h);
}

pid_t handover_successor(const struct handover *h)
{
	return h->committed ? h->pid : 0;
}

/*
 * What was to be heeded by this process is for the next one: signals of one number are one, whoever sent them. Another
 * hand-over is not needed.
 */
static void pass_on(int channel)
{
	static const int numbers[] = { SIGHUP, SIGUSR1, SIGTERM, SIGINT, SIGQUIT };
	const struct timespec at_once = { 0 };
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&set, numbers[i]);
	while (sigtimedwait(&set, &info, &at_once) > 0) {
		struct channel_signal signal = { info.si_signo, info.si_pid };

		channel_send(channel, CHANNEL_SIGNAL, (struct slice){ (const char *)&signal, sizeof(signal) },
			     clock_now_ns() + CLOCK_NS_PER_S);
	}
}

void handover_exit(struct handover *h)
{
	if (!h->committed)
		log_exit(EXIT_SUCCESS); /* the service ends for now */
	pass_on(h->channel);
	log_exit(h->parts.keeper ? KEEPER_HANDED_OVER : EXIT_SUCCESS);
}

enum { SIGNALS_MAX = 8, WARM_PIECE = 64 << 10, WARM_BYTES_MAX = 1 << 30 };

struct takeover {
	int channel;
	struct parcel parcel;
	struct watch *watch;
	struct takeover_calls calls;
	struct channel_signal signals[SIGNALS_MAX]; /* passed on so far */
	size_t count;
	void *last; /* piece of the memory that was touched */
};

struct takeover *takeover_new(void)
{
	int fd = socket_inherited(PROGRAM_VARIABLE);
	struct takeover *t;

	if (fd < 0)
		return NULL;
	t = mem_new(sizeof(*t));
	t->channel = fd;
	return t;
}

void takeover_free(struct takeover *t)
{
	if (!t)
		return;
	watch_free(t->watch);
	parcel_discard(&t->parcel);
	file_close(&t->channel);
	mem_free(t->last);
	mem_free(t);
}

void takeover_refuse(struct takeover *t, const char *sentence)
{
	if (t)
		channel_send(t->channel, CHANNEL_REFUSED, slice_of(sentence), CHANNEL_FOREVER);
}

static int receive(struct takeover *t)
{
	struct channel_message m;
	int rc = channel_receive(t->channel, &m, CHANNEL_FOREVER);

	parcel_discard(&t->parcel);
	return rc < 0 ? rc : channel_receive_parcel(t->channel, &m, &t->parcel, CHANNEL_FOREVER);
}

/* False: what was to be received did not come. */
static bool received(struct takeover *t, int rc)
{
	if (rc == -EMFILE)
		takeover_refuse(
			t, "the new process may not have as many open files as the running one has: raise LimitNOFILE= "
			   "(ulimit -n)");
	else if (rc < 0 && rc != -EPIPE)
		takeover_refuse(t, "the new process does not understand what the running one says");
	return rc == 0;
}

/*
 * Memory that was never touched is slow at first: this process touches what it will need before anybody waits for it, and
 * gives it back to the allocator, in pieces that this keeps together, under the last one.
 */
static void warm(struct takeover *t)
{
	struct entry e;
	int64_t bytes = parcel_find(&t->parcel, "broker", &e) ? parcel_get_number(&e, "bytes") : 0;
	size_t count = bytes > 0 ? (size_t)min64(bytes, WARM_BYTES_MAX) / WARM_PIECE : 0;
	void **pieces = mem_new_array(count + 1, sizeof(*pieces));

	for (size_t i = 0; i <= count; i++)
		pieces[i] = mem_new(WARM_PIECE);
	t->last = pieces[count];
	for (size_t i = 0; i < count; i++)
		mem_free(pieces[i]);
	mem_free(pieces);
}

bool takeover_meet(struct takeover *t, const struct identity *self)
{
	char error[IDENTITY_ERROR_MAX];

	if (!received(t, receive(t)))
		return false;
	if (!identity_differs(bytes_view(&t->parcel.text), self, error)) {
		warm(t);
		return true;
	}
	takeover_refuse(t, error);
	return false;
}

struct parcel *takeover_receive(struct takeover *t)
{
	int rc = channel_send(t->channel, CHANNEL_READY, SLICE(LOCKBROKERD_VERSION), CHANNEL_FOREVER);

	if (rc == 0)
		rc = receive(t);
	return received(t, rc) ? &t->parcel : NULL;
}

bool takeover_accept(struct takeover *t)
{
	struct channel_message m;
	int rc = channel_send(t->channel, CHANNEL_ACCEPT, SLICE(""), CHANNEL_FOREVER);

	if (rc == 0)
		rc = channel_receive(t->channel, &m, CHANNEL_FOREVER);
	return rc == 0 && m.kind == CHANNEL_COMMIT;
}

static void keep_signal(struct takeover *t, const struct channel_message *m)
{
	if (m->kind == CHANNEL_SIGNAL && m->len == sizeof(struct channel_signal) && t->count < SIGNALS_MAX)
		memcpy(&t->signals[t->count++], m->text, m->len);
}

static void takeover_input(int fd, short what, void *arg)
{
	struct takeover *t = arg;
	struct channel_message m;
	int rc = channel_receive(fd, &m, 0);

	if (rc == 0)
		keep_signal(t, &m);
	if (rc == 0 || rc == -ETIMEDOUT)
		return;
	watch_clear(t->watch);
	file_close(&t->channel);
	t->calls.over(t->calls.arg);
	for (size_t i = 0; i < t->count; i++)
		t->calls.passed(t->calls.arg, t->signals[i].number, t->signals[i].sender);
}

void takeover_watch(struct takeover *t, struct watch_base *base, const struct takeover_calls *calls)
{
	parcel_discard(&t->parcel);
	t->calls = *calls;
	t->watch = watch_new(base, takeover_input, t);
	watch_set(t->watch, t->channel, WATCH_READ | WATCH_KEEP, WATCH_NO_TIMEOUT);
}
