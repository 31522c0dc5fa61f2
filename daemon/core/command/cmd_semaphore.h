/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/hosts/query.h"

/* Answers of LIMIT_GET and LIMIT_SET. */
void permits_limit_answered(struct query *q, const struct operation *op, const struct event *event);
