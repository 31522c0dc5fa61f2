/* SPDX-License-Identifier: Apache-2.0 */
/* The number and the password that continue a ZooKeeper session, or end it. */
#pragma once

#include <stdint.h>

enum { ZK_PASSWORD_BYTES = 16 };

struct zk_identity {
	int64_t session;
	char password[ZK_PASSWORD_BYTES];
};
