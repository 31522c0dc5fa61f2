/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the keys of the configuration: the code that parses, checks, prints and shows them uses it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum conf_type {
	CONF_NUMBER,
	CONF_OCTAL,
	CONF_YES, /* yes or no, which is 1 or 0 */
	CONF_AUTO, /* the same, or auto, which is CONF_AUTO_AUTO */
	CONF_LEVEL,
	CONF_FLAVOUR,
	CONF_PATH,
	CONF_FILE,
	CONF_GROUP,
	CONF_SERVERS,
	CONF_USERS, /* names or numbers, separated by commas; as CONF_SERVERS, it continues in indented lines */
	CONF_ROOT,
	CONF_ZNODE, /* like ROOT, or empty */
	CONF_HOST,
};

enum { CONF_AUTO_AUTO = 2 };

struct conf_key {
	const char *section, *name;
	enum conf_type type;
	size_t offset, size; /* of its field, in struct conf or in struct broker_prefix */
	int64_t unit;        /* of a number: the value of 1 in the field; of ms, where the field has ns, 1,000,000 */
	const char *initial; /* the default, as it would stand in a file */
	int64_t min, max;    /* NUMBER, OCTAL */
	bool reloads;        /* it may change while the daemon runs (conf_file.h) */
	const char *why;     /* one line */
};

/* The tables, each ended by an entry without a name. */
const struct conf_key *conf_keys(void);
const struct conf_key *conf_prefix_keys(void);
