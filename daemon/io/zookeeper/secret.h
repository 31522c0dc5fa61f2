/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The secrets by which ZooKeeper knows this daemon: lines of "user:password", in a file that nobody else can read. The
 * daemon authenticates by all of them, and gives the znodes that it makes to the first: so a fleet changes its password
 * in steps, each host using the old and the new password for a while. They are in memory that no core dump has, and
 * wiped at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "protocol/slice.h"

enum { SECRET_BYTES_MAX = 1024, SECRET_LINES_MAX = 8, SECRET_PATH_MAX = 4096 };

struct secret;

/*
 * The file that has it: `auth_file`; if that is "", the credential "zookeeper-auth" of the service manager
 * ($CREDENTIALS_DIRECTORY), if it gave one; otherwise "", and there is no secret.
 */
void secret_path(const char *auth_file, char ret[SECRET_PATH_MAX]);
/*
 * Reads it; *ret is NULL if there is none, or it cannot be read. 0, or -errno: -EPERM if the file belongs neither to
 * this user nor to root, or if others may read or write it; -EBADMSG if it has other lines, none, or too many. The
 * service manager may let this user's group read its own file.
 */
int secret_open(struct secret **ret, const char *auth_file);
/* The same of a descriptor that has secret_text(), for the process that goes on after a kill. It stays the caller's. */
int secret_read(struct secret **ret, int fd);
/* Takes NULL. */
void secret_close(struct secret *s);
struct slice secret_text(const struct secret *s); /* as the file had it */
size_t secret_lines(const struct secret *s);
/* "user:password" */
const char *secret_line(const struct secret *s, size_t at);
/* The owner of znodes that are made: the first one, as an ACL names it. */
const char *secret_owner(const struct secret *s);
/* A client that authenticates by this secret may use the znodes of that owner. `s` NULL: there is no secret. */
bool secret_is_of(const struct secret *s, struct slice owner);
/* NULL, too: no secret. */
bool secret_same(const struct secret *a, const struct secret *b);

/*
 * How ZooKeeper's ACLs name a user of the scheme "digest": by the user's name, a colon, and the SHA-1 hash of the whole
 * "user:password" in base64. (It is ZooKeeper's choice, and nothing else rests on it here.)
 */

/* Of "user:password". `size`: at least the length of the user's name, a colon, DIGEST_SHA1_CHARS, and the end. */
void digest_id(const char *secret, char *ret, size_t size);
