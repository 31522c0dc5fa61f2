/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/participant.h"

#include "core/client/reply.h"
#include "core/hosts/hosts.h"
#include "core/znode/record.h"
#include "protocol/number.h"
#include "protocol/resp.h"

static struct participant here(const struct lock *lock, const struct client *c, int64_t since_ns)
{
	struct participant p = {
		.here = true,
		.host = slice_of(lock->locks->env->conf->host),
		.name = bytes_view(&c->name),
		.client = (int64_t)c->id,
		.uid = c->uid,
		.account = c->account,
		.for_ms = (lock->locks->env->now_ns - since_ns) / NS_PER_MS,
		.lease_ms = -1,
	};

	p.pid = client_shown(c, &p.command);
	if (lock->directory.claim && lock->directory.claim->named)
		p.znode = slice_of(lock->directory.claim->name);
	return p;
}

struct participant participant_holder(const struct grant *g)
{
	struct participant p = here(g->lock, g->client, delegated_since_ns(g));

	p.mode = g->mode;
	p.depth = g->depth;
	p.token = g->token;
	p.lease_ms = g->lease.place ? grant_lease_rest_ns(g) / NS_PER_MS : -1;
	p.data = bytes_view(&g->data);
	return p;
}

struct participant participant_waiter(const struct request *r)
{
	struct participant p = here(r->lock, r->client, r->asked_ns);

	p.mode = r->mode;
	p.count = r->count;
	return p;
}

int64_t participant_number(struct slice data, const char *key, int64_t otherwise)
{
	int64_t value;

	return number_parse(record_get(data, key), &value) ? value : otherwise;
}

/* Shows a znode's holder by the znode's data; the clocks of two hosts may differ. */
struct participant participant_elsewhere(const struct hosts *h, const struct query_child *child)
{
	struct slice data = bytes_view(&child->data);
	int64_t now_ms = env_wall_ms(h->env, h->env->now_ns);
	int64_t written = participant_number(data, "written", -1), since = participant_number(data, "since", -1);
	struct participant p = {
		.host = record_get(data, "host"),
		.name = record_get(data, "name"),
		.command = record_get(data, "command"),
		.znode = bytes_view(&child->name),
		.mode = child->mode,
		.pid = participant_number(data, "pid", 0),
		.uid = participant_number(data, "uid", 0),
		.token = participant_number(data, "token", 0),
		.for_ms = -1,
		.lease_ms = -1,
		.data = record_get(data, "data"),
		.session = child->owner,
		.its_client = participant_number(data, "client", 0),
		.since = since,
	};

	if (since >= 0 && written >= since) {
		p.for_ms = written - since;
		p.age_ms = now_ms > written ? now_ms - written : 0;
	}
	return p;
}

void participant_veil(struct participant *p, const struct client *c, struct slice lock)
{
	if (client_is_operator(c))
		return;
	p->znode = contender_shown(p->znode);
	if (client_may_look(c, lock, p->account))
		return;
	p->pid = 0;
	p->name = p->command = p->data = (struct slice){ 0 };
}

static void write_who(const struct participant *p, struct bytes *out)
{
	reply_pairs(out, "host", p->host, "client", p->client, "name", p->name);
	reply_pairs(out, "pid", p->pid, "uid", p->uid, "command", p->command, "mode", mode_word(p->mode));
}

void participant_write_holder(const struct participant *p, struct bytes *out, int version)
{
	resp_map(out, 14, version);
	write_who(p, out);
	reply_pairs(out, "depth", p->depth, "token", p->token);
	reply_pairs(out, "held_ms", p->for_ms, "age_ms", p->age_ms, "znode", p->znode);
	resp_bulk(out, SLICE("lease_ms"));
	if (p->lease_ms < 0)
		resp_nil(out, version);
	else
		resp_integer(out, p->lease_ms);
	reply_pairs(out, "data", p->data);
}

void participant_write_waiter(const struct participant *p, size_t position, struct bytes *out, int version)
{
	resp_map(out, p->count ? 11 : 10, version);
	write_who(p, out);
	reply_pairs(out, "waited_ms", p->for_ms, "position", position, "znode", p->znode);
	if (p->count)
		reply_pairs(out, "count", p->count);
}

void participant_write_leader(const struct participant *p, struct bytes *out, int version)
{
	resp_map(out, 10, version);
	reply_pairs(out, "host", p->host, "data", p->data, "token", p->token);
	reply_pairs(out, "client", p->client, "name", p->name, "pid", p->pid, "uid", p->uid, "command", p->command);
	reply_pairs(out, "held_ms", p->for_ms, "znode", p->znode);
}

/* By the name that it gave itself, as the command does by what it runs; else by its program. */
void participant_say(struct bytes *text, const struct participant *p)
{
	struct slice who = p->name.len ? p->name : p->command;

	if (p->here)
		bytes_text(text, "on this host");
	else if (p->host.len)
		bytes_format(text, "by host %s", p->host);
	else
		bytes_format(text, "by other software, as znode %s", p->znode);
	if (p->pid)
		bytes_format(text, ", pid %d (%s)", p->pid, who);
	else if (p->command.len) /* it says why there is no number */
		bytes_format(text, ", %s", p->command);
	if (p->for_ms >= 0)
		bytes_format(text, ", for %d ms", p->for_ms);
	if (p->age_ms)
		bytes_format(text, ", as of %d ms ago", p->age_ms);
}
