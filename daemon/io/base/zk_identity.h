/* SPDX-License-Identifier: Apache-2.0 */
/* What it takes to continue a ZooKeeper session, or to end it. */
#pragma once

#include <stdint.h>

enum { ZK_PASSWORD_BYTES = 16 };

struct zk_identity {
	int64_t session;
	char password[ZK_PASSWORD_BYTES];
};
