/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/participant.h"

#include "core/client/reply.h"
#include "core/hosts/query.h"
#include "core/znode/record.h"
#include "core/state.h"
#include "protocol/number.h"

static const int64_t NS_PER_MS = 1000000;

static struct slice znode_of(const struct lock *lock)
{
	return lock->directory.claim && lock->directory.claim->named ? slice_of(lock->directory.claim->name)
								     : (struct slice){ 0 };
}

struct participant participant_here(const struct lock *lock, const struct client *c, enum mode mode, int64_t since_ns)
{
	const struct hosts *h = &lock->locks->broker->hosts;
	struct slice command;
	uint32_t pid = client_shown(c, &command);

	return (struct participant){
		.here = true,
		.host = slice_of(h->env->conf->host),
		.name = bytes_view(&c->name),
		.command = command,
		.znode = znode_of(lock),
		.mode = mode,
		.client = (int64_t)c->id,
		.pid = pid,
		.uid = c->uid,
		.for_ms = (h->env->now_ns - since_ns) / NS_PER_MS,
		.lease_ms = -1,
	};
}

int64_t participant_number(struct slice data, const char *key, int64_t otherwise)
{
	int64_t value;

	return number_parse(record_get(data, key), &value) ? value : otherwise;
}

/* What a znode's data tell of its holder; the clocks of two hosts may differ. */
struct participant participant_elsewhere(const struct query *q, const struct query_child *child)
{
	const struct hosts *h = &q->client->locks->broker->hosts;
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
	};

	if (since >= 0 && written >= since) {
		p.for_ms = written - since;
		p.age_ms = now_ms > written ? now_ms - written : 0;
	}
	return p;
}

/* What is told of whoever it is. */
static void write_who(const struct participant *p, struct bytes *out)
{
	reply_text(out, SLICE("host"), p->host);
	reply_int(out, SLICE("client"), p->client);
	reply_text(out, SLICE("name"), p->name);
	reply_int(out, SLICE("pid"), p->pid);
	reply_int(out, SLICE("uid"), p->uid);
	reply_text(out, SLICE("command"), p->command);
	reply_text(out, SLICE("mode"), slice_of(mode_word(p->mode)));
}

void participant_write_holder(const struct participant *p, struct client *to)
{
	struct bytes *out = reply_out(to);

	resp_map(out, 14, to->version);
	write_who(p, out);
	reply_int(out, SLICE("depth"), p->depth);
	reply_int(out, SLICE("token"), p->token);
	reply_int(out, SLICE("held_ms"), p->for_ms);
	reply_int(out, SLICE("age_ms"), p->age_ms);
	reply_text(out, SLICE("znode"), p->znode);
	resp_bulk(out, SLICE("lease_ms"));
	if (p->lease_ms < 0)
		resp_nil(out, to->version);
	else
		resp_integer(out, p->lease_ms);
	reply_text(out, SLICE("data"), p->data);
}

void participant_write_waiter(const struct participant *p, size_t position, struct client *to)
{
	struct bytes *out = reply_out(to);

	resp_map(out, p->count ? 11 : 10, to->version);
	write_who(p, out);
	reply_int(out, SLICE("waited_ms"), p->for_ms);
	reply_int(out, SLICE("position"), (int64_t)position);
	reply_text(out, SLICE("znode"), p->znode);
	if (p->count)
		reply_int(out, SLICE("count"), p->count);
}

void participant_say(struct bytes *text, const struct participant *p)
{
	if (p->here) {
		bytes_text(text, "on this host");
	} else if (p->host.len) {
		bytes_text(text, "by host ");
		bytes_slice(text, p->host);
	} else {
		bytes_text(text, "by other software, as znode ");
		bytes_slice(text, p->znode);
	}
	if (p->pid) {
		bytes_text(text, ", pid ");
		bytes_int(text, p->pid);
		bytes_text(text, " (");
		bytes_slice(text, p->command);
		bytes_text(text, ")");
	} else if (p->command.len) {
		bytes_text(text, ", ");
		bytes_slice(text, p->command);
	}
	if (p->for_ms >= 0) {
		bytes_text(text, ", for ");
		bytes_int(text, p->for_ms);
		bytes_text(text, " ms");
	}
	if (p->age_ms) {
		bytes_text(text, ", as of ");
		bytes_int(text, p->age_ms);
		bytes_text(text, " ms ago");
	}
}
