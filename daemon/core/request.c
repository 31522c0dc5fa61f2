#include "core/request.h"

#include <assert.h>

#include "base/mem.h"
#include "core/state.h"

/* Once a wait has run out, a part of T for the answer that tells whether the lock is taken. */
static const int64_t EXPIRED_PART = 6;

void request_new(struct lock *lock, struct client *client, enum mode mode, int64_t wait_ns)
{
	struct broker *b = lock->broker;
	struct request *r = mem_new(sizeof(*r));

	assert(!client->request);
	r->client = client;
	r->lock = lock;
	r->mode = mode;
	r->asked_ns = b->now_ns;
	r->timer.kind = TIMER_REQUEST;
	client->request = r;
	client->user->requests++;
	TAILQ_INSERT_TAIL(&lock->requests, r, link);
	lock->request_count++;
	b->request_count++;
	if (wait_ns == 0)
		request_expire(r);
	else if (wait_ns > 0)
		heap_set(&b->timers, &r->timer, b->now_ns + wait_ns);
	lock_touch(lock);
}

void request_end(struct request *r)
{
	struct lock *lock = r->lock;
	struct broker *b = lock->broker;

	TAILQ_REMOVE(&lock->requests, r, link);
	lock->request_count--;
	b->request_count--;
	if (r->expired)
		lock->expired_count--;
	heap_unset(&b->timers, &r->timer);
	r->client->request = NULL;
	r->client->user->requests--;
	mem_free(r);
	lock_touch(lock);
}

void request_fail(struct request *r, enum error_code code, const char *sentence)
{
	struct client *client = r->client;

	if (code == ERROR_LIMIT)
		client->broker->stats.limits_total++;
	request_end(r);
	client_reply_error(client, code, sentence);
}

void request_fail_all(struct lock *lock, enum error_code code, const char *sentence)
{
	struct request *r;

	while ((r = TAILQ_FIRST(&lock->requests)))
		request_fail(r, code, sentence);
}

void request_expire(struct request *r)
{
	struct broker *b = r->lock->broker;

	if (r->expired) {
		b->stats.timeouts_total++;
		request_fail(r, ERROR_UNAVAILABLE, "ZooKeeper did not say in time whether the lock is taken");
		return;
	}
	r->expired = true;
	r->lock->expired_count++;
	heap_set(&b->timers, &r->timer, b->now_ns + b->session.timeout_ns / EXPIRED_PART);
	lock_touch(r->lock);
}
