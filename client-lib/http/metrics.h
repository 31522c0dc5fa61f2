/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * /metrics and /healthz: numbers of the daemon, and neither a name of a lock nor anything else that clients have
 * written. The daemon gets one question at a time; its answer goes to every visitor that asks before it comes.
 */
#pragma once

#include "client-lib/http/visitors.h"

struct metrics;

/* Sets the fields that are missing in the configuration. All of it, and the path of the daemon's socket, outlives it. */
struct metrics *metrics_new(struct event_base *base, int fd, const char *socket, struct visitors_conf *conf);
