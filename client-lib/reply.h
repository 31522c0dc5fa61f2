/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the library's own files know of a reply: it is the first of its values, and the others follow it. */
#pragma once

#include "protocol/resp.h"

struct lb_reply {
	struct resp_value value;
};

/* The bytes of a value that has any, else empty. */
struct slice reply_text(const struct resp_value *v);
