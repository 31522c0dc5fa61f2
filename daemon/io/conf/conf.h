/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration. One table of keys (conf_key) drives parsing, defaults, ranges, --print-config and the sample file;
 * a second table drives the sections [prefix:...], of which there may be many. The strings of keys, the prefixes, rules
 * and numbers of users belong to the struct; the members without a key (broker.version, ...) are the daemon's.
 * Functions return 0, or -errno and append to `error`, which the caller has made empty, a line for each error: the
 * place (file and line, or the option), the key, the value, and the allowed values. Nothing is logged here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/port/conf.h"
#include "io/conf/conf_key.h"

#define CONF_KEYS_MAX 48
#define CONF_PREFIX_KEYS_MAX 3
#define CONF_PREFIXES_MAX 64
#define CONF_RULES_MAX 256
#define CONF_USERS_MAX 64 /* of limits.by_unit */
/* inih accepts 49 bytes as the name of a section; "prefix:" is subtracted. */
#define CONF_PREFIX_BYTES_MAX 42
#define CONF_ERROR_MAX 16384   /* all errors of a configuration; with more, the last line says so */
#define CONF_SENTENCE_MAX 1024 /* one of them */
#define CONF_FILES_MAX 101     /* the file and its drop-ins */

/* Where a key was set: line 0: not by a file. */
struct conf_origin {
	size_t file; /* in conf.files */
	int line;
};

struct conf {
	/*
	 * The broker's configuration, with all that it points to: rules in the order of files and lines, prefixes in the
	 * order in which they are first named, each once. The daemon fills in the members without a key, which stay when
	 * the file is read again.
	 */
	struct broker_conf broker;
	/* Further keys, which the daemon uses. [daemon] */
	const char *socket, *socket_group, *operator_socket, *operator_group, *rundir, *statedir;
	int64_t socket_mode, keeper, core;
	/* [log] */
	int64_t ledger_file_bytes, log_grants, grants_mb_per_day;
	/* [zookeeper] */
	const char *servers, *auth_file;
	/* [limits] */
	const char *by_unit; /* broker.limits.by_unit has the numbers of these (conf_access.h) */
	bool kept; /* the earlier process has written it, with the numbers that it had found for names */
	char **files; /* that it was read from, in order */
	size_t file_count;
	bool outdated; /* it sets a key of former versions, which has no effect: conf_outdated is to be logged */
	/* Private: the place that has set a key, and a key of each prefix. */
	struct conf_origin origins[CONF_KEYS_MAX], (*prefix_origins)[CONF_PREFIX_KEYS_MAX];
};

/* The sentence about the keys of former versions that are still read; it names the keys that took their place. */
extern const char conf_outdated[];

/* All keys at their defaults; conf_free() also accepts one that is only zeroed. */
void conf_init(struct conf *conf);
void conf_free(struct conf *conf);
/*
 * `text` is SECTION.KEY=VALUE; KEY is the text between the last dot before the first equals sign and that sign. It
 * overrides the file, and the last of several counts. It makes the section of a new prefix.
 */
int conf_override(struct conf *conf, const char *text, char error[CONF_ERROR_MAX]);
/* The first one of the errors, and how many more there are. */
void conf_error_line(const char *error, char line[CONF_SENTENCE_MAX]);
/* Checks the values against each other; conf_finish() does that, too, and names the lines that have set them. */
int conf_check(struct conf *conf, bool standalone, char error[CONF_ERROR_MAX]);
/*
 * Checks the values against each other, and fills in an empty host. To be called once, after all values are set. The root
 * and the paths of the prefixes must not be inside one another: one directory would be two locks.
 */
int conf_finish(struct conf *conf, bool standalone, char error[CONF_ERROR_MAX]);
/* Prints a valid file. */
void conf_print(const struct conf *conf, FILE *out);
/* For the process that goes on after a kill of this process: conf_source.kept. */
void conf_keep(const struct conf *conf, FILE *out);
