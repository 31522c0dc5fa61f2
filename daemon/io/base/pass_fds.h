/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

struct cmsghdr;
struct msghdr;

/*
 * These descriptors, one at least, go with the message (SCM_RIGHTS, see unix(7)). `room` has CMSG_SPACE(count * sizeof(int))
 * bytes and stays as long as the message.
 */
void pass_fds(struct msghdr *message, struct cmsghdr *room, const int *fds, size_t count);
