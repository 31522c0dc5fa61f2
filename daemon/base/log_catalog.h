/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events after which somebody has to act: each has an entry in the journal's catalogue (conf/lockbroker.catalog), which
 * `journalctl -x` shows with a warning or an error of that kind, and this MESSAGE_ID leads there. They stay as they are.
 */
#pragma once

#define LOG_CATALOG(X) \
	X(cannot_start, "44376ade27854ea5b08b4874e4990353") \
	X(conf_refused, "829e41b3c9994dccbc42099b468da77c") \
	X(hand_over_failed, "1e824e0fa3e64573b02944dcb3ea3790") \
	X(tokens_failed, "d4357c6273c24b969466900db6723ce9") \
	X(saved_failed, "772a0a61ed2847da933769046bc755ca") \
	X(memory_short, "2c3b33726c3749a096679287813e22c8") \
	X(worker_crashes, "342dfb60d561402490abc70b49adcc3f") \
	X(zookeeper_refuses, "02c73094d7a1474fb5b974f17ff37a3f") \
	X(zookeeper_restored, "ad48a314d59a461f9ea6d4ffdf320ffb") \
	X(zookeeper_away, "2676e1b68fc0486191f37a01dd69caad") \
	X(host_taken, "c9f60245e83b4387b84fa64b2026fc23") \
	X(znode_deleted, "f913b54d0cd0426fbc247256fe83af70") \
	X(session_lost, "a4270143953147918ab2b09374088197")
