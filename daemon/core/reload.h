/* SPDX-License-Identifier: Apache-2.0 */
/* EVENT_CONF: another configuration from now on, or none because it has an error; every RELOAD that waits is answered. */
#pragma once

struct broker;
struct event;

void reload(struct broker *b, const struct event *event);
