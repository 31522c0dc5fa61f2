/* SPDX-License-Identifier: Apache-2.0 */
/* What a query about a semaphore came to: the replies of HOLDERS, QUEUE and WHY. */
#pragma once

struct query;

void query_permits_reply(struct query *q);
