/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each process makes files in daemon.rundir before it serves. For the case that there is no room then, which must not end
 * the service when a process was killed, the one before it has left a spare of each: a file with all the room that the next
 * one needs, which nothing else can have.
 *
 *   <name>     | the file that counts
 *   <name>.new | one that is being made, or that a process left which was killed while it made it
 *   <name>.spare
 *   <name>.spare.spare | the next one, if a taken file does not come back as a spare: spare_leave(..., "<name>.spare", ...)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Makes <name>.new: zeros, with room for so many bytes, and at least so long. `may_take`: of its spare, if the file system
 * has no room. Returns its descriptor, or -errno; then there may be an incomplete one. `*ret_taken` may be NULL.
 */
int spare_open(int dir_fd, const char *name, mode_t mode, uint64_t bytes, bool may_take, bool *ret_taken);
/* Makes a file with that room, which has no name until spare_name() and goes with its descriptor. Returns it, or -errno. */
int spare_ahead(int dir_fd, mode_t mode, uint64_t bytes);
/* The file becomes <name>.new, with room for so many bytes at least. 0 or -errno. */
int spare_name(int dir_fd, const char *name, int fd, mode_t mode, uint64_t bytes);
/*
 * <name>.new is complete: it gets its name. The file that had the name becomes the spare, if the spare was taken. 0 or
 * -errno.
 */
int spare_publish(int dir_fd, const char *name, bool taken);
/* Leaves a spare of that size at least. 0 or -errno; then it may be smaller, or there may be none. */
int spare_leave(int dir_fd, const char *name, uint64_t bytes);
/* Takes at most `piece` bytes off a spare that has more than `bytes`. False: it has not, or that cannot be. */
bool spare_cut(int dir_fd, const char *name, uint64_t bytes, uint64_t piece);
