/*
 * The configuration. One table of keys (conf_key) drives parsing, defaults, ranges, --print-config and the sample
 * file. Strings belong to the struct. Functions return 0, or -errno with a sentence in `error`: where (file and
 * line, or the option), which key, the value, what is allowed. Nothing is logged here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CONF_KEYS_MAX 40
#define CONF_ERROR_MAX 1024

struct conf {
	/* [daemon] */
	char *socket, *socket_group, *rundir, *statedir;
	int64_t socket_mode, log_level, stop_timeout_ms;
	/* [zookeeper] */
	char *servers, *root, *host, *auth_file;
	int64_t session_timeout_ms, tick_ms;
	/* [locks] */
	int64_t linger_ms, handoff_max, handoff_ms, grant_min_ms;
	/* [limits] */
	int64_t clients, clients_per_uid, locks, requests_per_lock, requests_per_client, requests_per_uid;
	int64_t grants_per_client, grants_per_uid;
	int64_t events_per_client, request_bytes, request_args, output_bytes, session_path_bytes;
	/* Private: the line that set a key, 0 = not set by the file. */
	int lines[CONF_KEYS_MAX];
};

enum conf_type { CONF_NUMBER, CONF_OCTAL, CONF_LEVEL, CONF_PATH, CONF_FILE, CONF_GROUP, CONF_SERVERS, CONF_ROOT, CONF_HOST };

struct conf_key {
	const char *section, *name;
	enum conf_type type;
	size_t offset;
	const char *initial; /* the default, as it would stand in a file */
	int64_t min, max;    /* NUMBER, OCTAL */
	const char *why;     /* one line */
};

/* The table, ended by an entry without a name. */
const struct conf_key *conf_keys(void);

/* All keys at their defaults. */
void conf_init(struct conf *conf);
/* Takes one that was only zeroed, too. */
void conf_free(struct conf *conf);
int conf_read(struct conf *conf, const char *file, char error[CONF_ERROR_MAX]);
/* `text` is SECTION.KEY=VALUE. Wins over the file; the last one wins among several. */
int conf_override(struct conf *conf, const char *text, char error[CONF_ERROR_MAX]);
/* The numbers against each other, and an empty host filled in. To be called once, after all values are set. */
int conf_finish(struct conf *conf, bool standalone, char error[CONF_ERROR_MAX]);
/* A valid file. */
void conf_print(const struct conf *conf, FILE *out);
