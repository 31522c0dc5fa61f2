/* SPDX-License-Identifier: Apache-2.0 */
#include "broker_conf.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/conf/conf.h"
#include "base/log.h"
#include "base/rule.h"

/* The core does not write lines for grants that the log would leave out. */
static bool logs_grants(const struct conf *c)
{
	return c->log_level >= (c->log_grants ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG);
}

void broker_conf_change(struct broker_conf *b, const struct conf *c)
{
	struct broker_limits *l = &b->limits;

	b->linger_ns = c->linger_ms * CLOCK_NS_PER_MS;
	b->handoff_max = c->handoff_max;
	b->handoff_ns = c->handoff_ms * CLOCK_NS_PER_MS;
	b->try_ns = c->try_ms * CLOCK_NS_PER_MS;
	b->deadlock_detection = c->deadlock_detection;
	b->delegation = c->delegation;
	b->log_grants = logs_grants(c);
	b->log_grants_level = c->log_grants ? EFFECT_LEVEL_INFO : EFFECT_LEVEL_DEBUG;
	b->grant_min_ns = c->grant_min_ms * CLOCK_NS_PER_MS;
	b->stop_timeout_ns = c->stop_timeout_ms * CLOCK_NS_PER_MS;
	b->access = (struct access_rules){ .list = c->rules, .count = c->rule_count };
	for (size_t i = 0; i < c->rule_count; i++)
		b->access.verbs |= c->rules[i].verbs;
	l->clients = (size_t)c->clients;
	l->user_share = (unsigned int)c->user_share;
	l->by_unit = c->by_unit_uids;
	l->by_unit_count = c->by_unit_count;
	l->locks = (size_t)c->locks;
	l->requests_per_lock = (size_t)c->requests_per_lock;
	l->requests_per_client = (size_t)c->requests_per_client;
	l->requests = (size_t)c->requests;
	l->grants_per_client = (size_t)c->grants_per_client;
	l->grants = (size_t)c->grants;
	l->observers = (size_t)c->observers;
	l->new_names = (size_t)c->new_names;
	l->new_names_per_s = (size_t)c->new_names_per_s;
	l->lasting_directories = (size_t)c->lasting_directories;
	l->memory_bytes = (size_t)c->memory_bytes;
	l->events_per_client = (size_t)c->events_per_client;
	l->request_bytes = (size_t)c->request_bytes;
	l->request_args = (size_t)c->request_args;
	l->output_bytes = (size_t)c->output_bytes;
}

void broker_conf_fill(struct broker_conf *b, const struct conf *c, bool standalone)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*b = (struct broker_conf){
		.standalone = standalone,
		.root = c->root,
		.host = c->host,
		.version = LOCKBROKERD_VERSION,
		.started_s = now.tv_sec,
		.started_ms = (int)(now.tv_nsec / CLOCK_NS_PER_MS),
		.pid = (uint32_t)getpid(),
		.session_timeout_ns = c->session_timeout_ms * CLOCK_NS_PER_MS,
		.tick_ns = c->tick_ms * CLOCK_NS_PER_MS,
	};
	b->limits.session_path_bytes = (size_t)c->session_path_bytes;
	broker_conf_change(b, c);
}

static enum flavour flavour_of(const struct conf_prefix *prefix)
{
	switch ((enum conf_flavour)prefix->flavour) {
	case CONF_FLAVOUR_RW:
		return FLAVOUR_RW;
	case CONF_FLAVOUR_MUTEX:
		return FLAVOUR_MUTEX;
	case CONF_FLAVOUR_KAZOO:
		return FLAVOUR_KAZOO;
	}
	abort();
}

void broker_conf_prefixes(struct broker_conf *b, const struct conf *c, struct broker_prefix *prefixes)
{
	size_t i;

	for (i = 0; i < c->prefix_count; i++) {
		const struct conf_prefix *prefix = &c->prefixes[i];

		prefixes[i] = (struct broker_prefix){
			.prefix = prefix->prefix,
			.flavour = flavour_of(prefix),
			.path = prefix->path[0] ? prefix->path : NULL,
			.remove_idle_ns = prefix->remove_idle_s * CLOCK_NS_PER_S,
		};
	}
	b->prefixes = prefixes;
	b->prefix_count = c->prefix_count;
}
