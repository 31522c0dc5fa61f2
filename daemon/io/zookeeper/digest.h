/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ZooKeeper's ACLs name a user of the scheme "digest": by the user's name, a colon, and the SHA-1 hash of the whole
 * "user:password" in base64. (It is ZooKeeper's choice, and nothing else rests on it here.)
 */
#pragma once

#include <stddef.h>

enum {
	DIGEST_SHA1_CHARS = 28, /* in base64 */
};

/* Of "user:password". `size`: at least the length of the user's name, a colon, DIGEST_SHA1_CHARS, and the end. */
void digest_id(const char *secret, char *ret, size_t size);
