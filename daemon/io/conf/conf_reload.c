/* SPDX-License-Identifier: Apache-2.0 */
#include "io/conf/conf_reload.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rule_names.h"
#include "io/conf/conf_access.h"
#include "io/conf/conf_file.h"
#include "io/conf/conf_section.h"
#include "io/conf/conf_users.h"
#include "io/conf/conf_value.h"

static int keep_first(int rc, int next)
{
	return rc < 0 ? rc : next;
}

static int resolve(struct conf *conf, char error[CONF_ERROR_MAX])
{
	char where[CONF_WHERE_MAX];
	int rc = conf_access_resolve(conf, error);

	return rule_worse(rc, conf_users_resolve(conf, conf_section_where(conf, "limits", "by_unit", true, where), error));
}

int conf_load(struct conf *ret, const struct conf_source *source, char error[CONF_ERROR_MAX])
{
	const char *file = source->file ? source->file : source->default_file;
	int rc = 0, i;

	error[0] = '\0';
	conf_init(ret);
	ret->kept = source->kept;
	if (source->file || access(file, F_OK) == 0)
		rc = keep_first(rc, conf_read(ret, file, error));
	rc = keep_first(rc, conf_read_drop_ins(ret, file, error));
	for (i = 0; i < source->override_count; i++)
		rc = keep_first(rc, conf_override(ret, source->overrides[i], error));
	/* What does not fit together may be only what stands for a value that is wrong. */
	if (rc == 0)
		rc = conf_finish(ret, source->standalone, error);
	if (rc == 0)
		rc = resolve(ret, error);
	if (rc < 0)
		conf_free(ret);
	return rc;
}

/* Whoever is told, with the sentence that is being made. */
struct telling {
	conf_tell *tell;
	void *arg;
	char *text;
	size_t size;
	FILE *out;
};

static FILE *telling_begin(struct telling *t)
{
	t->out = open_memstream(&t->text, &t->size);
	if (!t->out)
		abort();
	return t->out;
}

static void telling_end(struct telling *t, bool waits)
{
	fclose(t->out);
	t->tell(t->arg, waits, t->text);
	free(t->text);
}

static bool same(const struct conf_key *key, const void *a, const void *b)
{
	if (conf_value_is_number(key))
		return conf_value_number(key, a) == conf_value_number(key, b);
	return strcmp(*conf_value_text(key, a), *conf_value_text(key, b)) == 0;
}

static void print_value(const struct conf_key *key, const void *base, FILE *out)
{
	if (conf_value_is_number(key))
		conf_value_print(key, base, out);
	else
		fputs(**conf_value_text(key, base) ? *conf_value_text(key, base) : "empty", out);
}

/* `prefix` NULL: of the keys outside of such sections. */
static void tell_difference(struct telling *t, const char *prefix, const struct conf_key *key, const void *before,
			    const void *now)
{
	FILE *out = telling_begin(t);

	fprintf(out, "%s%s%s.%s = ", key->section, prefix ? ":" : "", prefix ? prefix : "", key->name);
	print_value(key, now, out);
	fputs(key->reloads ? ", before " : " needs a restart; until then it is ", out);
	print_value(key, before, out);
	telling_end(t, !key->reloads);
}

static const struct broker_prefix *find(const struct conf *conf, const char *prefix)
{
	size_t i;

	for (i = 0; i < conf->broker.prefix_count; i++)
		if (strcmp(conf->broker.prefixes[i].prefix, prefix) == 0)
			return &conf->broker.prefixes[i];
	return NULL;
}

static void tell_alone(struct telling *t, const struct broker_prefix *p, const char *what)
{
	fprintf(telling_begin(t), "[prefix:%s] is %s, which needs a restart", p->prefix, what);
	telling_end(t, true);
}

static void tell_prefixes(struct telling *t, const struct conf *before, const struct conf *now)
{
	const struct broker_prefix *old;
	const struct conf_key *key;
	size_t i;

	for (i = 0; i < now->broker.prefix_count; i++) {
		old = find(before, now->broker.prefixes[i].prefix);
		if (!old)
			tell_alone(t, &now->broker.prefixes[i], "new");
		for (key = conf_prefix_keys(); old && key->name; key++) {
			assert(!key->reloads);
			if (!same(key, old, &now->broker.prefixes[i]))
				tell_difference(t, old->prefix, key, old, &now->broker.prefixes[i]);
		}
	}
	for (i = 0; i < before->broker.prefix_count; i++)
		if (!find(now, before->broker.prefixes[i].prefix))
			tell_alone(t, &before->broker.prefixes[i], "not there any longer");
}

/* The values of `from` for the keys that may change, with its strings. */
static void take_values(struct conf *to, const struct conf *from)
{
	const struct conf_key *key;

	for (key = conf_keys(); key->name; key++) {
		if (key->reloads && conf_value_is_number(key))
			conf_value_set_number(key, to, conf_value_number(key, from));
		else if (key->reloads)
			*conf_value_text(key, to) = *conf_value_text(key, from);
	}
}

/* Behind take_values(), two have the strings of `read`: `read` gets those of before, and frees them. */
static void give_texts(struct conf *read, const struct conf *before)
{
	const struct conf_key *key;

	for (key = conf_keys(); key->name; key++)
		if (key->reloads && !conf_value_is_number(key))
			*conf_value_text(key, read) = *conf_value_text(key, before);
}

/* Other rules count at once: what is held stays, and what is asked for goes by them. */
static void take_rules(struct telling *t, struct conf *next, struct conf *read)
{
	struct access_rules before = next->broker.access;

	if (conf_access_same(next, read))
		return;
	next->broker.access = read->broker.access;
	read->broker.access = before;
	fprintf(telling_begin(t), "access.rule: there are %zu rules, before %zu", next->broker.access.count, before.count);
	telling_end(t, false);
}

static void take_users(struct telling *t, const struct conf *before, struct conf *next, struct conf *read)
{
	struct broker_limits *now = &next->broker.limits, *other = &read->broker.limits;
	const uint32_t *uids = now->by_unit;
	size_t count = now->by_unit_count;

	if (conf_users_same(next, read))
		return;
	now->by_unit = other->by_unit;
	now->by_unit_count = other->by_unit_count;
	other->by_unit = uids;
	other->by_unit_count = count;
	fprintf(telling_begin(t), "limits.by_unit%s: this is for new connections, and for all after a restart or a hand-over",
		strcmp(before->by_unit, read->by_unit) == 0 ? " names users who have other numbers now" : "");
	telling_end(t, false);
}

int conf_take(struct conf *conf, struct conf *read, bool standalone, conf_tell *tell, void *arg,
	      char error[CONF_ERROR_MAX])
{
	struct conf next = *conf; /* the same strings */
	struct telling telling = { .tell = tell, .arg = arg };
	const struct conf_key *key;
	int rc;

	error[0] = '\0';
	take_values(&next, read);
	rc = conf_check(&next, standalone, error);
	if (rc < 0)
		return rc;
	for (key = conf_keys(); key->name; key++)
		if (!same(key, conf, read))
			tell_difference(&telling, NULL, key, conf, read);
	tell_prefixes(&telling, conf, read);
	take_users(&telling, conf, &next, read);
	give_texts(read, conf);
	take_rules(&telling, &next, read);
	*conf = next;
	return 0;
}
