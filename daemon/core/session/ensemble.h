/* SPDX-License-Identifier: Apache-2.0 */
/* One ZooKeeper ensemble as this host uses it: the session, the operations under way, and what is known of either. */
#pragma once

#include "core/port/env.h"
#include "core/session/former.h"
#include "core/session/health.h"
#include "core/session/operation.h"
#include "core/session/presence.h"
#include "core/session/session.h"

struct ensemble {
	struct env *env;
	struct session session;
	struct operations operations;
	struct duplicate duplicate;
	struct formers formers;
	struct health health;
	size_t path_bytes;    /* of all claims and letters */
	size_t watch_bytes;   /* of all watches that stand or are asked for: path and length */
	int64_t packet_bytes; /* the largest packet a server takes; 0: large enough, or not known */
};
