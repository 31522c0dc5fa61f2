/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * /metrics and /healthz: numbers of the daemon, and neither a name of a lock nor anything else that clients have
 * written. The daemon is asked one question at a time, and its answer is for all who ask meanwhile.
 */
#pragma once

#include "client-lib/http/visitors.h"

struct metrics;

/* Fills in what is missing in the configuration. All of it, and the path of the daemon's socket, outlives it. */
struct metrics *metrics_new(struct event_base *base, int fd, const char *socket, struct visitors_conf *conf);
