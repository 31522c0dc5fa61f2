/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A reply as the library itself sees it: the first of its values, which the others follow. */
#pragma once

#include "protocol/resp.h"

struct lb_reply {
	struct resp_value value;
};

/* The bytes of a value that has text; otherwise empty. */
struct slice reply_text(const struct resp_value *v);
