/* SPDX-License-Identifier: Apache-2.0 */
/* The usual start: nobody hands anything over; the state of an earlier daemon is read from its files. */
#pragma once

struct conf_source;
struct daemon;

/* Serves until the daemon stops, or another process serves. The exit status. */
int start(struct daemon *d, const struct conf_source *source);
