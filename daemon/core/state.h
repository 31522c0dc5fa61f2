/* SPDX-License-Identifier: Apache-2.0 */
/* The broker's state: the state of each floor, and its own fields. */
#pragma once

#include "core/broker.h"
#include "core/hosts/hosts.h"

struct broker {
	struct env env;
	struct ensemble ensemble;
	struct directories directories;
	struct locks locks;
	struct hosts hosts;
	bool started, stopped;
	bool refused; /* it stops because another daemon has its name */
	bool restored; /* at the first event it repeats its open requests to the adapter */
	struct timer stop_timer;
};
