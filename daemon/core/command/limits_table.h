/* SPDX-License-Identifier: Apache-2.0 */
/* The limits that INFO shows, in its order: the last rows of metrics_table.h. */
#pragma once

#define LIMIT_ROWS(LINE) \
	LINE(LIMITS, ALWAYS, limit_clients, ONE, l->clients) LINE(LIMITS, ALWAYS, limit_user_share, ONE, l->user_share) \
	LINE(LIMITS, ALWAYS, limit_locks, ONE, l->locks) \
	LINE(LIMITS, ALWAYS, limit_requests_per_lock, ONE, l->requests_per_lock) \
	LINE(LIMITS, ALWAYS, limit_requests_per_client, ONE, l->requests_per_client) \
	LINE(LIMITS, ALWAYS, limit_requests, ONE, l->requests) \
	LINE(LIMITS, ALWAYS, limit_grants_per_client, ONE, l->grants_per_client) \
	LINE(LIMITS, ALWAYS, limit_grants, ONE, l->grants) \
	LINE(LIMITS, ALWAYS, limit_events_per_client, ONE, l->events_per_client) \
	LINE(LIMITS, ALWAYS, limit_request_bytes, BYTES, l->request_bytes) \
	LINE(LIMITS, ALWAYS, limit_request_args, ONE, l->request_args) \
	LINE(LIMITS, ALWAYS, limit_output_bytes, BYTES, l->output_bytes) \
	LINE(LIMITS, ALWAYS, limit_session_path_bytes, BYTES, budget_max(&zk->budget)) \
	LINE(LIMITS, ALWAYS, configured_session_path_bytes, BYTES, l->session_path_bytes)
