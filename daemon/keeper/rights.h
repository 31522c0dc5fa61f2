/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper gives up. It needs no right at all: it moves descriptors, closes them, and sends signals to processes of
 * its own user. But the worker has its rights from it: under NoNewPrivileges=, which the unit sets, a program has at most
 * those that are permitted to the process which runs it. So they stay permitted there, and none is in effect: no system
 * call of the keeper succeeds that an ordinary process of its user could not make. Without it, root's programs have their
 * rights from the bounding set, and none is even permitted.
 *
 * For the same reason it keeps its user, and sets neither no_new_privs nor a seccomp filter: all of these would be the
 * worker's, too, for good.
 */
#pragma once

/* 0 or -errno. */
int rights_give_up(void);
