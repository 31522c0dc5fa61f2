/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * liblockbroker: locks among the processes of a host and among hosts, exclusive or shared, through the lockbrokerd of
 * this host.
 *
 * A handle is one connection, and the connection is the owner of what is locked through it: as a thread is for a
 * mutex. When the connection ends, because of lb_close(), exit, exec or a crash, everything it held is free.
 *
 *     struct lb *lb;
 *     int64_t token;
 *
 *     if (lb_open(NULL, &lb) == LB_OK && lb_lock(lb, "orders/42", &token) == LB_OK) {
 *             ... the work; hand `token` to the resource, so that it can refuse older ones ...
 *             lb_unlock(lb, "orders/42");
 *     } else {
 *             fprintf(stderr, "%s\n", lb_error(lb));
 *     }
 *     lb_close(lb);
 *
 * Threads: a handle is not thread-safe; give each thread its own, which is also what makes them exclude each other.
 * fork: parent and child must not both use a handle. The child's copy of the descriptor keeps the connection, and
 * so the locks, alive until both are closed; lb_close() in the child closes the copy only and says nothing to the
 * broker. exec: the descriptor is close-on-exec; who wants a program to inherit the locks clears that flag on
 * lb_fd() (the lockbroker command does).
 * Signals: calls go on after a signal handler has returned, and never raise SIGPIPE.
 * Times are milliseconds. Strings are NUL-terminated UTF-8. Running out of memory ends the process (abort); what
 * the library keeps is bounded.
 */
#ifndef LOCKBROKER_H
#define LOCKBROKER_H

#include <stddef.h>
#include <stdint.h>

/*
 * The version of this header. Compare numbers: #if LOCKBROKER_VERSION_NUMBER >= 0x000200. A program runs with every later
 * library of the same soname, whose number (liblockbroker.so.1) goes up when that is no longer true, and only then.
 */
#define LOCKBROKER_VERSION_MAJOR 0
#define LOCKBROKER_VERSION_MINOR 2
#define LOCKBROKER_VERSION_PATCH 0
#define LOCKBROKER_VERSION_NUMBER \
	(LOCKBROKER_VERSION_MAJOR << 16 | LOCKBROKER_VERSION_MINOR << 8 | LOCKBROKER_VERSION_PATCH)
#define LOCKBROKER_VERSION "0.2.0"

#ifdef __cplusplus
extern "C" {
#endif

struct lb;
struct lb_reply;

enum lb_result {
	LB_OK = 0,
	LB_TAKEN,       /* not granted in time: somebody else holds the lock */
	LB_LOST,        /* the grant is void: the session was lost, somebody deleted its znode, or its lease ran out */
	LB_NOTHELD,     /* this handle does not hold that lock */
	LB_DEADLOCK,    /* granting this could never happen: an upgrade of what this handle holds shared,
	                 * or a circle of waits among clients of this host */
	LB_BADNAME,     /* not a lock name: 1..512 bytes of UTF-8, no control characters, not "." or ".." */
	LB_LIMIT,       /* a limit of the daemon is reached */
	LB_DENIED,      /* not allowed for this user */
	LB_MISMATCH,    /* the lock is of another kind */
	LB_UNAVAILABLE, /* the daemon is there but cannot ask ZooKeeper now, so whether it is taken is not known */
	LB_DRAINING,    /* the daemon is stopping */
	LB_REFUSED,     /* the daemon did not accept the request for another reason */
	LB_NONE,        /* lb_event(): nothing happened in time; lb_cancel(): nothing waits; lb_leader(): nobody */
	LB_CONNECTION,  /* no daemon, or the connection broke or was silent for too long: everything held is void */
};

/*
 * Connects to the broker. `path` is the socket; NULL means $LOCKBROKER_SOCKET, or if that is unset or empty,
 * /run/lockbroker/lockbroker.sock. *ret is always set, to a handle that the caller must lb_close(): on failure it
 * knows only its lb_error(). Returns LB_OK; LB_DENIED when this user may not reach it (the sentence names the remedy);
 * LB_CONNECTION when there is no daemon, or it did not answer within 10 s; LB_LIMIT when it has too many clients;
 * LB_DRAINING; LB_REFUSED.
 */
enum lb_result lb_open(const char *path, struct lb **ret);

/* Closes the connection, which releases everything, and frees the handle. Takes NULL. Keeps errno. */
void lb_close(struct lb *lb);

/*
 * Takes the lock, waiting as long as it takes: for other holders, and for ZooKeeper to be reachable. Who holds it
 * already gets it again at once, with the same token; each lb_lock() wants its lb_unlock(). *ret_token (may be
 * NULL) is the fencing token: larger than that of every earlier grant of this lock on any host. Returns LB_OK or an
 * error, and then *ret_token is untouched. LB_LOST once, if an earlier grant of it was lost and neither lb_lock() nor
 * lb_unlock() has said so (an event does not count: it may not have been read): whatever was done under it must be
 * looked at before going on; the next call waits as usual.
 */
enum lb_result lb_lock(struct lb *lb, const char *name, int64_t *ret_token);

/*
 * lb_lock() that gives up after `timeout_ms` with LB_TAKEN when somebody else holds the lock, with LB_UNAVAILABLE
 * when that could not be known; nothing stays queued. 0 does not wait at all; negative means no bound; more than a
 * year is taken as a year. A daemon that does not answer by `timeout_ms` plus the patience of lb_set_patience() costs
 * the connection: LB_CONNECTION.
 */
enum lb_result lb_lock_timeout(struct lb *lb, const char *name, int64_t timeout_ms, int64_t *ret_token);

/* lb_lock_timeout() with 0: takes the lock if it is free at this moment, else LB_TAKEN or LB_UNAVAILABLE. */
enum lb_result lb_try(struct lb *lb, const char *name, int64_t *ret_token);

/*
 * What else can be asked for. Initialize with LB_OPTIONS, then set what is wanted: `struct lb_options o = LB_OPTIONS;`.
 * size: that of the structure as the program knows it, set by LB_OPTIONS. It grows in later versions: a library takes
 * what it has not been told as not set, and refuses (LB_REFUSED) what is set and unknown to it.
 * timeout_ms: as for lb_lock_timeout(); -1.
 * lease_ms: so long after the grant the daemon takes the lock back by itself, tells LB_EVENT_LOST (reason "lease") and
 * grants it to the next. 0: none, the grant lives as long as the connection. More than a year is taken as a year.
 * Entering again never shortens it: the later end counts, and none is later than any.
 * shared: as lb_lock_shared(); 0.
 * data: 1..512 bytes of text that HOLDERS shows with the grant. NULL: none.
 */
struct lb_options {
	size_t size;
	int64_t timeout_ms;
	int64_t lease_ms;
	const char *data;
	int shared;
};

#define LB_OPTIONS { sizeof(struct lb_options), -1, 0, NULL, 0 }

/*
 * lb_lock() with options (NULL: lb_lock()). A lock with a lease that had to be waited for is renewed once when it is
 * granted, so that its lease can be counted from there; LB_LOST if it had run out by then.
 */
enum lb_result lb_lock_with(struct lb *lb, const char *name, const struct lb_options *options, int64_t *ret_token);

/*
 * From now on the lease of the grant is that long, whether it was longer, shorter, or none. LB_LOST: it was void
 * already, and is not held any more. LB_NOTHELD.
 */
enum lb_result lb_renew(struct lb *lb, const char *name, int64_t lease_ms);

/*
 * Asks for the lock and does not wait: hundreds may be waited for through one handle. LB_OK: queued, and exactly one
 * event will tell what came of it: GRANTED, TIMEOUT or FAILED; or lb_cancel() takes it back. A lock that this handle
 * holds is entered again. LB_REFUSED when it waits for that name already. LB_LOST, LB_LIMIT, LB_DRAINING, LB_BADNAME
 * as lb_lock(). lb_valid() counts a lease from this call until lb_renew() is called.
 */
enum lb_result lb_enqueue(struct lb *lb, const char *name, const struct lb_options *options);

/* LB_OK: it waited, and will never be granted. LB_NONE: nothing waits, and the event that says why is there to read. */
enum lb_result lb_cancel(struct lb *lb, const char *name);

/*
 * Elections: a lock whose holder's `data` (1..512 bytes of text: an address, say) everybody may read. A name is a lock or
 * an election, not both: LB_MISMATCH.
 *
 * lb_campaign() is lb_lock_timeout() for the leadership: whoever is told that it leads can be found by everybody with
 * that data by then. Who leads already gets LB_REFUSED. Leading ends with lb_resign(), the connection, or a loss, as
 * holding a lock does; lb_valid() says for how long it is proven.
 */
enum lb_result lb_campaign(struct lb *lb, const char *name, const char *data, int64_t timeout_ms, int64_t *ret_token);

/* The same without waiting, as lb_enqueue(): one event tells what came of it, or lb_resign() takes it back. */
enum lb_result lb_campaign_enqueue(struct lb *lb, const char *name, const char *data, int64_t timeout_ms);

/* LB_OK: leads no more, or will not by what was queued. LB_LOST and LB_NOTHELD as lb_unlock(). */
enum lb_result lb_resign(struct lb *lb, const char *name);

/*
 * Who leads now, on whichever host: LB_OK and in *ret a MAP with the keys of LEADER in PROTOCOL.md ("data", "host",
 * "token", ...), valid until the next call with this handle. LB_NONE: nobody does.
 */
enum lb_result lb_leader(struct lb *lb, const char *name, const struct lb_reply **ret);

/*
 * From now on LB_EVENT_LEADER tells who leads: once at first, then each change, in order and never twice, until
 * lb_unobserve() or LB_EVENT_UNOBSERVED.
 */
enum lb_result lb_observe(struct lb *lb, const char *name);
/* LB_NONE: it was not observed. Events on their way may still be read. */
enum lb_result lb_unobserve(struct lb *lb, const char *name);

/*
 * lb_lock_timeout() for a reader: any number of handles, here and on other hosts, hold the lock shared together; who
 * wants it exclusively waits for all of them, and a reader that asks after that waits for the writer, on any host:
 * also when present readers wait for that reader. Tokens of readers that hold it together are in no order, but larger
 * than those of all earlier writers, and smaller than those of all later ones. Who holds it exclusively gets it once
 * more, exclusively. Who holds it shared cannot have it exclusively: lb_lock(), lb_lock_timeout() and lb_try() of it
 * say LB_DEADLOCK at once.
 */
enum lb_result lb_lock_shared(struct lb *lb, const char *name, int64_t timeout_ms, int64_t *ret_token);

/*
 * Turns what this handle holds, all its levels, into a shared grant with the token it has; it is never free in
 * between. LB_OK also when it is shared already. LB_LOST and LB_NOTHELD as lb_unlock().
 */
enum lb_result lb_downgrade(struct lb *lb, const char *name);

/*
 * Takes one level off; the last one releases the lock. LB_LOST: it was void already, and whatever was done under it
 * since is in doubt; it is not held any more. LB_NOTHELD: there was nothing to release. Never waits for ZooKeeper.
 *
 * When the handle knows that it holds the lock and that its proof stands, the request is sent and LB_OK returned
 * without waiting for the answer, so that a pair of lock and unlock costs one round trip. In the rare case that the
 * daemon sees it otherwise (the grant was lost in that moment, or its loss stands among the events that were not read),
 * the next lb_lock() or its kin (lb_lock_all() too), or lb_unlock(), that would be LB_OK says so instead, with the name in
 * lb_error(): what it was to lock is not held then, what it was to unlock is unlocked. All other calls, lb_unlock_all()
 * too, leave that to those; lb_close() forgets it. Who must know before going on: lb_set_deferred().
 */
enum lb_result lb_unlock(struct lb *lb, const char *name);

/*
 * Takes `n` (1..64) locks, all or none: whatever the order they are given in, two who name the same ones never wait
 * for each other in a circle. timeout_ms is for all of them together, shared means all, and all leases begin when the
 * last one is had; there is no data. ret_tokens (may be NULL) gets `n` tokens, in the order of the names. They are
 * locks like any others: each has its own lb_valid(), losses, and lb_unlock(), and what this handle held before has
 * one level more. LB_TAKEN, LB_LOST and all else as lb_lock_with(), for any of the names, and then none was taken; also
 * LB_LOST of what an lb_unlock() before had let go, see there;
 * those held before are held as before. LB_REFUSED: a name stands there twice, or is waited for by lb_enqueue().
 */
enum lb_result lb_lock_all(struct lb *lb, size_t n, const char *const *names, const struct lb_options *options,
			   int64_t *ret_tokens);

/*
 * Takes one level off each of them, or, when it cannot, off none. LB_LOST, LB_NOTHELD: as lb_unlock(), for the name
 * with which lb_error() ends; the others are held still. Always waits for its answer, and speaks of these names only.
 */
enum lb_result lb_unlock_all(struct lb *lb, size_t n, const char *const *names);

/*
 * Takes `count` permits of a counting semaphore, all or none, whose `limit` all who use it agree on (LB_MISMATCH: others
 * use another; or the name is a lock's). They add to those that this handle has; *ret_held (may be NULL) is how many
 * that are then. timeout_ms, and LB_TAKEN, LB_UNAVAILABLE, LB_LOST: as lb_lock_timeout(). LB_DEADLOCK: with what this
 * handle has it would need more than there are, or would close a circle of waits. There is no token.
 */
enum lb_result lb_acquire(struct lb *lb, const char *name, int64_t limit, int64_t count, int64_t timeout_ms,
			  int64_t *ret_held);

/*
 * With options: timeout_ms, and lease_ms, after which the daemon takes back all that this handle has of the semaphore
 * and tells LB_EVENT_LOST (reason "lease"). Acquiring more never shortens it: the later end counts, and none is later
 * than any; lb_renew() sets it anew. As with lb_lock_with(), permits that had to be waited for are renewed once. Permits
 * have neither a mode nor data (LB_REFUSED).
 */
enum lb_result lb_acquire_with(struct lb *lb, const char *name, int64_t limit, int64_t count,
			       const struct lb_options *options, int64_t *ret_held);

/* Gives `count` of them back. LB_NOTHELD: there are fewer, and none was given back. LB_LOST: all were void already. */
enum lb_result lb_release(struct lb *lb, const char *name, int64_t count);

/*
 * Sets *ret_ms to how long this handle's grant is still proven to be safe; 0 when it holds no such lock or the proof
 * or its lease has run out. While all is well the figure stays between half and two thirds of the session timeout, or is
 * the rest of the lease; in standalone mode it is a large constant without a lease. It reads what the daemon has sent
 * and the page in which it keeps its proof, and so neither waits nor is fooled when the daemon hangs; where that page
 * cannot be read, or is another daemon's (another file system name space, say), the daemon is asked. LB_CONNECTION: the
 * connection, and so everything held, is gone.
 */
enum lb_result lb_valid(struct lb *lb, const char *name, int64_t *ret_ms);

/*
 * What the broker tells without being asked. LOST: the grant of `name` is void, stop now. JEOPARDY: ZooKeeper is out
 * of reach; grants stay safe for `ms` from now unless SAFE comes before. SAFE: no danger any more. REVOKE: somebody
 * asks for `name` back, lb_unlock() it when you can; nothing is taken away by it. GRANTED, TIMEOUT, FAILED: what came of
 * lb_enqueue(). LEADER: who leads what lb_observe() observes. UNOBSERVED: that cannot be said any more. OTHER: something
 * a newer daemon tells; to be ignored.
 */
enum lb_event_type {
	LB_EVENT_LOST,
	LB_EVENT_JEOPARDY,
	LB_EVENT_SAFE,
	LB_EVENT_REVOKE,
	LB_EVENT_GRANTED,
	LB_EVENT_TIMEOUT,
	LB_EVENT_FAILED,
	LB_EVENT_LEADER,
	LB_EVENT_UNOBSERVED,
	LB_EVENT_OTHER,
};

struct lb_event {
	enum lb_event_type type;
	const char *name;   /* the lock, until the next call with this handle; "" when it is about none */
	/*
	 * REVOKE: why, as another user wrote it, "stopping" when the daemon is to end. LOST: "session", "deleted", "lease",
	 * or "forced" when an operator took it. FAILED, UNOBSERVED: a sentence. LEADER: its host. As long as `name`; else ""
	 */
	const char *reason;
	const char *data;   /* LEADER: its data. As long as `name`. Else "" */
	int64_t token;      /* LOST, REVOKE, GRANTED, LEADER: that of the grant; 0: nobody leads. Else 0 */
	int64_t ms;         /* JEOPARDY: how long grants are still safe. Else 0 */
	enum lb_result result; /* TIMEOUT: LB_TAKEN; FAILED, UNOBSERVED: as a call would have said. Else LB_OK */
};

/*
 * The next event, waiting for it up to `timeout_ms` (0: not at all, negative: without bound). LB_NONE when there was
 * none; LB_CONNECTION when the connection is gone, which is the loss of everything held. Events that arrive during
 * other calls are kept for this one. To wait for other things as well, poll lb_fd() for POLLIN and then call this
 * with 0 until it says LB_NONE; before the first poll too, for an event may have been read already.
 */
enum lb_result lb_event(struct lb *lb, int64_t timeout_ms, struct lb_event *ret);

/*
 * Asks anything that PROTOCOL.md knows and that answers at once: {"HOLDERS", "orders/42"}. *ret (may be NULL) is
 * the reply, valid until the next call with this handle. Error replies become results as for all calls, and *ret
 * is untouched. Not for commands that wait, nor for UNLOCK ... LAZY: the answer must come within the patience, else
 * LB_CONNECTION. An AUDIT of many directories needs more of it. Not for what there is a call for: what is locked and
 * unlocked this way lb_valid() does not know of, and HELLO or RESET would take the handle its events.
 */
enum lb_result lb_command(struct lb *lb, int argc, const char *const *argv, const struct lb_reply **ret);

/* Looking at a reply. Every accessor takes NULL and any type, and answers with nothing for what is not there. */
enum lb_reply_type { LB_REPLY_NIL, LB_REPLY_TEXT, LB_REPLY_INTEGER, LB_REPLY_ARRAY, LB_REPLY_MAP };

enum lb_reply_type lb_reply_type(const struct lb_reply *reply);
/* The bytes of a TEXT, not NUL-terminated, and their number in *ret_len (may be NULL); "" for all else. */
const char *lb_reply_text(const struct lb_reply *reply, size_t *ret_len);
/* The number of an INTEGER; 0 for all else. */
int64_t lb_reply_integer(const struct lb_reply *reply);
/* Items of an ARRAY, pairs of a MAP; 0 for all else. */
size_t lb_reply_count(const struct lb_reply *reply);
/* The i-th item of an ARRAY, the value of the i-th pair of a MAP; NULL when there is none. */
const struct lb_reply *lb_reply_item(const struct lb_reply *reply, size_t i);
/* The key of the i-th pair of a MAP; NULL when there is none. */
const struct lb_reply *lb_reply_key(const struct lb_reply *map, size_t i);
/* The item after this one of an ARRAY, faster than counting anew; there must be one. */
const struct lb_reply *lb_reply_next(const struct lb_reply *item);
/* The value of that key in a MAP; NULL when there is none. */
const struct lb_reply *lb_reply_field(const struct lb_reply *map, const char *key);

/* The socket, to poll or to be inherited; -1 when the connection is closed. It stays the library's: do not close. */
int lb_fd(const struct lb *lb);

/* How long an answer that should come at once is waited for; 10,000 at first. At least 1. */
void lb_set_patience(struct lb *lb, int64_t ms);

/* 0: from now on lb_unlock() always waits for its answer; 1, as at first: only when it must. */
void lb_set_deferred(struct lb *lb, int on);

/* What the last failure was: always a sentence, until the next call with this handle. */
const char *lb_error(const struct lb *lb);

#ifdef __cplusplus
}
#endif

#endif
