/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standalone: the file <statedir>/life says that a process of this boot has given out pages of delegations, and has not
 * ended in order. Its line is the id of the boot and the id of that process's session page. A process that a client
 * shares such a page with may believe for LIFE_BELIEF_NS after the kill of the daemon that it holds its delegated
 * locks: for so long it does not look at its connection. The next daemon ends that at once if it finds the session
 * page. If somebody has removed the page from the run directory, the next daemon grants nothing for so long.
 *
 * No function takes long: the file is not synced, because it is of no use after another boot. All of them take NULL, which
 * means that there are other proofs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LIFE_BELIEF_NS INT64_C(1000000000)

struct life;

struct life_conf {
	const char *statedir, *boot_id;
	const char *page; /* the id of this process's session page, as text */
	const char *ended; /* of the earlier page that says what has become of it; "": there is none */
	bool goes_on; /* with the clients of the process before it */
};

/* 0 or -errno. */
int life_open(struct life **ret_life, const struct life_conf *conf, int64_t now_ns);
/* A hand-over: the session page and the contents of the file stay as they are. */
int life_continue(struct life **ret_life, const struct life_conf *conf);
/* Until then nothing may be granted; INT64_MIN: at once. */
int64_t life_wait_ns(const struct life *l);
/* Whether pages may be given out now. Before the first time that they may, the file says it. */
bool life_begins(struct life *l, int64_t now_ns);
/* Somebody has removed the file. */
bool life_is_missing(const struct life *l);
/* 0 or -errno. */
int life_again(struct life *l);
/* All clients are gone, and the session page says so. A wait that is not over is left to the next start. */
void life_over(const struct life *l, int64_t now_ns);
void life_free(struct life *l);
