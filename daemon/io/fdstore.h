/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stop of the service that is followed by its start: this process freezes, gives everything to the service manager
 * (FDSTORE=1, see sd_notify(3)), and exits; the next one takes it from there (LISTEN_FDS). The manager keeps three
 * descriptors, which it drops when the service is stopped and not started again.
 *
 * If it does not keep them, this process goes on, and stops as it does without that.
 */
#pragma once

#include <stdbool.h>

struct handover;
struct keep;
struct notify;
struct parcel;

/* `conf_fd`: the configuration in use, when it is given to the manager; -1: none. */
struct keep *fdstore_new(const struct notify *notify, struct handover *handover, const int *conf_fd);
/* Takes NULL. */
void fdstore_free(struct keep *k);
/* It is done when the turn is settled. */
void fdstore_ask(struct keep *k);
bool fdstore_is_asked(const struct keep *k);
/* A signal to stop that comes before the turn is settled has to wait: true, and it comes again if nothing was kept. */
bool fdstore_delays(struct keep *k, int number);
/* When the turn is settled. True: everything is kept, and this process must do nothing but exit. */
bool fdstore_due(struct keep *k);

/*
 * A process that was killed while it left everything has left the locks of its files, too: they are free when the manager
 * keeps nothing any longer. That is waited for, up to two seconds.
 */
void fdstore_drop(const struct notify *notify);
/* The configuration that the earlier process used, as a descriptor that stays where it is; -1: none. */
int fdstore_conf(void);
/*
 * Takes the state that the earlier process left: once, so that an unusable state does not come back. To be called
 * before listen_passed(), which gets the other descriptors. False: nothing, or nothing that can be read, which is
 * logged.
 */
bool fdstore_take(const struct notify *notify, struct parcel *ret);
