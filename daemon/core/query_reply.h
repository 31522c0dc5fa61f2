/* What a query came to: the replies of HOLDERS, QUEUE, WHY and HOSTS. */
#pragma once

struct query;

void query_reply(struct query *q);
