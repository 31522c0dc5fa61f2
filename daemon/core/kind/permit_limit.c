/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kind/permit_limit.h"

#include "core/kind/semaphore.h"
#include "core/lock/locks.h"
#include "core/znode/record.h"
#include "protocol/limits.h"
#include "protocol/number.h"

void permit_limit_data(struct bytes *out, int64_t limit)
{
	record_begin(out);
	bytes_format(out, "kind=semaphore\nlimit=%d\n", limit);
}

bool permit_limit_data_fits(struct slice data, int64_t *limit)
{
	*limit = 0;
	if (!record_is_ours(data))
		return true;
	if (!slice_eq(record_get(data, "kind"), SLICE("semaphore")) || !number_parse(record_get(data, "limit"), limit))
		return false;
	if (*limit < 1 || *limit > LIMIT_PERMITS_MAX)
		*limit = 0; /* nobody could agree to that */
	return true;
}

static void send(struct semaphore *s, enum effect_type type, enum operation_kind kind, struct slice path)
{
	struct operation_request r = {
		.op.kind = kind,
		.path = path,
		.create = directory_lasts(&s->lock->directory) ? ZK_PERSISTENT : ZK_CONTAINER,
		.exact = true, /* it replaces only the version that was read */
		.version = s->version,
	};

	directory_send(&s->lock->directory, type, &r);
}

static void ask(struct semaphore *s)
{
	s->state = SEMAPHORE_ASKED;
	send(s, EFFECT_ZK_GET, OPERATION_SEMAPHORE_GET, bytes_view(&s->path));
}

static void write_limit(struct semaphore *s, enum effect_type type, int64_t limit)
{
	permit_limit_data(operation_data(s->locks->ensemble), limit);
	send(s, type, OPERATION_SEMAPHORE_WRITE, bytes_view(&s->path));
	ask(s);
}

static void make_part(struct semaphore *s, const struct directory *part)
{
	struct bytes *data = operation_data(s->locks->ensemble);

	record_begin(data);
	bytes_format(data, "kind=lock\nflavour=%s\n", flavour_word(part->flavour));
	send(s, EFFECT_ZK_CREATE, OPERATION_SEMAPHORE_WRITE, bytes_view(&part->path));
}

/* False: there were too many tries, and all requests have failed. */
static bool may_try(struct semaphore *s)
{
	if (++s->tries <= SEMAPHORE_TRIES)
		return true;
	s->tries = 0;
	request_fail_all(s->lock, ERROR_UNAVAILABLE, "the semaphore's directories cannot be made");
	return false;
}

static void refused(struct semaphore *s, enum zk_code code, const char *why)
{
	if (code == ZK_BUSY) {
		s->tries = 0;
		directory_retry(&s->lock->directory);
		return;
	}
	directory_pause(&s->lock->directory);
	request_fail_all(s->lock, ERROR_UNAVAILABLE, why);
}

/* The directory is made before its parts: if it exists, it may be of another kind, which must not get such parts. */
static void make(struct semaphore *s)
{
	const struct request *r = TAILQ_FIRST(&s->lock->requests);

	s->incomplete = true;
	if (s->locks->env->now_ns < s->lock->directory.pause_until_ns)
		return; /* it was too busy to make it: settling the lock asks again after the pause */
	s->lock->directory.privileged = r && client_is_operator(r->client);
	if (r && names_take(&s->lock->directory) && may_try(s)) {
		lasting_make(&s->lock->directory);
		write_limit(s, EFFECT_ZK_CREATE, r->limit);
	}
}

static void known(struct semaphore *s, struct slice data, int32_t version)
{
	if (!permit_limit_data_fits(data, &s->limit)) {
		request_fail_all(s->lock, ERROR_MISMATCH,
				 "this name is in use as a lock, not as a semaphore, until some minutes after its last use");
		return;
	}
	s->state = SEMAPHORE_KNOWN;
	s->version = version;
	if (s->incomplete) {
		s->incomplete = false;
		make_part(s, &s->lock->directory);
		make_part(s, &s->slots);
	}
	s->slots.relist = s->slots.claim_count > 0; /* the counted leases may fit now */
	directory_touch(&s->slots);
}

static void get_answered(struct semaphore *s, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;

	s->state = SEMAPHORE_UNKNOWN;
	if (code == ZK_OK)
		known(s, event->zk_answered.data, event->zk_answered.stat.version);
	else if (code == ZK_NONODE)
		make(s);
	else if (code != ZK_UNKNOWN)
		refused(s, code, "ZooKeeper refuses to read the semaphore's directory");
}

void permit_limit_answered(const struct operation *op, const struct event *event)
{
	struct semaphore *s = semaphore_of(op->directory->lock);

	if (op->kind == OPERATION_SEMAPHORE_GET) {
		get_answered(s, event);
	} else if (event->zk_answered.code == ZK_NONODE) {
		presence_above(s->locks->ensemble, bytes_view(&s->path));
		s->incomplete = true;
	} else if (zk_refuses(event->zk_answered.code)) {
		refused(s, event->zk_answered.code, "ZooKeeper refuses to write the semaphore's directory");
	}
}

void permit_limit_watched(struct locks *locks, struct slice path)
{
	struct bytes mutex = { 0 };
	struct directory *d;

	bytes_format(&mutex, "%s/locks", path);
	d = directory_find(locks->directories, bytes_view(&mutex));
	bytes_free(&mutex);
	if (!d || !semaphore_of(d->lock))
		return;
	if (semaphore_of(d->lock)->state == SEMAPHORE_KNOWN)
		semaphore_of(d->lock)->state = SEMAPHORE_UNKNOWN;
	directory_touch(d);
}

void permit_limit_vanished(struct semaphore *s)
{
	s->incomplete = true;
	directory_touch(&s->lock->directory);
	if (s->state != SEMAPHORE_KNOWN)
		return;
	s->state = SEMAPHORE_UNKNOWN;
	may_try(s);
}

void permit_limit_reject(struct semaphore *s)
{
	struct bytes why = { 0 };
	struct request *r, *after;

	TAILQ_FOREACH_SAFE(r, &s->lock->requests, link, after) {
		if (!s->limit || r->limit == s->limit)
			continue;
		bytes_clear(&why);
		bytes_format(&why, "this semaphore has a limit of %d, not %d", s->limit, r->limit);
		bytes_char(&why, '\0');
		request_fail(r, ERROR_MISMATCH, why.data);
	}
	bytes_free(&why);
}

void permit_limit_say(struct semaphore *s, const struct request *r)
{
	if (directory_may_send(&s->lock->directory) && turn_may(&s->lock->directory, TURN_JOIN))
		write_limit(s, EFFECT_ZK_SET, r->limit);
}

void permit_limit_settle(struct semaphore *s)
{
	if (s->state == SEMAPHORE_UNKNOWN && directory_may_send(&s->lock->directory) &&
	    turn_may(&s->lock->directory, TURN_JOIN))
		ask(s);
	if (s->state == SEMAPHORE_KNOWN)
		permit_limit_reject(s);
	if (s->state == SEMAPHORE_KNOWN && !s->limit && s->gathering)
		permit_limit_say(s, s->gathering);
}
