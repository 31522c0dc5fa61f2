/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/port/conf.h"
#include "io/conf/conf.h"
#include "io/conf/conf_value.h"

static void add(FILE *out, const char *prefix, const struct conf_key *key, const void *base)
{
	fprintf(out, "%s%s%s.%s%c", key->section, prefix ? ":" : "", prefix ? prefix : "", key->name, '\0');
	/* A file has a long list of servers in several lines. */
	if (conf_value_is_number(key))
		conf_value_print(key, base, out);
	else
		fputs(*conf_value_text(key, base), out);
	fputc('\0', out);
}

static size_t write_all(FILE *out, const struct conf *conf)
{
	const struct conf_key *key;
	size_t count = 0;

	for (key = conf_keys(); key->name; key++, count++)
		add(out, NULL, key, conf);
	for (size_t i = 0; i < conf->broker.prefix_count; i++)
		for (key = conf_prefix_keys(); key->name; key++, count++)
			add(out, conf->broker.prefixes[i].prefix, key, &conf->broker.prefixes[i]);
	return count;
}

void settings_make(struct settings *s, const struct conf *conf, size_t clients)
{
	struct conf shown = *conf; /* the same strings */
	FILE *out;
	size_t size;
	char *next;

	settings_free(s);
	shown.broker.limits.clients = clients;
	out = open_memstream(&s->text, &size);
	if (!out)
		abort();
	s->count = write_all(out, &shown);
	if (fclose(out) != 0)
		abort();
	s->list = mem_new((s->count + 1) * sizeof(*s->list));
	next = s->text;
	for (size_t i = 0; i < s->count; i++) {
		s->list[i].name = next;
		next += strlen(next) + 1;
		s->list[i].value = next;
		next += strlen(next) + 1;
	}
}

void settings_free(struct settings *s)
{
	free(s->text);
	mem_free(s->list);
	*s = (struct settings){ 0 };
}
