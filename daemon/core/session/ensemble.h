/* SPDX-License-Identifier: Apache-2.0 */
/* One ZooKeeper ensemble as this host uses it: the session, the operations under way, and the known facts about both. */
#pragma once

#include "core/port/env.h"
#include "core/session/budget.h"
#include "core/session/former.h"
#include "core/session/health.h"
#include "core/session/operation.h"
#include "core/session/past.h"
#include "core/session/presence.h"
#include "core/session/session.h"

struct ensemble {
	struct env *env;
	struct session session;
	struct operations operations;
	struct presence presence;
	struct past past;
	struct formers formers;
	struct health health;
	struct budget budget;
	unsigned int lacks; /* ZK_LACKS_*: of the latest server */
};
