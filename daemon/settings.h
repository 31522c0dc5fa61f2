/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the configuration as text, with the values that count, for CONFIG GET. */
#pragma once

#include <stddef.h>

struct broker_setting;
struct conf;

struct settings {
	char *text; /* names and values, each with its zero */
	struct broker_setting *list;
	size_t count;
};

/* Also of one that was made before: that is freed. `clients`: limits.clients, of which the host may allow fewer. */
void settings_make(struct settings *s, const struct conf *conf, size_t clients);
void settings_free(struct settings *s);
