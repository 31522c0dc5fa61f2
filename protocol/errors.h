/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The error codes that a client can see, in one list. A reply is "-CODE sentence"; PROTOCOL.md says when each comes. */
#pragma once

#define PROTOCOL_ERRORS(X) \
	X(ERR, "the request is malformed, unknown or not allowed here") \
	X(BADNAME, "not a lock name: 1..512 bytes of UTF-8, no control characters, not . or ..") \
	X(HELD, "this connection holds that lock already, and did not say REENTER") \
	X(NOTHELD, "this client does not hold that lock") \
	X(LOST, "the grant is void: the session was lost, the znode deleted, or its lease ran out") \
	X(DEADLOCK, "granting this could never happen") \
	X(LIMIT, "a limit of the daemon is reached") \
	X(DENIED, "not allowed for this user") \
	X(MISMATCH, "the lock is of another kind, flavour or limit") \
	X(UNAVAILABLE, "there is no connection to ZooKeeper") \
	X(DRAINING, "the daemon is stopping, or is drained") \
	X(NOPROTO, "unsupported protocol version") \
	X(NOSCRIPT, "no script of that hash is known")

enum error_code {
#define X(name, text) ERROR_##name,
	PROTOCOL_ERRORS(X)
#undef X
	ERROR_COUNT
};

/* The word on the wire, for example "NOTHELD". Static. */
const char *error_word(enum error_code code);
