/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of events of the log. Tools look for their words and for the keys of their fields: these stay as they are,
 * and lockbrokerd(8) lists them (tests/system/test_logs.py compares). A kind says how many of its lines pass at once, and in
 * how many milliseconds there is room for one more: of the daemon as a whole, or of each account that causes them.
 */
#pragma once

#include <stdbool.h>

#define LOG_EVENTS(X) \
	/* the process */ \
	X(serves, 20, 1000) /* socket= host= standalone= version= */ \
	X(taken_over, 20, 1000) /* connections= paused_us= version= */ \
	X(goes_on, 20, 1000) /* connections= ghosts= version= */ \
	X(cannot_start, 20, 1000) /* what= path= error= */ \
	X(cannot_use, 20, 1000) /* what= path= error= */ \
	X(start_waits, 20, 1000) /* what= pid= */ \
	X(removed, 20, 1000) /* path= error= */ \
	X(order, 20, 1000) /* order= signal= */ \
	X(signal_ignored, 5, 2000) /* signal= pid= uid= */ \
	X(stopped, 20, 1000) \
	X(descriptors, 20, 1000) /* limit= wanted= clients= pages= */ \
	X(conf_read, 20, 1000) /* changed= */ \
	X(conf_changed, 100, 100) /* waits= */ \
	X(conf_refused, 100, 100) /* error= */ \
	X(conf_outdated, 20, 1000) \
	X(rule_leaves, 20, 1000) \
	X(rule_passed, 20, 1000) \
	X(hand_over, 20, 1000) /* pid= */ \
	X(hand_over_failed, 20, 1000) /* error= */ \
	X(kept, 20, 1000) \
	X(not_kept, 20, 1000) /* what= error= */ \
	X(saved_failed, 5, 2000) /* path= error= */ \
	X(saved_unused, 20, 1000) /* error= */ \
	X(tokens_failed, 5, 2000) /* error= */ \
	X(memory_short, 5, 1000) /* used= limit= most= */ \
	X(out_of_memory, 1, 1000) /* most= */ \
	X(crash, 1, 1000) /* signal= address= */ \
	X(frame, 1, 1000) /* number= address= object= offset= symbol= */ \
	X(held_back, 1, 1000) /* lines= of= uid= unit= */ \
	X(unread, 1, 1000) /* lines= */ \
	/* the keeper */ \
	X(worker_ended, 20, 1000) /* pid= descriptors= */ \
	X(worker_crashes, 20, 1000) /* crashes= connections= pause_s= */ \
	X(worker_hangs, 20, 1000) /* pid= */ \
	X(keeper_ended, 1, 1000) \
	X(keeper_begins, 20, 1000) /* descriptors= version= */ \
	X(keeper_stays, 20, 1000) /* error= */ \
	X(keeper_full, 5, 2000) \
	X(watchdog, 20, 1000) /* ms= */ \
	/* ZooKeeper */ \
	X(session_safe, 50, 1000) /* session_epoch= */ \
	X(session_jeopardy, 50, 1000) /* session_epoch= */ \
	X(session_lost, 50, 1000) /* session_epoch= unproven_ms= */ \
	X(session_expired, 50, 1000) /* session_epoch= */ \
	X(session_timeout, 20, 1000) /* timeout_ms= wanted_ms= */ \
	X(session_shared, 20, 1000) /* session_epoch= */ \
	X(session_doubted, 5, 2000) /* server= */ \
	X(session_former, 50, 1000) /* state= own= wait_ms= error= */ \
	X(stalled, 50, 1000) /* stood_ms= */ \
	X(zookeeper_connected, 50, 1000) /* server= session_epoch= new= */ \
	X(zookeeper_lost, 50, 1000) /* session_epoch= */ \
	X(zookeeper_silent, 50, 1000) /* session_epoch= */ \
	X(zookeeper_answers, 50, 1000) /* session_epoch= */ \
	X(zookeeper_unreachable, 50, 1000) /* after_s= */ \
	X(zookeeper_trouble, 5, 5000) /* error= */ \
	X(zookeeper_away, 5, 120000) \
	X(zookeeper_refuses, 20, 1000) /* operation= path= error= */ \
	X(zookeeper_restored, 20, 1000) /* transaction= above= */ \
	X(zookeeper_moves, 20, 1000) /* server= */ \
	X(zookeeper_lacks, 20, 1000) /* server= operation= error= */ \
	X(zookeeper_client, 200, 10) \
	X(packet, 20, 1000) /* server= bytes= wanted_bytes= */ \
	X(host_taken, 20, 1000) /* host= other= */ \
	X(znode_unknown, 20, 1000) /* path= znode= */ \
	X(znode_deleted, 20, 1000) /* path= znode= */ \
	X(audit, 20, 1000) /* directories= strays= */ \
	/* locks and clients; the fields uid= and unit= come first where it is known who caused it */ \
	/* lines of holds and waits have a budget of their own, too (io/hold_log.h) */ \
	X(granted, 1000, 10) /* kind= name= mode= token= permits= client= pid= command= data= since_ms= waited_ms= \
				held_ms= why= before= */ \
	X(released, 1000, 10) /* the same */ \
	X(lost, 200, 2000) /* the same */ \
	X(delegated, 1000, 10) /* name= token= client= pid= command= since_ms= held_ms= takings= */ \
	X(waits, 1000, 10) /* kind= name= mode= client= pid= command= waited_ms= holder= holder_pid= holder_command= */ \
	X(waited, 1000, 10) /* kind= name= mode= client= pid= command= waited_ms= why= */ \
	X(summary, 30, 2000) /* name= count= waits= commands= longest_ms= since_ms= until_ms= */ \
	X(forced, 20, 1000) /* name= holders= by_uid= by_pid= by_command= by_host= */ \
	X(force_asked, 20, 1000) /* name= hosts= by_uid= by_pid= by_command= */ \
	X(force_deletes, 20, 1000) /* path= host= */ \
	X(drain, 20, 1000) /* on= held= waiting= pid= */ \
	X(client_refused, 5, 2000) /* why= error= */ \
	X(client_closed, 5, 2000) /* why= bytes= */ \
	X(accept_failed, 5, 2000) /* error= */

enum log_event {
#define X(name, burst, every_ms) LOG_EVENT_##name,
	LOG_EVENTS(X)
#undef X
	LOG_EVENT_COUNT
};

static inline const char *log_event_word(enum log_event event)
{
	static const char *const words[] = {
#define X(name, burst, every_ms) #name,
		LOG_EVENTS(X)
#undef X
	};

	return words[event];
}

/* It says what everybody does with locks, and gives way to lines that say what went wrong. */
static inline bool log_is_of_hold(enum log_event event)
{
	return event == LOG_EVENT_granted || event == LOG_EVENT_released || event == LOG_EVENT_delegated ||
	       event == LOG_EVENT_waits || event == LOG_EVENT_waited || event == LOG_EVENT_summary;
}
