/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration. One table of keys (conf_key) drives parsing, defaults, ranges, --print-config and the sample file; a
 * second table is that of a [prefix:...] section, of which there may be many. Strings belong to the struct. Functions
 * return 0, or -errno and append to `error`, which the caller has made empty, a line for each error: where (file and line,
 * or the option), which key, the value, what is allowed. Nothing is logged here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

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

enum conf_flavour { CONF_FLAVOUR_RW, CONF_FLAVOUR_MUTEX, CONF_FLAVOUR_KAZOO };

/* Where a key was set: line 0: not by a file. */
struct conf_origin {
	size_t file; /* in conf.files */
	int line;
};

/* [prefix:app/]: the locks whose names begin with app/. */
struct conf_prefix {
	char *prefix;
	int64_t flavour, remove_idle_s; /* enum conf_flavour; */
	char *path;                     /* "": below the root, like any other */
	/* Private, as in struct conf. */
	struct conf_origin origins[CONF_PREFIX_KEYS_MAX];
};

struct rule;

struct conf {
	/* [daemon] */
	char *socket, *socket_group, *operator_socket, *operator_group, *rundir, *statedir;
	int64_t socket_mode, log_level, stop_timeout_ms, keeper, core;
	/* [log] */
	int64_t log_grants, recorder_bytes;
	/* [zookeeper] */
	char *servers, *root, *host, *auth_file;
	int64_t session_timeout_ms, tick_ms;
	/* [locks] */
	int64_t linger_ms, handoff_max, handoff_ms, try_ms, grant_min_ms, deadlock_detection, delegation;
	/* [limits] */
	int64_t clients, locks, requests, grants, observers, memory_bytes, user_share;
	int64_t new_names, new_names_per_s, lasting_directories, requests_per_lock, requests_per_client, grants_per_client;
	int64_t events_per_client, request_bytes, request_args, output_bytes, session_path_bytes;
	char *by_unit;
	/* In the order in which they are first named; all prefixes differ. */
	struct conf_prefix *prefixes;
	size_t prefix_count;
	/* [access]: in the order of files and lines (rule.h). */
	struct rule *rules;
	size_t rule_count;
	uint32_t *by_unit_uids; /* the numbers of those of `by_unit` (conf_users.h) */
	size_t by_unit_count;
	bool kept; /* the process before has written it: what it names is what it was there */
	char **files; /* that it was read from, in order */
	size_t file_count;
	bool outdated; /* it sets a key of former versions, which has no effect: conf_outdated is to be logged */
	/* Private: what has set a key. */
	struct conf_origin origins[CONF_KEYS_MAX];
};

/* The sentence about the keys of former versions that are still read; it names what took their place. */
extern const char conf_outdated[];

/* All keys at their defaults; conf_free() also accepts one that is only zeroed. */
void conf_init(struct conf *conf);
void conf_free(struct conf *conf);
/*
 * `text` is SECTION.KEY=VALUE; KEY is what follows the last dot before the first equals sign. It overrides the file,
 * and the last of several counts. It makes the section of a new prefix.
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
/* For the process that goes on after a kill of this one: conf_source.kept. */
void conf_keep(const struct conf *conf, FILE *out);
