/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of access in a part of the worlds of "anything": hosts have some, and others after each reload. Who may do what is
 * decided here once more, by the words that the rules were made of, and compared with the answers:
 *
 *   - who may not is refused, and whoever may is not refused for that; the sentence names the rule that counts
 *   - who may not look is shown no process and no data of other users
 *   - nobody but operators is listed the clients of other accounts
 *   - nobody but operators is told a session, in whatever form; the log tells none
 *
 * Chance is of a stream of its own: a world without rules is what it is without this file.
 */
#include "anything.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/unit_name.h"

enum { SHARE = 3 /* of the worlds, one in so many */, RULES_EVERY_MS = 4000, TEXT_MAX = 96, DATA_MAX = 64 };

static const char *const patterns[] = { "*", "a", "?", "m/*", "k/y", "[ab]" };
static const char *const everybody[] = { "*", "0", "1", "2", "1-2", "@7", "@8", "unit:a.service", "unit:b.service" };

static struct rng stream(const struct world *w, int salt)
{
	return (struct rng){ .state = (w->seed + (uint64_t)w->sched.now) * 0x9e3779b97f4a7c15u + (uint64_t)salt };
}

/* ---- who they are ---- */

static uint32_t uid_of(uint32_t conn)
{
	return conn % 3;
}

static struct slice unit_of(uint32_t conn)
{
	switch (conn) {
	case 1:
	case 3:
		return SLICE("a.service");
	case 2:
		return SLICE("b.service");
	case 5:
		return SLICE(UNIT_UNKNOWN);
	default:
		return SLICE("");
	}
}

/* Of one account: root's units, which are operators', are told apart, and perhaps those of one user more. */
static bool is_same(const struct host *h, uint32_t a, uint32_t b)
{
	bool apart = accounts_has_units(&h->broker->env.accounts, uid_of(a));

	return uid_of(a) == uid_of(b) && (!apart || slice_eq(unit_of(a), unit_of(b)));
}

/* A bearer is of the process that set it, which has the number of its connection. */
static bool any_is_same(const struct host *h, const struct client *a, uint32_t b)
{
	return is_same(h, a->bearer ? any_conn_of(h, a->pid) : a->conn, b);
}

static bool has_group(uint32_t conn, uint32_t group)
{
	return (conn + group) % 4 < 2;
}

static bool is_operator(const struct any_peer *p)
{
	return uid_of(p->conn) == 0;
}

static struct event_groups groups_of(uint32_t conn, uint32_t list[2])
{
	size_t count = 0;

	for (uint32_t group = 7; group <= 8; group++)
		if (has_group(conn, group))
			list[count++] = group;
	return (struct event_groups){ .list = list, .count = count, .all = true };
}

void any_rules_connect(struct any_peer *p, struct event *e)
{
	static uint32_t list[2];

	if (!p->host->w->any->rules)
		return;
	p->groups_known = true;
	e->connected.pid = 1000 + 100 * (uint32_t)p->host->index + p->conn;
	e->connected.unit = unit_of(p->conn);
	e->connected.privileged = is_operator(p);
	e->connected.groups = groups_of(p->conn, list);
}

static void tell_groups(void *peer, uint64_t life)
{
	struct any_peer *p = peer;
	struct host *h = p->host;
	uint32_t list[2];

	if (life != p->life || !p->on || p->groups_known || !h->broker || h->dying || h->crashed)
		return;
	p->groups_known = true;
	host_handle(h, &(struct event){ .type = EVENT_CLIENT_GROUPS, .conn = p->conn, .groups = groups_of(p->conn, list) });
}

void any_rules_restored(struct host *h)
{
	struct rng r = stream(h->w, 3 * h->index + 1);

	if (h->w->any)
		any_of(h)->named_ns = 0;
	if (!h->w->any || !h->w->any->rules)
		return;
	for (int i = 0; i < any_of(h)->peer_count; i++) {
		struct any_peer *p = &any_of(h)->peers[i];

		p->groups_known = false;
		sched_at(&h->w->sched, h->w->sched.now + rng_between(&r, 0, 500) * MS, tell_groups, p, p->life);
	}
}

/* ---- the rules ---- */

static struct any_rules *rules_of(const struct host *h)
{
	return &any_of(h)->rules[any_of(h)->turn];
}

static void rules_free(struct any_rules *rules)
{
	while (rules->count)
		rule_free(&rules->list[--rules->count]);
}

static void add(struct any_rules *rules, struct rng *r)
{
	struct any_rule *made = &rules->made[rules->count];
	char text[TEXT_MAX], error[RULE_ERROR_MAX], where[16];
	size_t len;

	*made = (struct any_rule){
		.allows = rng_percent(r, 40),
		.who = (int)rng_below(r, sizeof(everybody) / sizeof(everybody[0])),
		.pattern = (int)rng_below(r, sizeof(patterns) / sizeof(patterns[0])),
		.verbs = 1 + rng_below(r, (1 << RULE_VERB_COUNT) - 1),
	};
	len = (size_t)snprintf(text, sizeof(text), "%s %s %s ", made->allows ? "allow" : "deny", everybody[made->who],
			       patterns[made->pattern]);
	for (int verb = 0; verb < RULE_VERB_COUNT; verb++)
		if (made->verbs >> verb & 1)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s,", rule_verb_word((enum rule_verb)verb));
	text[len - 1] = '\0';
	snprintf(where, sizeof(where), "sim:%zu", rules->count);
	if (rule_parse(&rules->list[rules->count], text, where, error) < 0)
		abort();
	rules->verbs |= made->verbs;
	rules->count++;
}

/* Those of the turn before are not in use any longer. */
static void rules_choose(struct host *h, struct rng *r)
{
	struct any_host *a = any_of(h);
	struct any_rules *next = &a->rules[!a->turn];
	size_t count = rng_below(r, ANY_RULES + 1);

	rules_free(next);
	next->verbs = 0;
	while (next->count < count)
		add(next, r);
	a->turn = !a->turn;
	a->ruled++;
	h->conf.access = (struct access_rules){ next->list, next->count, next->verbs };
}

static void reload_due(void *host, uint64_t argument)
{
	struct host *h = host;
	struct rng r = stream(h->w, 3 * h->index + 2);

	if (h->broker && h->stopped_until <= h->w->sched.now && !h->dying) {
		rules_choose(h, &r);
		reloads_tell(h);
	}
	if (!h->w->quiet)
		sched_at(&h->w->sched, h->w->sched.now + rng_between(&r, 1, RULES_EVERY_MS) * MS, reload_due, h, argument);
}

void any_rules_init(struct host *h)
{
	struct rng r = stream(h->w, 3 * h->index);

	h->w->any->rules = h->w->seed % SHARE == 0;
	if (!h->w->any->rules)
		return;
	rules_choose(h, &r);
	sched_at(&h->w->sched, h->w->sched.now + rng_between(&r, 1, RULES_EVERY_MS) * MS, reload_due, h, 0);
}

void any_rules_free(struct host *h)
{
	rules_free(&any_of(h)->rules[0]);
	rules_free(&any_of(h)->rules[1]);
}

/* ---- the verdict ---- */

static bool matches(int pattern, const char *name)
{
	switch (pattern) {
	case 0:
		return true;
	case 1:
		return strcmp(name, "a") == 0;
	case 2:
		return strlen(name) == 1;
	case 3:
		return strncmp(name, "m/", 2) == 0;
	case 4:
		return strcmp(name, "k/y") == 0;
	default:
		return strcmp(name, "a") == 0 || strcmp(name, "b") == 0;
	}
}

static bool is_meant(const struct any_peer *p, const struct any_rule *r)
{
	uint32_t uid = uid_of(p->conn);

	switch (r->who) {
	case 0:
		return true;
	case 1:
	case 2:
	case 3:
		return uid == (uint32_t)r->who - 1;
	case 4:
		return uid >= 1;
	case 5:
	case 6:
		return p->groups_known ? has_group(p->conn, (uint32_t)r->who + 2) : !r->allows;
	default:
		return unit_is_unknown(unit_of(p->conn))
			       ? !r->allows
			       : slice_eq(unit_of(p->conn), slice_of(everybody[r->who] + strlen("unit:")));
	}
}

static bool may(const struct any_peer *p, enum rule_verb verb, int name, const struct rule **ret_rule)
{
	const struct any_rules *rules = rules_of(p->host);

	*ret_rule = NULL;
	if (is_operator(p))
		return true;
	for (size_t i = 0; i < rules->count; i++)
		if ((rules->made[i].verbs >> verb & 1) && is_meant(p, &rules->made[i]) &&
		    matches(rules->made[i].pattern, any_names[name])) {
			*ret_rule = &rules->list[i];
			return rules->made[i].allows;
		}
	return verb != RULE_revoke && verb != RULE_limit;
}

/* ---- requests ---- */

static bool says_shared(const struct slice *words, size_t count)
{
	for (size_t i = 2; i < count; i++)
		if (slice_is(words[i], "shared") && !slice_is(words[i - 1], "data"))
			return true;
	return false;
}

/* -1: no rule is about that. */
static int verb_of(enum command command, const struct slice *words, size_t count)
{
	switch (command) {
	case COMMAND_LOCK:
	case COMMAND_ENQUEUE:
	case COMMAND_MLOCK:
		return says_shared(words, count) ? RULE_shared : RULE_lock;
	case COMMAND_SETNX:
		return RULE_lock;
	case COMMAND_SET: /* XX takes nothing */
		return values_says_nx(words, count) ? RULE_lock : -1;
	case COMMAND_ACQUIRE:
		return RULE_acquire;
	case COMMAND_CAMPAIGN:
		return RULE_campaign;
	case COMMAND_OBSERVE:
	case COMMAND_LEADER:
		return RULE_observe;
	case COMMAND_REVOKE:
		return RULE_revoke;
	case COMMAND_LIMIT:
		return count == 3 ? RULE_limit : -1;
	default:
		return -1;
	}
}

/* Holders of the same account may be asked whatever the rules say. Who waits may be one: deadlines come before the event. */
static bool is_own(const struct any_peer *p, struct slice name)
{
	const struct lock *lock = lock_find(&p->host->broker->locks, name);
	const struct request *r;
	const struct grant *g;

	if (!lock)
		return false;
	TAILQ_FOREACH(g, &lock->grants, link)
		if (any_is_same(p->host, g->client, p->conn))
			return true;
	TAILQ_FOREACH(r, &lock->requests, link)
		if (any_is_same(p->host, r->client, p->conn))
			return true;
	return false;
}

/* Of the names that it asks about: a bit each of those that the rules deny it. What it has already it may have again. */
void any_rules_asking(struct any_peer *p, const struct slice *words, size_t count)
{
	int verb = p->host->w->any->rules ? verb_of(p->command, words, count) : -1;
	bool several = p->command == COMMAND_MLOCK;
	const struct rule *rule;

	p->verb = verb;
	p->denied = 0;
	p->ruled = any_of(p->host)->ruled;
	p->denies = NULL;
	if (p->command >= COMMAND_COUNT || verb < 0)
		return;
	for (size_t i = several ? 2 : 1; i < count && (several || i == 1); i++) {
		int name = any_name_of(words[i]);

		if (name < 0 || (verb == RULE_revoke && is_own(p, words[i]))) {
			p->verb = -1;
			continue;
		}
		if (may(p, (enum rule_verb)verb, name, &rule))
			continue;
		p->denied |= 1U << name;
		p->denies = p->denies ? p->denies : rule;
	}
}

static bool contains(struct slice text, const char *part)
{
	return memmem(text.data, text.len, part, strlen(part)) != NULL;
}

static void check_verdict(const struct any_peer *p, struct slice reply, unsigned int held)
{
	bool refused = reply.len && reply.data[0] == '-';
	bool by_rule = reply.len > 7 && memcmp(reply.data, "-DENIED", 7) == 0;

	if (p->verb < 0)
		return;
	/* What it has does not end when the rules change. */
	if ((p->command == COMMAND_REVOKE ? p->denied : p->denied & ~held) && !refused)
		world_fail(p->host->w, -1, "host %d client %u: %s, which %s denies: %.*s", p->host->index, p->conn,
			   rule_verb_word((enum rule_verb)p->verb), p->denies ? p->denies->text : "the default", (int)reply.len,
			   reply.data);
	if (!p->denied && by_rule && p->ruled == any_of(p->host)->ruled)
		world_fail(p->host->w, -1, "host %d client %u: no rule denies that: %.*s", p->host->index, p->conn,
			   (int)reply.len, reply.data);
	/* An MLOCK looks at its names in another order. */
	if (by_rule && p->denies && p->command != COMMAND_MLOCK &&
	    (!contains(reply, p->denies->text) || !contains(reply, p->denies->where)))
		world_fail(p->host->w, -1, "host %d client %u: %s counts: %.*s", p->host->index, p->conn, p->denies->text,
			   (int)reply.len, reply.data);
}

/* ---- what is shown ---- */

static void check_secret(const struct host *h, struct slice text, const char *who)
{
	struct world *w = h->w;
	const struct zsession *s;

	LIST_FOREACH(s, &w->zk.sessions, link) {
		uint64_t id = (uint64_t)s->id;
		char digits[24], bare[24], uuid[48];

		snprintf(digits, sizeof(digits), "%016" PRIx64, id);
		snprintf(bare, sizeof(bare), "0x%" PRIx64, id);
		snprintf(uuid, sizeof(uuid), "%08" PRIx64 "-%04" PRIx64 "-8%03" PRIx64, id >> 32, id >> 16 & 0xffff,
			 id >> 4 & 0xfff);
		if (contains(text, digits) || contains(text, bare) || contains(text, uuid))
			world_fail(w, -1, "host %d: %s is told the session %s: %.*s", h->index, who, digits, (int)text.len,
				   text.data);
	}
}

void any_rules_logged(struct host *h, struct slice text)
{
	if (h->w->any->rules)
		check_secret(h, text, "whoever reads the log");
}

static bool is_own_pid(const struct any_peer *p, int64_t pid)
{
	int64_t conn = any_conn_of(p->host, pid);

	return pid == 0 || (conn >= 0 && conn < ANY_PEERS && is_same(p->host, (uint32_t)conn, p->conn));
}

static void check_unseen(const struct any_peer *p, struct slice reply)
{
	static const char pid[] = "$3\r\npid\r\n:", data[] = "$4\r\ndata\r\n$";
	struct slice rest = reply;
	const char *at;

	while ((at = memmem(rest.data, rest.len, pid, strlen(pid)))) {
		rest = (struct slice){ at + strlen(pid), (size_t)(rest.data + rest.len - at) - strlen(pid) };
		if (!is_own_pid(p, strtoll(rest.data, NULL, 10)))
			world_fail(p->host->w, -1, "host %d client %u: it may not look: %.*s", p->host->index, p->conn,
				   (int)reply.len, reply.data);
	}
	rest = reply;
	while ((at = memmem(rest.data, rest.len, data, strlen(data)))) {
		char own[DATA_MAX];
		bool found = false;

		rest = (struct slice){ at + strlen(data), (size_t)(rest.data + rest.len - at) - strlen(data) };
		for (uint32_t i = 0; i < ANY_PEERS; i++) {
			snprintf(own, sizeof(own), "4\r\nd%d-%u", p->host->index, i);
			found = found || (is_same(p->host, i, p->conn) && rest.len > strlen(own) &&
					  memcmp(rest.data, own, strlen(own)) == 0);
		}
		/* Other data come of a word that stands where they are expected. */
		if (!found && rest.len > 7 && rest.data[0] == '4' && rest.data[3] == 'd' && rest.data[5] == '-')
			world_fail(p->host->w, -1, "host %d client %u: it may not look: %.*s", p->host->index, p->conn,
				   (int)reply.len, reply.data);
	}
}

/* CLIENT LIST is of its own account, whatever the rules say. */
static void check_listed(const struct any_peer *p, struct slice reply)
{
	static const char pid[] = " pid=";
	struct slice rest = reply;
	const char *at;

	while ((at = memmem(rest.data, rest.len, pid, strlen(pid)))) {
		rest = (struct slice){ at + strlen(pid), (size_t)(rest.data + rest.len - at) - strlen(pid) };
		if (!is_own_pid(p, strtoll(rest.data, NULL, 10)))
			world_fail(p->host->w, -1, "host %d client %u: not of its account: %.*s", p->host->index, p->conn,
				   (int)reply.len, reply.data);
	}
}

static bool shows_others(enum command command)
{
	return command == COMMAND_HOLDERS || command == COMMAND_QUEUE || command == COMMAND_WHY || command == COMMAND_LEADER;
}

void any_rules_told(struct any_peer *p, int name, struct slice data)
{
	const struct rule *rule;

	if (p->host->w->any->rules && !may(p, RULE_look, name, &rule) && data.len)
		world_fail(p->host->w, -1, "host %d client %u: it may not look, and is told what %s's leader says",
			   p->host->index, p->conn, any_names[name]);
}

void any_rules_reply(struct any_peer *p, struct slice reply)
{
	const struct rule *rule;

	if (!p->host->w->any->rules)
		return;
	check_verdict(p, reply, p->held);
	if (is_operator(p))
		return;
	check_secret(p->host, reply, "a client");
	check_listed(p, reply);
	if (shows_others(p->command) && p->name >= 0 && !may(p, RULE_look, p->name, &rule))
		check_unseen(p, reply);
}
