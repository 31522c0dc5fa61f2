/* SPDX-License-Identifier: Apache-2.0 */
/* The secret by which ZooKeeper knows this daemon: one line, "user:password", in a file that nobody else can read. */
#pragma once

enum { SECRET_BYTES_MAX = 1024 };

/*
 * Reads it without its newline. 0, or -errno: -EPERM if the file belongs to a user other than this one and root, or if
 * others may read or write it; -EBADMSG if it is no such line.
 */
int secret_read(const char *path, char secret[SECRET_BYTES_MAX]);
