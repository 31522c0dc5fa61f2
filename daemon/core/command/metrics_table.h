/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What INFO shows, in its order. A NUMBER is a metric as well (its name stands behind "lockbroker_"), a TEXT a statement
 * that writes to `out`. Values in SECONDS and MS are nanoseconds: METRICS shows seconds, INFO whole seconds or milliseconds.
 * Counters and histograms are the lists of stats.h; metrics.c has what rows see, and the metrics with labels.
 */
#pragma once


/* The limits that INFO shows, in its order: the last rows. */
#define LIMIT_ROWS(LINE) \
	LINE(LIMITS, ALWAYS, limit_clients, ONE, l->clients) LINE(LIMITS, ALWAYS, limit_user_share, ONE, l->user_share) \
	LINE(LIMITS, ALWAYS, limit_locks, ONE, l->locks) \
	LINE(LIMITS, ALWAYS, limit_requests_per_lock, ONE, l->requests_per_lock) \
	LINE(LIMITS, ALWAYS, limit_requests_per_client, ONE, l->requests_per_client) \
	LINE(LIMITS, ALWAYS, limit_requests, ONE, l->requests) \
	LINE(LIMITS, ALWAYS, limit_grants_per_client, ONE, l->grants_per_client) \
	LINE(LIMITS, ALWAYS, limit_grants, ONE, l->grants) \
	LINE(LIMITS, ALWAYS, limit_events_per_client, ONE, l->events_per_client) \
	LINE(LIMITS, ALWAYS, limit_request_bytes, BYTES, l->request_bytes) \
	LINE(LIMITS, ALWAYS, limit_request_args, ONE, l->request_args) \
	LINE(LIMITS, ALWAYS, limit_output_bytes, BYTES, l->output_bytes) \
	LINE(LIMITS, ALWAYS, limit_session_path_bytes, BYTES, budget_max(&zk->budget)) \
	LINE(LIMITS, ALWAYS, configured_session_path_bytes, BYTES, l->session_path_bytes)

/* Clients read the first two before they send anything else. */
#define METRIC_ROWS(NUMBER, LINE, TEXT) \
	TEXT(SERVER, ALWAYS, redis_version, bytes_text(out, "7.0.0")) \
	TEXT(SERVER, ALWAYS, redis_mode, bytes_text(out, "standalone")) \
	TEXT(SERVER, ALWAYS, lockbroker_version, bytes_text(out, conf->version)) \
	TEXT(SERVER, ALWAYS, mode, bytes_text(out, mode_of(conf))) TEXT(SERVER, ALWAYS, host, bytes_text(out, conf->host)) \
	LINE(SERVER, ALWAYS, process_id, ONE, conf->pid) LINE(SERVER, ALWAYS, uptime_in_seconds, SECONDS, uptime_ns(h)) \
	NUMBER(SERVER, ALWAYS, started, conf->started_s, "start_time_seconds", GAUGE, ONE, \
	       "When this process began, in seconds since 1970.") \
	NUMBER(SERVER, ALWAYS, counted_since, stats->since_s, "counters_start_time_seconds", GAUGE, ONE, \
	       "When the counters began at 0, in seconds since 1970: they go on over a hand-over, and not over a kill.") \
	LINE(SERVER, ALWAYS, loading, ONE, 0) \
	NUMBER(SERVER, ALWAYS, stopping, env->stopping, "stopping", GAUGE, ONE, "1: the daemon is stopping.") \
	NUMBER(SERVER, ALWAYS, draining, env->draining, "draining", GAUGE, ONE, "1: drained: it grants nothing.") \
	NUMBER(SERVER, ALWAYS, files_lost, conf->files_lost ? *conf->files_lost : 0, "files_lost", GAUGE, ONE, \
	       "Files and sockets of the daemon that somebody has removed, and that it cannot make again.") \
	NUMBER(CLIENTS, ALWAYS, connected_clients, locks_conns(h->locks), "connected_clients", GAUGE, ONE, "Connections.") \
	NUMBER(CLIENTS, ALWAYS, blocked_clients, h->locks->blocked_count, "blocked_clients", GAUGE, ONE, \
	       "Connections whose request waits for a lock.") \
	NUMBER(CLIENTS, ALWAYS, delegation_pages, h->locks->page_count, "delegation_pages", GAUGE, ONE, \
	       "Connections that have a page by which locks are delegated.") \
	NUMBER(CLIENTS, ALWAYS, users, h->locks->users.count, "users", GAUGE, ONE, "Users that have a connection.") \
	NUMBER(LOCKS, ALWAYS, locks, h->locks->names.count - h->locks->idle_count, "locks", GAUGE, ONE, \
	       "Locks that this host holds or waits for.") \
	NUMBER(LOCKS, ALWAYS, grants, h->locks->grant_count, "grants", GAUGE, ONE, "Grants, and losses not told yet.") \
	NUMBER(LOCKS, ALWAYS, delegations, h->locks->delegated_count, "delegations", GAUGE, ONE, \
	       "Those of them that are delegated, whether their clients hold them or not.") \
	NUMBER(LOCKS, ALWAYS, requests, h->locks->request_count, "waiting_requests", GAUGE, ONE, "Requests that wait.") \
	NUMBER(LOCKS, ALWAYS, longest_wait_ms, locks_longest_wait_ns(h->locks), "longest_wait_seconds", GAUGE, MS, \
	       "For how long the oldest of the waiting requests has waited.") \
	NUMBER(LOCKS, ALWAYS, claims, all->claim_count, "claims", GAUGE, ONE, "Claims of this host.") \
	TEXT(SESSION, ALWAYS, session_state, bytes_text(out, conf->standalone ? "standalone" : session_state_word(s->state))) \
	TEXT(SESSION, ALWAYS, session_why, health_why(zk, out)) \
	TEXT(SESSION, OPERATORS, session_id, bytes_format(out, "0x%x", s->id)) \
	LINE(SESSION, ZK, asked_timeout_ms, MS, conf->session_timeout_ns) \
	NUMBER(SESSION, ZK, session_timeout_ms, s->timeout_ns, "session_timeout_seconds", GAUGE, MS, \
	       "The session's timeout as granted; 0: there is none.") \
	NUMBER(SESSION, ZK, safe_for_ms, safe_ns(h), "session_safe_seconds", GAUGE, MS, \
	       "For how long grants are still proven safe; 0: nothing is proven.") \
	NUMBER(SESSION, ZK, proof_age_ms, proof_age_ns(h), "session_proof_age_seconds", GAUGE, MS, "Age of the proof.") \
	NUMBER(SESSION, ZK, announced, s->announced, "session_announced", GAUGE, ONE, "1: the host's own znode stands.") \
	TEXT(SESSION, ZK, rival, bytes_slice(out, rival(h))) \
	NUMBER(SESSION, ZK, unannounced_ms, env->now_ns - zk->presence.stood_ns, "session_unannounced_seconds", GAUGE, MS, \
	       "For how long the host's own znode has not been seen to stand: more than the timeout is too long.") \
	NUMBER(SESSION, ZK, leftover_sessions, formers_open(zk), "leftover_sessions", GAUGE, ONE, \
	       "Sessions that earlier daemons left or this one gave up, and that have not ended yet.") \
	NUMBER(SESSION, ZK, leftover_wait_ms, formers_wait_ns(zk), "leftover_wait_seconds", GAUGE, MS, \
	       "Time until the last of them may be ended even if a holder lives.") \
	NUMBER(SESSION, ZK, stalled, s->proof.stalled, "stalled", GAUGE, ONE, \
	       "1: the daemon stood still, and grants nothing until a write is answered.") \
	TEXT(ZOOKEEPER, ZK, zookeeper_state, bytes_text(out, health_word(zk))) \
	NUMBER(ZOOKEEPER, ZK, connected, s->connected, "zookeeper_connected", GAUGE, ONE, \
	       "1: the session has a connection to a server.") \
	TEXT(ZOOKEEPER, ZK, server, bytes_slice(out, s->connected ? bytes_view(&s->server) : SLICE(""))) \
	NUMBER(ZOOKEEPER, ZK, disconnected_ms, s->connected ? 0 : env->now_ns - s->silent_ns, \
	       "zookeeper_disconnected_seconds", GAUGE, MS, "For how long there has been no connection; 0: there is one.") \
	TEXT(ZOOKEEPER, ZK, trouble, bytes_slice(out, bytes_view(&zk->health.sentence))) \
	LINE(ZOOKEEPER, ZK, trouble_age_ms, MS, trouble_age_ns(h)) \
	NUMBER(ZOOKEEPER, ZK, locks_barred, zk->health.barred.len > 0, "locks_barred", GAUGE, ONE, "1: no lock can be had.") \
	NUMBER(ZOOKEEPER, ZK, names_refused, health_refuses_some(zk), "names_refused", GAUGE, ONE, "1: locks of some cannot.") \
	TEXT(ZOOKEEPER, ZK, refusal, bytes_text(out, refusal(zk))) TEXT(ZOOKEEPER, ZK, root, bytes_text(out, conf->root)) \
	NUMBER(ZOOKEEPER, ZK, operations, zk->operations.end - zk->operations.first, "zookeeper_operations", GAUGE, ONE, \
	       "Operations that ZooKeeper has not answered yet.") \
	NUMBER(ZOOKEEPER, ZK, open_bytes, w->open[WINDOW_BYTES], "zookeeper_open_bytes", GAUGE, BYTES, \
	       "Bytes of their requests and expected answers.") \
	NUMBER(ZOOKEEPER, ZK, window_bytes, w->size[WINDOW_BYTES], "zookeeper_window_bytes", GAUGE, BYTES, \
	       "How many bytes may be open.") \
	LINE(ZOOKEEPER, ZK, window_reads, ONE, w->size[WINDOW_READS]) \
	LINE(ZOOKEEPER, ZK, window_writes, ONE, w->size[WINDOW_WRITES]) \
	LINE(ZOOKEEPER, ZK, rate_bytes_per_second, ONE, rate(h)) \
	NUMBER(ZOOKEEPER, ZK, directories_idle, all->left_count, "directories_idle", GAUGE, ONE, \
	       "Persistent directories of idle locks (flavour kazoo) that this host knows.") \
	NUMBER(ZOOKEEPER, ZK, locks_waiting_to_send, all->turns.waiting, "locks_waiting_to_send", GAUGE, ONE, \
	       "Locks that will ask ZooKeeper something as soon as there is room.") \
	LINE(ZOOKEEPER, ZK, new_names, ONE, recent_names(h)) LINE(ZOOKEEPER, ZK, new_names_waiting, ONE, all->names.waiting) \
	LINE(ZOOKEEPER, ZK, lasting_directories, ONE, lasting_count(all)) \
	LINE(ZOOKEEPER, ZK, session_path_bytes, BYTES, zk->env->accounts.pools[POOL_PATHS].used) \
	LINE(ZOOKEEPER, ZK, watch_path_bytes, BYTES, zk->env->accounts.pools[POOL_WATCHES].used) \
	NUMBER(ZOOKEEPER, ZK, packet_bytes, zk->budget.packet_bytes, "zookeeper_packet_bytes", GAUGE, BYTES, \
	       "The largest packet that a server takes, when that is too small for the limits; 0: large enough, or not known.") \
	NUMBER(ZOOKEEPER, ZK, letters, h->outbox_count, "letters", GAUGE, ONE, "Letters to other hosts on their way.") \
	NUMBER(AUDIT, ALWAYS, audit_remembered, all->remembered_count, "audit_remembered", GAUGE, ONE, \
	       "Locks whose directory has to be listed again because a connection was lost.") \
	NUMBER(AUDIT, ALWAYS, audit_undeleted, all->orphan_count, "audit_undeleted", GAUGE, ONE, \
	       "Strays that were found and are not deleted yet.") \
	NUMBER(AUDIT, ALWAYS, audit_running, h->audit.state != AUDIT_IDLE, "audit_running", GAUGE, ONE, "1: an audit runs.") \
	LINE(AUDIT, ALWAYS, audit_looked_at, ONE, h->audit.state != AUDIT_IDLE ? h->audit.counts.directories : 0) \
	LINE(AUDIT, ALWAYS, audit_sweeps, ONE, stats->audits_total) \
	LINE(AUDIT, ALWAYS, audit_relisted, ONE, stats->relisted_total) \
	LINE(AUDIT, ALWAYS, audit_strays, ONE, stats->strays_total) \
	LINE(AUDIT, ALWAYS, audit_adopted, ONE, stats->adopted_total) \
	LINE(AUDIT, ALWAYS, audit_vanished, ONE, stats->vanished_total) \
	LIMIT_ROWS(LINE)
