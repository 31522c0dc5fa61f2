/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Those who ask over HTTP. A connection is answered once and closed; there are at most VISITORS_MAX, and none lives longer
 * than VISITORS_SECONDS, however slowly it sends or reads. The daemon is asked one question at a time, and its answer is for
 * all who ask meanwhile.
 *
 *     all places are taken          -> for one more, the connection goes whose request has been incomplete longest; if all
 *                                      are complete, the one that reads its answer for longest
 *     all wait for the daemon       -> further ones wait in the kernel's queue
 *     a network beyond this host    -> has at most VISITORS_OF_NETWORK_MAX: for one more, one of its own goes likewise
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

enum { VISITORS_MAX = 64, VISITORS_OF_NETWORK_MAX = 16, VISITORS_SECONDS = 15, VISITORS_HEADER_BYTES_MAX = 8192 };

struct visitors_conf {
	const char *socket;       /* the daemon's */
	const char *address;      /* that is listened on, as a Host header has it, without the port */
	bool any_address;         /* it is none in particular: any literal address may be asked for */
	bool loopback;            /* "localhost" may be asked for */
	const char *const *hosts; /* other names by which it may be asked, NULL-terminated */
};

struct visitors;

/* Serves on a socket that is bound and listens; both outlive it. */
struct visitors *visitors_new(struct event_base *base, int fd, const struct visitors_conf *conf);
