/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * liblockbroker: locks among the processes of a host and among hosts, exclusive or shared, through the lockbrokerd of
 * this host.
 *
 * A handle is one connection, and the connection owns the locks that were acquired through it, as a thread owns a
 * mutex. When the connection ends, because of lb_close(), exit, exec or a crash, everything that it held is released.
 *
 * If the daemon ends the connection, because it crashed or was stopped, the handle lives on: the next call connects
 * again, and waits for the daemon for as long as lb_set_patience() allows. A call that waits for a lock goes on waiting
 * on the new connection, until its time limit. All locks are lost, and are never silently acquired again: the first
 * call that names such a lock, or an earlier lost lock that no call has reported, returns LB_LOST, and lb_event()
 * returns LB_EVENT_LOST for each lock, LB_EVENT_FAILED for a request that was queued and LB_EVENT_UNOBSERVED for an
 * election. Settings of the connection that lb_command() had made, such as its name, have to be made again. lb_valid(),
 * and lb_event() with 0, never wait (but see lb_valid()) and do not connect.
 *
 * If the daemon is handed over to another process, or crashes and its next process takes the connection back, the
 * program does not notice: locks stay held, and calls wait a moment.
 *
 *     struct lb *lb;
 *     int64_t token;
 *
 *     if (lb_open(NULL, &lb) == LB_OK && lb_lock(lb, "orders/42", &token) == LB_OK) {
 *             ... the work; pass `token` to the resource, so that it can refuse older ones ...
 *             lb_unlock(lb, "orders/42");
 *     } else {
 *             fprintf(stderr, "%s\n", lb_error(lb));
 *     }
 *     lb_close(lb);
 *
 * Threads: a handle is not thread-safe; give each thread its own, which also makes threads exclude each other.
 * fork: parent and child must not both use a handle. The child's copy of the descriptor keeps the connection open, and
 * so the locks held, until both are closed; lb_close() in the child only closes that copy and sends nothing to the
 * broker. exec: the descriptor is close-on-exec; to let a program inherit the locks, clear that flag of lb_fd(), as the
 * lockbroker command does.
 * Signals: calls continue after a signal handler has returned, and never raise SIGPIPE.
 * Times are in milliseconds. Strings are NUL-terminated UTF-8. Running out of memory ends the process (abort); the
 * memory that the library keeps is bounded, but for the names of locks that were lost and that no call has named since.
 */
#ifndef LOCKBROKER_H
#define LOCKBROKER_H

#include <stddef.h>
#include <stdint.h>

/*
 * The version of this header. Compare numbers: #if LOCKBROKER_VERSION_NUMBER >= 0x000300. A program runs with every later
 * library of the same soname, whose number (liblockbroker.so.1) goes up when that is no longer true, and only then.
 */
#define LOCKBROKER_VERSION_MAJOR 0
#define LOCKBROKER_VERSION_MINOR 3
#define LOCKBROKER_VERSION_PATCH 0
#define LOCKBROKER_VERSION_NUMBER \
	(LOCKBROKER_VERSION_MAJOR << 16 | LOCKBROKER_VERSION_MINOR << 8 | LOCKBROKER_VERSION_PATCH)
#define LOCKBROKER_VERSION "0.3.0"

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
	LB_DEADLOCK,    /* it could never be granted: the handle holds the lock shared and asks for it exclusively, or
	                 * waiting would be a deadlock among clients of this host */
	LB_BADNAME,     /* not a lock name: 1..512 bytes of UTF-8, no control characters, not "." or ".." */
	LB_LIMIT,       /* a limit of the daemon is reached */
	LB_DENIED,      /* not allowed for this user */
	LB_MISMATCH,    /* the lock is of another kind */
	LB_UNAVAILABLE, /* the daemon cannot ask ZooKeeper now, so it is unknown whether the lock is taken */
	LB_DRAINING,    /* the daemon is stopping, or operators drain it */
	LB_REFUSED,     /* the daemon did not accept the request for another reason */
	LB_NONE,        /* lb_event(): no event came in time; lb_cancel(): nothing waits; lb_leader(): nobody leads */
	LB_CONNECTION,  /* no daemon came back in time; or it was silent for too long. All grants are void */
};

/*
 * Connects to the broker. `path` is the socket; NULL means $LOCKBROKER_SOCKET, or, if that is unset or empty,
 * /run/lockbroker/lockbroker.sock. "user" instead of a path is the broker of this user alone, "@NAME" the broker of
 * lockbrokerd@NAME.service. *ret is always set to a handle that the caller must lb_close(); after a failure it only has
 * an lb_error(). If a daemon is just being started again (the socket is there, and nobody listens, or the connection
 * ends at once), the call waits for it for 10 s, or as many milliseconds as $LOCKBROKER_OPEN_MS says (0: not at all).
 * Returns LB_OK; LB_DENIED if this user may not use the socket (the sentence names the remedy); LB_CONNECTION if there
 * is no daemon after that time, at once if there is no socket, or if the daemon did not answer within 10 s; LB_LIMIT if
 * the daemon has too many clients; LB_DRAINING; LB_REFUSED.
 */
enum lb_result lb_open(const char *path, struct lb **ret);

/* Closes the connection, which releases everything, and frees the handle. Takes NULL. Keeps errno. */
void lb_close(struct lb *lb);

/*
 * Acquires the lock, and waits without a time limit, for other holders and for ZooKeeper to be reachable. A handle that
 * already holds the lock gets it again at once, with the same token; each lb_lock() needs its lb_unlock(). *ret_token
 * (may be NULL) is the fencing token: larger than the token of every earlier grant of this lock on any host. Returns
 * LB_OK or an error, and leaves *ret_token untouched after an error. Returns LB_LOST once if an earlier grant of this
 * lock was lost and neither lb_lock() nor lb_unlock() has said so (an event does not count, because it may not have
 * been read): examine the work that was done under that grant before you continue; the next call waits as usual.
 */
enum lb_result lb_lock(struct lb *lb, const char *name, int64_t *ret_token);

/*
 * Like lb_lock(), but gives up after `timeout_ms`, with LB_TAKEN if somebody else holds the lock, with LB_UNAVAILABLE
 * if that is unknown; nothing stays queued. 0 does not wait; a negative number means no time limit; more than a year
 * counts as a year. If the daemon does not answer by `timeout_ms` plus the patience of lb_set_patience(), the connection
 * is closed: LB_CONNECTION.
 */
enum lb_result lb_lock_timeout(struct lb *lb, const char *name, int64_t timeout_ms, int64_t *ret_token);

/* lb_lock_timeout() with 0: acquires the lock if it is free at this moment; otherwise LB_TAKEN or LB_UNAVAILABLE. */
enum lb_result lb_try(struct lb *lb, const char *name, int64_t *ret_token);

/*
 * Further options. Initialize them with LB_OPTIONS, then set the members that you need:
 * `struct lb_options o = LB_OPTIONS;`.
 * size: the size of the structure that the program was compiled with; LB_OPTIONS sets it. The structure grows in later
 * versions: a library treats members beyond `size` as not set, and refuses (LB_REFUSED) a member that is set and unknown
 * to it.
 * timeout_ms: as for lb_lock_timeout(); -1.
 * lease_ms: that long after the grant the daemon takes the lock back by itself, sends LB_EVENT_LOST (reason "lease") and
 * grants the lock to the next. 0: no lease, the grant lives as long as the connection. More than a year counts as a year.
 * Acquiring the lock again never shortens its lease: the later end counts, and having no lease ends latest.
 * shared: as for lb_lock_shared(); 0.
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
 * lb_lock() with options (NULL: none). If a lock with a lease is not granted at once, its lease is renewed once when it
 * is granted, so that it counts from the grant; LB_LOST if the lease had run out before.
 */
enum lb_result lb_lock_with(struct lb *lb, const char *name, const struct lb_options *options, int64_t *ret_token);

/*
 * Restarts the lease of the grant: it ends `lease_ms` from now, whether it would have ended earlier, later, or never.
 * LB_LOST: the grant was already void, and the lock is no longer held. LB_NOTHELD.
 */
enum lb_result lb_renew(struct lb *lb, const char *name, int64_t lease_ms);

/*
 * Requests the lock and does not block: one handle may wait for hundreds of locks. LB_OK: the request is queued, and
 * exactly one event will report its outcome: GRANTED, TIMEOUT or FAILED; or lb_cancel() withdraws it. A lock that this
 * handle already holds is acquired again. LB_REFUSED if the handle already waits for that name. LB_LOST, LB_LIMIT,
 * LB_DRAINING, LB_BADNAME as for lb_lock(). lb_valid() counts a lease from this call until lb_renew() is called.
 */
enum lb_result lb_enqueue(struct lb *lb, const char *name, const struct lb_options *options);

/*
 * LB_OK: the request was waiting, and will never be granted. LB_NONE: nothing waits; if a request had been queued, its
 * event can be read.
 */
enum lb_result lb_cancel(struct lb *lb, const char *name);

/*
 * An election is a lock whose holder's `data` (1..512 bytes of text, such as an address) everybody may read. A name is
 * either a lock or an election: LB_MISMATCH.
 *
 * lb_campaign() is lb_lock_timeout() for the leadership: by the time it returns LB_OK, everybody can find the leader with
 * its data. A handle that already leads gets LB_REFUSED. The leadership ends with lb_resign(), with the connection, or
 * with a loss, as holding a lock does; lb_valid() tells for how long it is proven.
 */
enum lb_result lb_campaign(struct lb *lb, const char *name, const char *data, int64_t timeout_ms, int64_t *ret_token);

/* Does not wait, like lb_enqueue(): one event reports the outcome, or lb_resign() withdraws the request. */
enum lb_result lb_campaign_enqueue(struct lb *lb, const char *name, const char *data, int64_t timeout_ms);

/* LB_OK: the handle no longer leads, and no longer waits to lead. LB_LOST and LB_NOTHELD as for lb_unlock(). */
enum lb_result lb_resign(struct lb *lb, const char *name);

/*
 * Asks who leads now, on whichever host. LB_OK: *ret is a MAP with the keys of LEADER in PROTOCOL.md ("data", "host",
 * "token", ...), valid until the next call with this handle. LB_NONE: nobody leads.
 */
enum lb_result lb_leader(struct lb *lb, const char *name, const struct lb_reply **ret);

/*
 * From now on LB_EVENT_LEADER reports the leader: first the present leader, then each change, in order and never twice,
 * until lb_unobserve() or LB_EVENT_UNOBSERVED.
 */
enum lb_result lb_observe(struct lb *lb, const char *name);
/* LB_NONE: the election was not observed. Events that are under way may still be read. */
enum lb_result lb_unobserve(struct lb *lb, const char *name);

/*
 * lb_lock_timeout() for a reader: any number of handles, here and on other hosts, hold the lock shared at the same
 * time. A writer, which wants the lock exclusively, waits for all of them, and a reader that asks later waits for that
 * writer, on any host, even if present readers wait for the new reader. The tokens of readers that hold the lock
 * together are in no order, but larger than the tokens of all earlier writers, and smaller than the tokens of all later
 * writers. A handle that holds the lock exclusively gets it once more, exclusively. A handle that holds it shared
 * cannot get it exclusively: lb_lock(), lb_lock_timeout() and lb_try() return LB_DEADLOCK at once.
 */
enum lb_result lb_lock_shared(struct lb *lb, const char *name, int64_t timeout_ms, int64_t *ret_token);

/*
 * Turns the exclusive grant of this handle, with all its levels, into a shared one with the same token; the lock is never
 * free in between. LB_OK also if it is already shared. LB_LOST and LB_NOTHELD as for lb_unlock().
 */
enum lb_result lb_downgrade(struct lb *lb, const char *name);

/*
 * Releases one level; the last one releases the lock. LB_LOST: the grant was already void, and work that was done under
 * it since then is in doubt; the lock is no longer held. LB_NOTHELD: there was nothing to release. It never waits for
 * ZooKeeper.
 *
 * If the handle knows that it holds the lock and that its proof stands, it sends the request and returns LB_OK without
 * waiting for the answer, so that a pair of lock and unlock costs one round trip. In the rare case that the daemon
 * disagrees (the grant was lost at that moment, or its loss is among the events that were not read), the next
 * lb_lock(), or a similar function (including lb_lock_all()), or lb_unlock(), returns that error where it would return
 * LB_OK, with the name in lb_error(): the lock that this call was to acquire is not held; the lock that it was to
 * release is released. All other calls, including lb_unlock_all(), leave the error to these calls; lb_close() discards
 * it. If you must know the answer before you continue, use lb_set_deferred().
 */
enum lb_result lb_unlock(struct lb *lb, const char *name);

/*
 * Acquires `n` (1..64) locks, all or none: callers that name the same locks never deadlock, whatever the order of the
 * names. timeout_ms applies to all of them together, `shared` to each, and all leases begin when the last lock is
 * acquired; there is no data. ret_tokens (may be NULL) gets `n` tokens, in the order of the names. The locks are like
 * any others: each has its own lb_valid(), losses and lb_unlock(), and a lock that this handle already held has one
 * level more. The function returns the errors of lb_lock_with(), such as LB_TAKEN and LB_LOST, for any of the names, or
 * the error of an earlier lb_unlock(), see there; then none of the locks was acquired, and locks that were held before
 * are still held. LB_REFUSED: a name is given twice, or lb_enqueue() waits for it.
 */
enum lb_result lb_lock_all(struct lb *lb, size_t n, const char *const *names, const struct lb_options *options,
			   int64_t *ret_tokens);

/*
 * Releases one level of each lock, or, if it cannot, of none. LB_LOST, LB_NOTHELD: as for lb_unlock(), for the name with
 * which lb_error() ends; the other locks are still held. It always waits for its answer, which concerns these names only.
 */
enum lb_result lb_unlock_all(struct lb *lb, size_t n, const char *const *names);

/*
 * Acquires one of `n` (1..64) locks: a port, a device, an account. First it asks for each without waiting, beginning
 * with any of them; if none is free, it queues for each, with its place in each queue, and takes the first that is
 * granted. Before the call returns, it withdraws the other requests, and releases further grants: the program sees no
 * event of them. A lock that the handle holds already counts as free, and is acquired once more. *ret_index (may be
 * NULL) is the index in `names` of the lock that is held, *ret_token (may be NULL) its token; both are untouched after
 * an error. It has the options and the errors of lb_lock_with(), such as LB_LOST, for any of the names; after an error
 * no lock is acquired. LB_TAKEN: somebody else holds each lock; LB_UNAVAILABLE: for one of them that is unknown.
 * LB_REFUSED: a name is given twice, or lb_enqueue() waits for it. A wait that would be a deadlock is not found,
 * because any of several may end it: give it a time limit if the handle, or its lock group, holds other locks.
 */
enum lb_result lb_lock_any(struct lb *lb, size_t n, const char *const *names, const struct lb_options *options,
			   size_t *ret_index, int64_t *ret_token);

/*
 * Acquires `count` permits, all or none, of a counting semaphore whose `limit` all its users agree on (LB_MISMATCH:
 * others use another limit, or the name is a lock's). They add to the permits that this handle holds; *ret_held (may be
 * NULL) is then their number. timeout_ms, LB_TAKEN, LB_UNAVAILABLE and LB_LOST: as for lb_lock_timeout(). LB_DEADLOCK:
 * together with the permits that this handle holds, these are more permits than the limit, or waiting would be a
 * deadlock. There is no token.
 */
enum lb_result lb_acquire(struct lb *lb, const char *name, int64_t limit, int64_t count, int64_t timeout_ms,
			  int64_t *ret_held);

/*
 * lb_acquire() with options: timeout_ms, and lease_ms, after which the daemon takes back all permits that this handle
 * holds of the semaphore and sends LB_EVENT_LOST (reason "lease"). Acquiring more never shortens the lease: the later
 * end counts, and having no lease ends latest; lb_renew() restarts it. As with lb_lock_with(), the lease of permits
 * that were not granted at once is renewed once. Permits cannot have a mode or data (LB_REFUSED).
 */
enum lb_result lb_acquire_with(struct lb *lb, const char *name, int64_t limit, int64_t count,
			       const struct lb_options *options, int64_t *ret_held);

/* Releases `count` permits. LB_NOTHELD: the handle holds fewer, and none was released. LB_LOST: all were already void. */
enum lb_result lb_release(struct lb *lb, const char *name, int64_t count);

/*
 * Sets *ret_ms to how long this handle's grant is still proven to be safe; 0 if it does not hold that lock, or if the
 * proof or the lease has run out. Normally the number stays between half and two thirds of the session timeout, or is
 * the rest of the lease; in standalone mode without a lease it is a large constant. The function reads the events that
 * the daemon has sent, and the page in which the daemon keeps its proof; so it does not wait, and is right even if the
 * daemon hangs. If that page cannot be read, or is another daemon's (in another mount namespace, for example), the
 * function asks the daemon. It also asks once after the daemon has crashed and has gone on with this connection, if the
 * earlier proof has run out. LB_CONNECTION: the connection is closed, and everything that was held is lost.
 */
enum lb_result lb_valid(struct lb *lb, const char *name, int64_t *ret_ms);

/*
 * Events, which the broker sends without a request. LOST: the grant of `name` is void, stop now. JEOPARDY: ZooKeeper is
 * unreachable; grants stay safe for `ms` from now unless SAFE comes before. SAFE: the danger is over. REVOKE: somebody
 * asks for `name`, lb_unlock() it when you can; nothing is taken away. GRANTED, TIMEOUT, FAILED: the outcome of
 * lb_enqueue(). LEADER: the present leader of the election that lb_observe() observes. UNOBSERVED: the election is no
 * longer observed. OTHER: an event of a newer daemon; ignore it. In C++ the type is `struct lb_event`: there is a
 * function of that name.
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
	const char *name;   /* the lock, valid until the next call with this handle; "" if the event concerns no lock */
	/*
	 * REVOKE: why, as another user wrote it, or "stopping" if the daemon is about to end. LOST: "session", "deleted",
	 * "lease", "forced" if an operator took the lock, or "connection". FAILED, UNOBSERVED: a sentence. LEADER: the
	 * leader's host. Valid as long as `name`; otherwise ""
	 */
	const char *reason;
	const char *data;   /* LEADER: the leader's data. Valid as long as `name`; otherwise "" */
	int64_t token;      /* LOST, REVOKE, GRANTED, LEADER: the token of the grant; 0: nobody leads. Otherwise 0 */
	int64_t ms;         /* JEOPARDY: how long grants are still safe. Otherwise 0 */
	enum lb_result result; /* TIMEOUT: LB_TAKEN; FAILED, UNOBSERVED: the error of a call. Otherwise LB_OK */
};

/*
 * Returns the next event, and waits for it at most `timeout_ms` (0: not at all; negative: without a time limit).
 * LB_NONE: there was none; LB_CONNECTION: the connection is closed, and the events of all its losses were read. Events
 * that arrive during other calls are kept for this function. To wait for other things as well, poll lb_fd() for POLLIN
 * and then call this function with 0 until it returns LB_NONE; do so before the first poll, too, because an event may
 * already have been read.
 */
enum lb_result lb_event(struct lb *lb, int64_t timeout_ms, struct lb_event *ret);

/*
 * Sends any command of PROTOCOL.md that is answered at once, such as {"HOLDERS", "orders/42"}. *ret (may be NULL) is the
 * reply, valid until the next call with this handle. Error replies become results, as for all calls, and leave *ret
 * untouched. Do not use it for commands that wait, nor for UNLOCK ... LAZY: the answer must come within the patience,
 * otherwise LB_CONNECTION. LB_CONNECTION as well if the connection ends before the answer: the command may have been
 * carried out. An AUDIT of many directories needs more patience. Do not use it where there is a function:
 * lb_valid() does not know of locks that are acquired or released this way, and after HELLO or RESET the handle would get
 * no events.
 */
enum lb_result lb_command(struct lb *lb, int argc, const char *const *argv, const struct lb_reply **ret);

/*
 * Access to a reply. Every accessor but lb_reply_next() accepts NULL and any type, and returns an empty value if there is
 * none.
 */
enum lb_reply_type { LB_REPLY_NIL, LB_REPLY_TEXT, LB_REPLY_INTEGER, LB_REPLY_ARRAY, LB_REPLY_MAP };

enum lb_reply_type lb_reply_type(const struct lb_reply *reply);
/* The bytes of a TEXT, not NUL-terminated, and their number in *ret_len (may be NULL); "" for other types. */
const char *lb_reply_text(const struct lb_reply *reply, size_t *ret_len);
/* The number of an INTEGER; 0 for other types. */
int64_t lb_reply_integer(const struct lb_reply *reply);
/* The number of items of an ARRAY or of pairs of a MAP; 0 for other types. */
size_t lb_reply_count(const struct lb_reply *reply);
/* The i-th item of an ARRAY, the value of the i-th pair of a MAP; NULL if there is none. */
const struct lb_reply *lb_reply_item(const struct lb_reply *reply, size_t i);
/* The key of the i-th pair of a MAP; NULL if there is none. */
const struct lb_reply *lb_reply_key(const struct lb_reply *map, size_t i);
/* The item after this one of an ARRAY, faster than lb_reply_item(); there must be one. */
const struct lb_reply *lb_reply_next(const struct lb_reply *item);
/* The value of that key in a MAP; NULL if there is none. */
const struct lb_reply *lb_reply_field(const struct lb_reply *map, const char *key);

/*
 * The socket, to poll or to be inherited; -1 while the connection is closed. Ask again after LB_CONNECTION, LB_LOST or
 * LB_EVENT_LOST: a new connection is another socket. The library owns it: do not close it.
 */
int lb_fd(const struct lb *lb);

/*
 * How long a call waits for an answer that should come at once, and for a daemon that is not there; initially 10,000. At
 * least 1.
 */
void lb_set_patience(struct lb *lb, int64_t ms);

/* 0: from now on lb_unlock() always waits for its answer; 1, the initial setting: only if it must. */
void lb_set_deferred(struct lb *lb, int on);

/*
 * A daemon may offer to delegate locks: a lock that this handle takes again and again, without lease or data, stays with the
 * handle after lb_unlock(), until somebody else wants it. A shared lock stays with many handles, until somebody wants to
 * write. lb_lock() or lb_lock_shared(), and lb_unlock(), of that name then need no message and no system call, and
 * lb_unlock() knows without an answer whether the grant was lost. The token is the same each time, since in between nobody
 * else has held the lock or, if it is shared, has written. 0: nothing is delegated from now on; 1 is the initial setting.
 * The daemon offers delegation unless its configuration has locks.delegation = 0.
 */
void lb_set_delegation(struct lb *lb, int on);

/* The reason of the latest failure: always a sentence, valid until the next call with this handle. */
const char *lb_error(const struct lb *lb);

#ifdef __cplusplus
}
#endif

#endif
