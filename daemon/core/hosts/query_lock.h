/* SPDX-License-Identifier: Apache-2.0 */
/* What a query came to: the replies of HOLDERS, QUEUE, WHY, LEADER and HOSTS. */
#pragma once

struct query;

void query_reply(struct query *q);
