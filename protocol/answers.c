/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "answers.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define OF(command) (UINT64_C(1) << COMMAND_##command)
#define FAILED (UINT64_C(1) << SOURCE_FAILED)
#define UNOBSERVED (UINT64_C(1) << SOURCE_UNOBSERVED)

_Static_assert(SOURCE_COUNT < 64, "a bit for each");

static const uint64_t TAKES = OF(LOCK) | OF(MLOCK) | OF(ENQUEUE) | OF(CAMPAIGN);
static const uint64_t SETS = OF(SET) | OF(SETNX);
static const uint64_t SHOWS = OF(GET) | OF(EXISTS) | OF(TTL) | OF(PTTL) | OF(TOKEN);
static const uint64_t KEEPS = OF(DEL) | OF(UNLINK) | OF(EXPIRE) | OF(PEXPIRE);
static const uint64_t RUNS = OF(EVAL) | OF(EVALSHA);
static const uint64_t DROPS = OF(DELIFEQ) | OF(DELEX);
static const uint64_t HAS = OF(UNLOCK) | OF(MUNLOCK) | OF(DOWNGRADE) | OF(RENEW) | OF(RESIGN) | OF(RELEASE);

/* The sources of one code; 0: any. */
static uint64_t sources_of(enum error_code code)
{
	switch (code) {
	case ERROR_ERR:
	case ERROR_LIMIT:
	case ERROR_COUNT:
		return 0;
	case ERROR_BADNAME:
		return TAKES | HAS | OF(CANCEL) | OF(ACQUIRE) | OF(LIMIT) | OF(VALID) | OF(LEADER) | OF(OBSERVE) |
		       OF(UNOBSERVE) | OF(HOLDERS) | OF(QUEUE) | OF(WHY) | OF(REVOKE) | OF(FORCEUNLOCK) | OF(ACCESS) |
		       SETS | SHOWS | KEEPS | RUNS | DROPS;
	case ERROR_HELD:
		return TAKES;
	case ERROR_NOTHELD:
		return HAS | OF(TOKEN);
	case ERROR_LOST:
		return TAKES | HAS | OF(ACQUIRE);
	case ERROR_DEADLOCK:
		return TAKES | OF(ACQUIRE);
	case ERROR_DENIED:
		return OF(FORCEUNLOCK) | OF(LIMIT) | OF(CLIENT) | OF(RESTART) | OF(RELOAD) | OF(CONFIG) | OF(ACCESS) |
		       OF(ACCOUNTS) | OF(LOG) | OF(DRAIN) | OF(AUDIT) | OF(REVOKE) | OF(DELEGATE) |
		       TAKES | OF(ACQUIRE) | OF(OBSERVE) | OF(LEADER) | SETS | KEEPS | RUNS;
	case ERROR_MISMATCH:
		return TAKES | OF(UNLOCK) | OF(MUNLOCK) | OF(DOWNGRADE) | OF(RENEW) | OF(RESIGN) | OF(ACQUIRE) | OF(LIMIT) |
		       OF(LEADER) | OF(OBSERVE) | SETS | RUNS | FAILED | UNOBSERVED;
	case ERROR_UNAVAILABLE:
		return OF(LOCK) | OF(MLOCK) | OF(CAMPAIGN) | OF(ACQUIRE) | OF(LIMIT) | OF(LEADER) | OF(OBSERVE) |
		       OF(HOLDERS) | OF(QUEUE) | OF(LOCKS) | OF(HOSTS) | OF(AUDIT) | OF(REVOKE) | OF(FORCEUNLOCK) |
		       SETS | SHOWS | KEEPS | RUNS | DROPS | OF(DELEGATE) | FAILED | UNOBSERVED;
	case ERROR_DRAINING:
		return TAKES | SETS | RUNS | OF(ACQUIRE) | OF(OBSERVE) | OF(AUDIT) | OF(RESTART) | OF(RELOAD) |
		       OF(DRAIN) | FAILED;
	case ERROR_NOPROTO:
		return OF(HELLO);
	case ERROR_NOSCRIPT:
		return OF(EVALSHA);
	}
	return 0;
}

bool answers_any(enum error_code code)
{
	assert((size_t)code < ERROR_COUNT);
	return sources_of(code) == 0;
}

bool answers_error(int source, enum error_code code)
{
	assert(source >= 0 && source < SOURCE_COUNT);
	return answers_any(code) || sources_of(code) >> source & 1;
}
