#include "core/lock.h"

#include <assert.h>

#include "base/mem.h"
#include "core/state.h"
#include "protocol/name.h"

enum { IDLE_LOCKS_MAX = 1024 };

/* A grant older than this wants to know whether somebody waits elsewhere, or its znode was deleted. */
static const int64_t WATCH_AFTER_NS = 1000000000;
/* Once a wait has run out, a part of T for the answer that tells whether the lock is taken. */
static const int64_t EXPIRED_PART = 6;

/* ---- the struct's life ---- */

static struct lock *find(const struct map *m, struct slice key, bool by_path)
{
	struct map_node *node = map_first(m, map_hash(m, key.data, key.len));

	for (; node; node = map_next(node)) {
		struct lock *lock;

		if (by_path) {
			lock = (struct lock *)((char *)node - offsetof(struct lock, path_node));
			if (slice_eq(bytes_view(&lock->directory.path), key))
				return lock;
		} else {
			lock = (struct lock *)((char *)node - offsetof(struct lock, name_node));
			if (slice_eq(bytes_view(&lock->name), key))
				return lock;
		}
	}
	return NULL;
}

static struct lock *lock_new(struct broker *b, struct slice name)
{
	struct lock *lock = mem_new(sizeof(*lock));
	struct bytes *path = &lock->directory.path;

	lock->broker = b;
	lock->timer.kind = TIMER_LOCK;
	lock->join_after_ns = INT64_MIN;
	TAILQ_INIT(&lock->requests);
	TAILQ_INIT(&lock->grants);
	TAILQ_INIT(&lock->lost);
	TAILQ_INIT(&lock->leaving);
	bytes_slice(&lock->name, name);
	bytes_text(path, b->conf->root);
	bytes_char(path, '/');
	name_encode(name, path);
	map_add(&b->names, &lock->name_node, map_hash(&b->names, name.data, name.len));
	map_add(&b->paths, &lock->path_node, map_hash(&b->paths, path->data, path->len));
	TAILQ_INSERT_TAIL(&b->locks_used, lock, link);
	return lock;
}

static void unlink_lock(struct lock *lock)
{
	struct broker *b = lock->broker;

	if (lock->idle) {
		TAILQ_REMOVE(&b->locks_idle, lock, link);
		b->idle_count--;
	} else {
		TAILQ_REMOVE(&b->locks_used, lock, link);
	}
}

static bool in_use(const struct lock *lock)
{
	return lock->request_count || lock->grant_count || lock->claim_count || lock->operations ||
	       !TAILQ_EMPTY(&lock->lost);
}

void lock_free(struct lock *lock)
{
	struct broker *b = lock->broker;

	assert(!in_use(lock));
	heap_unset(&b->timers, &lock->timer);
	if (lock->dirty)
		TAILQ_REMOVE(&b->dirty, lock, dirty_link);
	if (lock->recovering)
		TAILQ_REMOVE(&b->recover, lock, recover_link);
	unlink_lock(lock);
	map_remove(&b->names, &lock->name_node);
	map_remove(&b->paths, &lock->path_node);
	bytes_free(&lock->name);
	bytes_free(&lock->directory.path);
	mem_free(lock);
}

static bool evict(struct broker *b)
{
	struct lock *oldest = TAILQ_FIRST(&b->locks_idle);

	if (!oldest)
		return false;
	lock_free(oldest);
	return true;
}

struct lock *lock_find(struct broker *b, struct slice name, bool make)
{
	struct lock *lock = find(&b->names, name, false);

	if (!lock && make) {
		if (b->names.count >= b->conf->limits.locks && !evict(b))
			return NULL;
		lock = lock_new(b, name);
	}
	if (lock && make && lock->idle) {
		unlink_lock(lock);
		lock->idle = false;
		TAILQ_INSERT_TAIL(&b->locks_used, lock, link);
	}
	if (lock && make)
		lock_touch(lock);
	return lock;
}

struct lock *lock_find_path(struct broker *b, struct slice path)
{
	return find(&b->paths, path, true);
}

/* Kept a while: a known directory is one read less for the next LOCK. */
void lock_rest(struct lock *lock)
{
	struct broker *b = lock->broker;

	if (lock->idle || lock->dirty || lock->recovering || in_use(lock))
		return;
	if (b->conf->standalone) {
		lock_free(lock);
		return;
	}
	heap_unset(&b->timers, &lock->timer);
	unlink_lock(lock);
	lock->idle = true;
	TAILQ_INSERT_TAIL(&b->locks_idle, lock, link);
	if (++b->idle_count > IDLE_LOCKS_MAX)
		evict(b);
}

void lock_touch(struct lock *lock)
{
	if (lock->dirty)
		return;
	lock->dirty = true;
	TAILQ_INSERT_TAIL(&lock->broker->dirty, lock, dirty_link);
}

void lock_tick(struct lock *lock)
{
	lock_touch(lock);
}

/* ---- requests ---- */

struct grant *lock_grant_of(const struct lock *lock, const struct client *client)
{
	struct grant *g;

	TAILQ_FOREACH(g, &lock->grants, link)
		if (g->client == client)
			return g;
	TAILQ_FOREACH(g, &lock->lost, link)
		if (g->client == client)
			return g;
	return NULL;
}

void lock_request(struct lock *lock, struct client *client, enum mode mode, int64_t wait_ns)
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

void lock_fail_requests(struct lock *lock, enum error_code code, const char *sentence)
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

/* ---- grants ---- */

static void add_grant(struct lock *lock, struct client *client, enum mode mode, int64_t token)
{
	struct broker *b = lock->broker;
	struct grant *g = mem_new(sizeof(*g));

	g->client = client;
	g->lock = lock;
	g->mode = mode;
	g->depth = 1;
	g->token = token;
	g->granted_ns = b->now_ns;
	TAILQ_INSERT_TAIL(&lock->grants, g, link);
	TAILQ_INSERT_TAIL(&client->grants, g, client_link);
	lock->grant_count++;
	b->grant_count++;
	client->grant_count++;
	client->user->grants++;
	b->stats.grants_total++;
}

static bool nobody_waits(const struct lock *lock)
{
	return lock->directory.watch == DIRECTORY_WATCH_ARMED && lock->directory.quiet;
}

bool lock_contended(const struct lock *lock)
{
	return lock->claim && lock->claim->own_watch;
}

/* Until the watch has answered, a hand-off counts as if somebody waited. */
static bool may_hand_off(const struct lock *lock, const struct claim *c, enum mode mode)
{
	const struct broker *b = lock->broker;

	if (!c->granted)
		return true;
	if (c->handoffs >= CLAIM_HANDOFFS_MAX && mode_conflicts(c->granted_mode, mode))
		return false;
	if (b->conf->standalone || nobody_waits(lock))
		return true;
	if (c->contended >= b->conf->handoff_max)
		return false;
	return c->contended == 0 || b->now_ns - c->contended_ns < b->conf->handoff_ns;
}

static void count_hand_off(const struct lock *lock, struct claim *c, enum mode mode)
{
	struct broker *b = lock->broker;

	b->stats.handoffs_total++;
	if (mode_conflicts(c->granted_mode, mode))
		c->handoffs++;
	if (nobody_waits(lock))
		return;
	if (c->contended++ == 0)
		c->contended_ns = b->now_ns;
}

static void grant_request(struct lock *lock, struct claim *c, struct request *r)
{
	struct client *client = r->client;
	enum mode mode = r->mode;

	if (c->granted)
		count_hand_off(lock, c, mode);
	c->granted = true;
	c->granted_mode = mode;
	c->idle_ns = 0;
	if (lock->grant_count == 0)
		c->granted_ns = lock->broker->now_ns;
	request_end(r);
	add_grant(lock, client, mode, (c->czxid << 10) | c->handoffs);
	client_reply_integer(client, (c->czxid << 10) | c->handoffs);
	client_tell_session(client);
}

void grant_end(struct grant *g)
{
	struct lock *lock = g->lock;
	struct client *client = g->client;

	TAILQ_REMOVE(g->lost ? &lock->lost : &lock->grants, g, link);
	TAILQ_REMOVE(&client->grants, g, client_link);
	client->grant_count--;
	client->user->grants--;
	lock->broker->grant_count--;
	if (g->lost)
		client->lost_count--;
	else
		lock->grant_count--;
	mem_free(g);
	lock_touch(lock);
}

void lock_lose_grants(struct lock *lock)
{
	struct grant *g;

	while ((g = TAILQ_FIRST(&lock->grants))) {
		TAILQ_REMOVE(&lock->grants, g, link);
		TAILQ_INSERT_TAIL(&lock->lost, g, link);
		lock->grant_count--;
		g->lost = true;
		g->client->lost_count++;
		lock->broker->stats.losses_total++;
		client_tell_lost(g->client, g);
	}
}

void lock_lose(struct lock *lock)
{
	lock_lose_grants(lock);
	if (lock->next && lock->next->state == CLAIM_HELD)
		claim_leave(lock->next);
	if (lock->claim && lock->claim->state == CLAIM_HELD)
		claim_leave(lock->claim);
}

/* ---- the rule ---- */

static bool conflicts_with_grants(const struct lock *lock, enum mode mode)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);

	return g && mode_conflicts(g->mode, mode);
}

static void serve(struct lock *lock)
{
	struct broker *b = lock->broker;
	struct request *r;

	while ((r = TAILQ_FIRST(&lock->requests))) {
		struct claim *c = lock->claim;

		if (!c || c->state != CLAIM_HELD || !mode_covers(c->mode, r->mode) || !session_grants(b))
			return;
		if (conflicts_with_grants(lock, r->mode) || !may_hand_off(lock, c, r->mode))
			return;
		grant_request(lock, c, r);
	}
}

/* By a client of this host, or by another host as far as this connection has shown. */
static bool is_taken(const struct lock *lock)
{
	const struct claim *c = lock->claim;

	return lock->grant_count || (c && c->state == CLAIM_WAITING && c->listed);
}

static void end_expired(struct lock *lock)
{
	struct broker *b = lock->broker;
	bool taken = is_taken(lock);
	struct request *r, *after;

	if (!lock->expired_count || (!taken && (b->session.connected || b->conf->standalone)))
		return;
	TAILQ_FOREACH_SAFE(r, &lock->requests, link, after) {
		struct client *client = r->client;

		if (!r->expired)
			continue;
		b->stats.timeouts_total++;
		if (!taken) {
			request_fail(r, ERROR_UNAVAILABLE, "not connected to ZooKeeper: nobody knows whether the lock is taken");
			continue;
		}
		request_end(r);
		client_reply_nil(client);
	}
}

static bool may_join(const struct lock *lock)
{
	const struct broker *b = lock->broker;

	if (b->stopping || b->now_ns < lock->join_after_ns || lock->claim_count >= LOCK_ZNODES_MAX)
		return false;
	if (lock->directory.worn)
		return false;
	/* A directory of another kind is read again before anything is put into it. */
	if (lock->directory.suspect && lock->directory.state != DIRECTORY_FITS)
		return false;
	return b->conf->standalone ? b->token_next < b->token_limit : b->session.connected;
}

static void queue_next(struct lock *lock)
{
	if (!lock->next && !lock->broker->conf->standalone && may_join(lock))
		lock->next = claim_join(lock, TAILQ_FIRST(&lock->requests)->mode);
}

static void leave_both(struct lock *lock)
{
	if (lock->next)
		claim_leave(lock->next);
	claim_leave(lock->claim);
}

static bool may_linger(const struct lock *lock, const struct claim *c)
{
	const struct broker *b = lock->broker;

	if (b->stopping || b->conf->standalone || c->own_watch || c->handoffs >= CLAIM_NEXT_FROM)
		return false;
	if (lock->directory.watch == DIRECTORY_WATCH_ARMED && !lock->directory.quiet)
		return false;
	return b->now_ns < c->idle_ns + b->conf->linger_ns;
}

/* A held claim nobody holds a grant on. True when the claims changed. */
static bool give_back_held(struct lock *lock, struct claim *c)
{
	if (lock->request_count) {
		/* Only a proof is missing: it will serve when that comes. */
		if (!session_grants(lock->broker))
			return false;
		queue_next(lock);
		claim_leave(c);
		return true;
	}
	if (!c->idle_ns)
		c->idle_ns = lock->broker->now_ns;
	if (may_linger(lock, c))
		return false;
	leave_both(lock);
	return true;
}

static bool give_back(struct lock *lock)
{
	struct claim *c = lock->claim;
	bool wanted = lock->request_count > 0;

	if (!c)
		return false;
	if (c->state != CLAIM_HELD) {
		if (wanted)
			return false;
		leave_both(lock);
		return true;
	}
	if (!lock->grant_count)
		return give_back_held(lock, c);
	/* Near the end of its tokens a busy claim keeps its next, or every hand-off would make a new one. */
	if (lock->next && !wanted && c->handoffs < CLAIM_NEXT_FROM)
		claim_leave(lock->next);
	return false;
}

static void join(struct lock *lock)
{
	struct claim *c = lock->claim;
	struct request *head = TAILQ_FIRST(&lock->requests);

	if (!head)
		return;
	if (lock->directory.suspect && lock->broker->session.connected)
		directory_check(lock);
	if (lock->directory.worn && lock->broker->session.connected)
		directory_renew(lock);
	if (!c) {
		if (!may_join(lock))
			return;
		lock->claim = claim_join(lock, head->mode);
		if (!lock->claim)
			lock_fail_requests(lock, ERROR_LIMIT, "this host's session has as many znodes as ZooKeeper can take");
	} else if (c->state == CLAIM_HELD && (!mode_covers(c->mode, head->mode) || c->handoffs >= CLAIM_NEXT_FROM)) {
		queue_next(lock);
	}
}

/* Whether anybody waits matters once there was a hand-off, while lingering, and for a grant of some age. */
static bool wants_watch(const struct lock *lock, const struct claim *c)
{
	if (!lock->grant_count || c->contended || c->handoffs)
		return true;
	return lock->broker->now_ns - c->granted_ns >= WATCH_AFTER_NS;
}

static void watch(struct lock *lock)
{
	struct claim *c = lock->claim;

	if (!c || c->state != CLAIM_HELD || !lock->broker->session.connected || c->own_watch)
		return;
	if (wants_watch(lock, c))
		directory_arm(lock);
}

static void retry_deletes(struct lock *lock)
{
	struct claim *c;

	if (lock->broker->now_ns < lock->join_after_ns)
		return;
	TAILQ_FOREACH(c, &lock->leaving, link)
		claim_send_delete(c);
}

/* Only sets timers earlier: lock_tick looks again, and a pair of LOCK and UNLOCK need not move anything. */
static void set_timer(struct lock *lock)
{
	struct broker *b = lock->broker;
	const struct claim *c = lock->claim;

	if (b->conf->standalone)
		return;
	if (lock->join_after_ns > b->now_ns && (lock->request_count || lock->claim_count))
		heap_set_by(&b->timers, &lock->timer, lock->join_after_ns);
	if (!c || c->state != CLAIM_HELD)
		return;
	if (!lock->grant_count && !lock->request_count)
		heap_set_by(&b->timers, &lock->timer, c->idle_ns + b->conf->linger_ns);
	else if (lock->grant_count && b->session.connected && !c->own_watch && !wants_watch(lock, c))
		heap_set_by(&b->timers, &lock->timer, c->granted_ns + WATCH_AFTER_NS);
}

void lock_settle(struct lock *lock)
{
	do {
		serve(lock);
		end_expired(lock);
	} while (give_back(lock));
	join(lock);
	if (lock->broker->conf->standalone)
		serve(lock);
	else
		watch(lock);
	end_expired(lock);
	retry_deletes(lock);
	set_timer(lock);
}
