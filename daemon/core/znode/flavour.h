/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prefixes of the configuration decide where a lock lives in ZooKeeper and how its contenders are named: the
 * longest prefix of the lock's name counts. A lock of a prefix with a path lives at
 * <path>/<rest of the name, encoded>, any other at <root>/<name, encoded>.
 *
 *   flavour | exclusive             | shared                | as
 *   rw      | _c_<uuid>-__WRIT__N   | _c_<uuid>-__READ__N   | Curator's InterProcessReadWriteLock
 *   mutex   | _c_<uuid>-lock-N      | as exclusive          | Curator's InterProcessMutex, go-zookeeper's Lock
 *   kazoo   | <hex>__lock__N        | <hex>__rlock__N       | kazoo's WriteLock (and Lock), ReadLock
 */
#pragma once

#include <stdbool.h>

#include "core/port/conf.h"
#include "core/znode/kind.h"
#include "core/znode/mode.h"
#include "protocol/bytes.h"
#include "protocol/slice.h"

/* The word for it in the configuration and in a directory's data. */
const char *flavour_word(enum flavour flavour);
/* The text that follows the uuid in the name of a contender of ours. */
const char *flavour_tag(enum flavour flavour, enum mode mode);
/* The mode of the claim that serves a request: `mutex` knows no readers between hosts. */
enum mode flavour_claim_mode(enum flavour flavour, enum mode wanted);
/* The lock's flavour; appends the path of its directory. */
enum flavour flavour_place(const struct broker_conf *conf, struct slice name, struct bytes *path);
/* How long its directory may be idle before this host removes it; 0: for ever. */
int64_t flavour_remove_idle_ns(const struct broker_conf *conf, struct slice name);
/* False when the name is a prefix with a path and nothing else: that path is no lock's directory. */
bool flavour_has_place(const struct broker_conf *conf, struct slice name);
/* A directory with such data was made for that kind and flavour, or by software that does not say. */
bool flavour_fits(enum kind kind, enum flavour flavour, struct slice data);
/* Why a directory with these data is not of that kind and flavour. */
void flavour_say_mismatch(struct bytes *text, enum kind kind, enum flavour flavour, struct slice data);
