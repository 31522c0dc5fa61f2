/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The part of lookout.h that ZooKeeper is asked for. One question is open at a time. */
#pragma once

#include "client-lib/http/lookout.h"

bool lookout_is_watched(const struct lookout *l);
/* A second has begun: there are packets again. */
void lookout_far_second(struct lookout *l);
