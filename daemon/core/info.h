/* What INFO and the commands that list things show. */
#pragma once

#include "protocol/bytes.h"

struct broker;
struct client;

/* INFO's text: the sections named, all when none is. */
void info_write(struct broker *b, struct bytes *out, size_t count, const struct slice *sections);
/* HOLDERS, QUEUE, LOCKS and CLIENT LIST. */
void info_holders(struct client *c, struct slice name);
void info_queue(struct client *c, struct slice name);
void info_locks(struct client *c, const struct slice *pattern);
void info_clients(struct client *c);
