/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The JSON of the page, as page.h describes it. Texts are written as `lockbroker --json` does (client-lib/cli/json.h). */
#pragma once

#include "client-lib/http/lookout.h"

enum json_show { JSON_ALL, JSON_WAITED, JSON_HERE, JSON_REMOTE };

struct json_query {
	enum lookout_order order;
	enum json_show show;
	struct slice text; /* in names */
	size_t offset, count;
};

/* Each returns a text that is to be freed by free(). */
char *json_error(const char *sentence);
char *json_text_new(struct slice text);
/* The first rows of HOLDERS, and of QUEUE, as arrays; `host`: the name of this host. */
char *json_holders(const struct lb_reply *rows, const char *host, int64_t now_ms);
char *json_queue(const struct lb_reply *rows, const char *host, int64_t now_ms);
char *json_overview(const struct lookout *l, size_t viewers, size_t viewers_max);
/* Each sighting that it shows keeps when that was. */
char *json_locks(const struct lookout *l, const struct json_query *q);
char *json_lock(const struct lookout *l, const struct lookout_opened *o);
