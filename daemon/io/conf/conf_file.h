/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the configuration. Beside FILE, the directory FILE.d may have drop-ins: NN-NAME.conf, two digits first, read
 * in the order of their bytes after FILE. A key of a later file takes the place of one of an earlier; sections of
 * prefixes add up. Each file is read to its end whatever is wrong with it, so that all errors are reported at once.
 *
 * - FILE and its drop-ins have to belong to root or the daemon's user, and nobody else may be able to write to them,
 *   nor to FILE.d: they give permissions. Of FILE that holds if it is a regular file.
 * - In FILE.d, files that are hidden or do not end with .conf (an editor's backup, a README) are ignored. A file that
 *   ends with .conf but has no digits is an error, because its author expects that it counts.
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

/* The part of a command line about it. */
struct conf_source {
	const char *file, *default_file; /* `file` NULL: the default one, if it exists; either with its drop-ins */
	char *const *overrides; /* after the file, in order */
	int override_count;
	bool standalone;
	bool kept; /* conf_keep() wrote the file */
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
 * `conf` gets the values of `read` for the keys that may change, and each key that differs is reported. 0; or -errno
 * with a sentence if these values do not fit to the values that stay: then nothing changes, and nothing is reported.
 * Strings, other rules of access and numbers of users go over to `conf`, and the former ones to `read`.
 */
int conf_take(struct conf *conf, struct conf *read, bool standalone, conf_tell *tell, void *arg,
	      char error[CONF_ERROR_MAX]);
