/* SPDX-License-Identifier: Apache-2.0 */
/* The secret ZooKeeper knows this daemon by: one line, "user:password", in a file that nobody else can read. */
#pragma once

enum { SECRET_BYTES_MAX = 1024 };

/*
 * Reads it without its newline. 0, or -errno: -EPERM when the file belongs to somebody else than this user or root,
 * or others may read or write it; -EBADMSG when it is no such line.
 */
int secret_read(const char *path, char secret[SECRET_BYTES_MAX]);
