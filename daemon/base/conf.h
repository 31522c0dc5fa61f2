/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration. One table of keys (conf_key) drives parsing, defaults, ranges, --print-config and the sample file; a
 * second table is that of a [prefix:...] section, of which there may be many. Strings belong to the struct. Functions
 * return 0, or -errno with a sentence in `error`: where (file and line, or the option), which key, the value, what is
 * allowed. Nothing is logged here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CONF_KEYS_MAX 40
#define CONF_PREFIX_KEYS_MAX 2
#define CONF_PREFIXES_MAX 64
/* inih accepts 49 bytes as the name of a section; "prefix:" is subtracted. */
#define CONF_PREFIX_BYTES_MAX 42
#define CONF_ERROR_MAX 1024

enum conf_flavour { CONF_FLAVOUR_RW, CONF_FLAVOUR_MUTEX, CONF_FLAVOUR_KAZOO };

/* [prefix:app/]: the locks whose names begin with app/. */
struct conf_prefix {
	char *prefix;
	int64_t flavour; /* enum conf_flavour */
	char *path;      /* "": below the root, like any other */
	/* Private, as in struct conf. */
	int lines[CONF_PREFIX_KEYS_MAX];
};

struct conf {
	/* [daemon] */
	char *socket, *socket_group, *operator_socket, *operator_group, *rundir, *statedir;
	int64_t socket_mode, log_level, stop_timeout_ms, keeper, core;
	/* [log] */
	int64_t log_grants;
	/* [zookeeper] */
	char *servers, *root, *host, *auth_file;
	int64_t session_timeout_ms, tick_ms;
	/* [locks] */
	int64_t linger_ms, handoff_max, handoff_ms, try_ms, grant_min_ms, deadlock_detection;
	/* [limits] */
	int64_t clients, clients_per_uid, locks, requests_per_lock, requests_per_client, requests_per_uid;
	int64_t grants_per_client, grants_per_uid;
	int64_t events_per_client, request_bytes, request_args, output_bytes, session_path_bytes;
	/* In the order in which they are first named; all prefixes differ. */
	struct conf_prefix *prefixes;
	size_t prefix_count;
	/* Private: the line that set a key, 0 = not set by the file. */
	int lines[CONF_KEYS_MAX];
};

enum conf_type {
	CONF_NUMBER,
	CONF_OCTAL,
	CONF_LEVEL,
	CONF_FLAVOUR,
	CONF_PATH,
	CONF_FILE,
	CONF_GROUP,
	CONF_SERVERS,
	CONF_ROOT,
	CONF_ZNODE, /* like ROOT, or empty */
	CONF_HOST,
};

struct conf_key {
	const char *section, *name;
	enum conf_type type;
	size_t offset;       /* in struct conf, or in struct conf_prefix */
	const char *initial; /* the default, as it would stand in a file */
	int64_t min, max;    /* NUMBER, OCTAL */
	const char *why;     /* one line */
	bool reloads;        /* it may change while the daemon runs (conf_reload.h) */
};

/* The tables, each ended by an entry without a name. */
const struct conf_key *conf_keys(void);
const struct conf_key *conf_prefix_keys(void);

/* All keys at their defaults. */
void conf_init(struct conf *conf);
/* Also accepts one that is only zeroed. */
void conf_free(struct conf *conf);
int conf_read(struct conf *conf, const char *file, char error[CONF_ERROR_MAX]);
/*
 * `text` is SECTION.KEY=VALUE; KEY is what follows the last dot before the first equals sign. It overrides the file,
 * and the last of several counts. It makes the section of a new prefix.
 */
int conf_override(struct conf *conf, const char *text, char error[CONF_ERROR_MAX]);
/* Checks the values against each other; conf_finish() does that, too. */
int conf_check(const struct conf *conf, bool standalone, char error[CONF_ERROR_MAX]);
/*
 * Checks the values against each other, and fills in an empty host. To be called once, after all values are set. The root
 * and the paths of the prefixes must not be inside one another: one directory would be two locks.
 */
int conf_finish(struct conf *conf, bool standalone, char error[CONF_ERROR_MAX]);
/* Prints a valid file. */
void conf_print(const struct conf *conf, FILE *out);
