/* Requests of clients: words in, one reply each, now or later. */
#pragma once

#include "core/event.h"
#include "protocol/commands.h"

struct client;
struct bytes;
struct broker;

void command_handle(struct client *c, size_t argc, const struct slice *argv);
/* Redis shows the names of commands in lower case. */
void command_word(struct bytes *out, enum command command);
/* INFO's text: the sections named, all when none is. */
void info_write(struct broker *b, struct bytes *out, size_t count, const struct slice *sections);
/* HOLDERS, QUEUE, LOCKS and CLIENT LIST. */
void info_holders(struct client *c, struct slice name);
void info_queue(struct client *c, struct slice name);
void info_locks(struct client *c, const struct slice *pattern);
void info_clients(struct client *c);
