/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the configuration. Beside FILE, the directory FILE.d may have drop-ins: NN-NAME.conf, two digits first, read in
 * the order of their bytes after FILE. A key of a later file takes the place of one of an earlier; sections of prefixes add
 * up. Each file is read to its end whatever is wrong with it, so that all errors are told at once.
 *
 * - FILE and its drop-ins have to belong to root or the daemon's user, and nobody else may be able to write to them, nor to
 *   FILE.d: they say who may do what. Of FILE that holds if it is a regular file.
 * - In FILE.d, what is hidden and what does not end with .conf (an editor's backup, a README) is none of ours. What ends so
 *   but has no digits is an error, because its author expects that it counts.
 */
#pragma once

#include <stdbool.h>

#include "io/conf/conf.h"

enum {
	CONF_FILE_BYTES_MAX = 1048576, /* of one file */
};

/* One file. 0, or -errno and a line for each error appended to `error`. */
int conf_read(struct conf *conf, const char *file, char error[CONF_ERROR_MAX]);

/*
 * Where the configuration comes from, and how another one takes the place of that in use while the daemon runs. A key
 * either may change (conf_key.reloads), or keeps its value until the daemon is started again.
 */

/* What a command line says of it. */
struct conf_source {
	const char *file, *default_file; /* `file` NULL: the default one, if it exists; either with its drop-ins */
	char *const *overrides; /* after the file, in order */
	int override_count;
	bool standalone;
	bool kept; /* the file is what conf_keep() wrote */
};

/*
 * 0, or -errno with a line in `error` for each error: then there is nothing to free. Values are checked against each other
 * once each of them is right. -EAGAIN: it may be right, but users or groups that it names cannot be looked up now. May be
 * called in any thread.
 */
int conf_load(struct conf *ret, const struct conf_source *source, char error[CONF_ERROR_MAX]);

/* A sentence about a key that differs; `waits`: for a restart. */
typedef void conf_tell(void *arg, bool waits, const char *sentence);

/*
 * `conf` gets the values of `read` for the keys that may change, and each key that differs is told. 0; or -errno with a
 * sentence if they do not fit to those that stay: then nothing changes, and nothing is told. Strings, other rules of access
 * and numbers of users go over to `conf`, and those that counted before to `read`.
 */
int conf_take(struct conf *conf, struct conf *read, bool standalone, conf_tell *tell, void *arg,
	      char error[CONF_ERROR_MAX]);
