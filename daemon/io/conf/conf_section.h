/* SPDX-License-Identifier: Apache-2.0 */
/* A section of the configuration, for whatever sets keys: a file, an option. */
#pragma once

#include <limits.h>

#include "io/conf/conf.h"

#define CONF_WHERE_MAX (PATH_MAX + 128) /* a file, a line and a key */

/* A section that exists, and where its values are. */
struct conf_section {
	const char *name;             /* as it was written */
	const char *group;            /* as its keys name it */
	const struct conf_key *table; /* has its keys, and perhaps others */
	void *base;
	struct conf_origin *origins; /* as the table */
};

/* Appends a line to `error`: `where`, a colon, the sentence. Returns -EINVAL. */
int conf_fail(char error[CONF_ERROR_MAX], const char *where, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool conf_section_find(struct conf *conf, const char *name, struct conf_section *ret);
/* Makes the section of a new prefix; any other section must be in the table. */
int conf_section_open(struct conf *conf, const char *name, struct conf_section *ret, const char *where,
		      char error[CONF_ERROR_MAX]);
/*
 * Where a key was set, and its name: the beginning of a sentence about its value. `located`: with file and line, if a
 * file has set it. The section exists and has the key.
 */
const char *conf_section_where(struct conf *conf, const char *name_of_section, const char *name, bool located,
			       char text[CONF_WHERE_MAX]);
/* NULL: there is none. */
const struct conf_key *conf_section_key(const struct conf_section *section, const char *name);
/* It was a key once, so that a file that has it is no error: notes that (conf.outdated). False: it never was one. */
bool conf_section_outdated(struct conf *conf, const struct conf_section *section, const char *name);
/*
 * For a user who looks for a TCP port: why there is none, as the rest of a sentence. Empty: the key is about something
 * else.
 */
const char *conf_section_no_tcp(const struct conf_section *section, const char *name, const char *value);
int conf_section_set(const struct conf_section *section, const struct conf_key *key, const char *value, const char *where,
		     char error[CONF_ERROR_MAX]);
