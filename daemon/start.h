/* SPDX-License-Identifier: Apache-2.0 */
/* The usual start: nobody hands anything over; what an earlier daemon left is read from its files. */
#pragma once

struct conf_source;
struct daemon;

/* Serves until the daemon stops, or another process serves. The exit status. */
int start(struct daemon *d, const struct conf_source *source);
