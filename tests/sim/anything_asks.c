/* SPDX-License-Identifier: Apache-2.0 */
/* Requests are lines from a list, with names and numbers filled in, and now and then a word that does not belong. */
#include "anything.h"

#include <inttypes.h>
#include <stdio.h>

enum { WORD_BYTES = 520, WORDS_MAX = 12 };

/*
 * N name, W wait, E lease, T token, K small number, D data, I id of a connection, P protocol, X owner. What is there
 * twice is asked for more often.
 */
static const char *const lines[] = {
	"LOCK N",
	"LOCK N",
	"LOCK N WAIT W",
	"LOCK N WAIT W",
	"LOCK N SHARED",
	"LOCK N WAIT W SHARED",
	"LOCK N LEASE E",
	"LOCK N SHARED LEASE E WAIT W DATA D",
	"LOCK N WAIT 0",
	"LOCK N REENTER",
	"LOCK N SHARED WAIT W REENTER",
	"LOCK N SHARED WAIT 0",
	"ENQUEUE N",
	"ENQUEUE N SHARED",
	"ENQUEUE N WAIT W",
	"ENQUEUE N LEASE E SHARED",
	"ENQUEUE N REENTER",
	"CANCEL N",
	"CANCEL N",
	"UNLOCK N",
	"UNLOCK N",
	"UNLOCK N",
	"UNLOCK N",
	"UNLOCK N TOKEN T",
	"DOWNGRADE N",
	"DOWNGRADE N",
	"RENEW N E",
	"RENEW N E TOKEN T",
	"VALID N",
	"MLOCK 2 N N",
	"MLOCK 2 N N WAIT W",
	"MLOCK 3 N N N WAIT W LEASE E",
	"MLOCK 2 N N SHARED WAIT W",
	"MLOCK 2 N N SHARED",
	"MLOCK 2 N N REENTER",
	"MLOCK 3 N N N REENTER WAIT W",
	"MUNLOCK 2 N N",
	"MUNLOCK 1 N",
	"ACQUIRE N LIMIT 3 WAIT W",
	"ACQUIRE N LIMIT 3 COUNT K WAIT W",
	"RELEASE N",
	"RELEASE N COUNT K",
	"LIMIT N",
	"LIMIT N K",
	"CAMPAIGN N DATA D WAIT W",
	"CAMPAIGN N DATA D",
	"CAMPAIGN N DATA D ENQUEUE",
	"CAMPAIGN N ENQUEUE DATA D WAIT W",
	"CAMPAIGN N DATA D WAIT 0",
	"RESIGN N",
	"RESIGN N",
	"RESIGN N",
	"LEADER N",
	"OBSERVE N",
	"OBSERVE N",
	"UNOBSERVE N",
	"HOLDERS N",
	"QUEUE N",
	"WHY N",
	"REVOKE N",
	"REVOKE N D",
	"FORCEUNLOCK N",
	"HOSTS",
	"LOCKS",
	"LOCKS * ALL",
	"LOCKS * ALL COUNT K AFTER N",
	"LOCKS * ORDER wait COUNT K",
	"LOCKS * COUNT K ORDER name",
	"EVENTS WAIT W",
	"EVENTS WAIT W",
	"EVENTS WAIT 0",
	"EVENTS WAIT 0",
	"EVENTS",
	"AUDIT",
	"HELLO P",
	"HELLO P",
	"INFO",
	"PING",
	"CLIENT LIST",
	"CLIENT UNBLOCK I",
	"CLIENT UNBLOCK I",
	"CLIENT SETINFO OWNER X",
	"CLIENT SETINFO OWNER X",
	"CLIENT SETNAME D",
	"RESET",
	"RESET",
	"QUIT",
	"COMMAND COUNT",
	"LOG 2",
	"DRAIN",
	"DRAIN OFF",
	"DRAIN OFF",
	"DRAIN OFF",
	"DRAIN OFF",
	"DRAIN OFF",
	"DRAIN OFF",
	"DRAIN STATE",
};

/* The same, in the worlds that have values: V value, F the name for which each client polls under a value U of its own. */
static const char *const value_lines[] = {
	"SET F U NX PX E", "SET F U NX PX E", "SET F U NX PX E", "SET F U NX PX E", "SET F U NX PX E",
	"SET N V NX PX E", "SET N V NX PX E", "SET N V NX PX E", "SET N V PX E NX", "SET N V NX EX K",
	"SET N V XX PX E", "SET N V XX PX E", "SET N V NX", "SET N V NX", "SETNX N V", "SET N V XX", "GET N",
	"EXISTS N N", "TTL N", "PTTL N", "TOKEN N V", "DEL N", "DEL N", "DEL N N", "UNLINK N", "EXPIRE N K",
	"PEXPIRE N E",
	/* clang-format off */
	/* Scripts of redis-py and of redlock of npm. */
	"EVALSHA c3f8721cbb97f72bc19e972846bd7aaf91901658 1 N V",
	"EVALSHA a4e8783852e6b949f9ef3a97212805108459a890 1 N V E 0",
	"EVALSHA 1cac51482acf5858da00f6d685d68f886cd6b6b2 1 N V E",
	"EVALSHA e5a322e2634ef59a516e8ea150cb085afafee684 1 N V E",
	"EVALSHA e5a322e2634ef59a516e8ea150cb085afafee684 2 N N V E",
	"EVALSHA 0f0f23b9048b36752b5be114f357ba083449f908 2 N N V",
	"EVALSHA ce46f80993d5dac20dd066eb301a4e37994bdbed 2 N N V E",
	/* Of redislock with a FenceKey, and of warlock; then what says the same without a script. */
	"EVALSHA d1d9789e7d4b671cc4c2cf7db73923bbf08cd836 2 N fence V 2 E 1",
	"EVALSHA 78d3bb55c589f1b2edf66f3527f5017f8dfcd6bb 3 N E V",
	"DELIFEQ N V", "DELEX N IFEQ V",
	/* clang-format on */
};

static char words_text[WORDS_MAX][WORD_BYTES];

static int64_t number(struct world *w, char kind)
{
	struct rng *r = &w->rng;

	switch (kind) {
	case 'W':
		return rng_percent(r, 70) ? rng_between(r, 1, 300) : rng_between(r, 300, 3 * w->timeout / MS);
	case 'E':
		return rng_percent(r, 70) ? rng_between(r, 1, 100) : rng_between(r, 100, w->timeout / MS);
	case 'T':
		return (int64_t)(rng_next(r) >> (1 + rng_below(r, 62)));
	case 'P':
		return 2 + rng_below(r, 2);
	case 'I':
		return 1 + rng_below(r, 20);
	default:
		return 1 + rng_below(r, 4);
	}
}

/* What no request should have there. */
static size_t junk(struct world *w, char *out)
{
	static const char *const odd[] = {
		"",
		"-1",
		"0",
		"9223372036854775807",
		"9223372036854775808",
		"-9223372036854775808",
		"+1",
		"01",
		" 1",
		"x",
		"SHARED",
		"WAIT",
		"LEASE",
		"TOKEN",
		"31536000000",
		"31536000001",
		".",
		"..",
		"a\nb",
		"\xff\xfe",
		"LOCK",
		"m/",
		"\x7f",
	};
	uint32_t roll = rng_below(&w->rng, sizeof(odd) / sizeof(odd[0]) + 2);

	if (roll < 2) {
		memset(out, 'n', 512 + roll);
		return 512 + roll;
	}
	return (size_t)sprintf(out, "%s", odd[roll - 2]);
}

/* It has the length of a lease that no connection ends. */
static bool values_about(const char *line)
{
	return strncmp(line, "SET", 3) == 0 || strstr(line, "EXPIRE") || strncmp(line, "EVALSHA", 7) == 0;
}

/* Mostly a name of the kind that the line is about: or all would be refused most of the time. */
static const char *name(struct world *w, const char *line)
{
	bool election =
		strstr(line, "CAMPAIGN") || strstr(line, "RESIGN") || strstr(line, "LEADER") || strstr(line, "OBSERVE");
	bool semaphore = strstr(line, "ACQUIRE") || strstr(line, "RELEASE") || strstr(line, "LIMIT");
	uint32_t first = (uint32_t)(w->seed % ANY_NAMES);

	if (w->mix->kinds)
		return any_names[(first + rng_below(&w->rng, 2)) % ANY_NAMES];
	if (rng_percent(&w->rng, 15))
		return any_names[rng_below(&w->rng, ANY_NAMES)];
	if (semaphore)
		return any_names[(first + 5) % ANY_NAMES];
	if (election)
		return any_names[(first + 3 + rng_below(&w->rng, 2)) % ANY_NAMES];
	return any_names[(first + rng_below(&w->rng, 3)) % ANY_NAMES];
}

static size_t word(struct any_peer *p, const char *line, const char *pattern, size_t len, char *out)
{
	struct world *w = p->host->w;

	/* A lease of a year is too long for a run. */
	if (!(values_about(line) && (*pattern == 'E' || *pattern == 'K')) && rng_percent(&w->rng, 1))
		return junk(w, out);
	if (len > 1 || (*pattern >= '0' && *pattern <= '9'))
		return (size_t)sprintf(out, "%.*s", (int)len, pattern);
	if (*pattern == 'N')
		return (size_t)sprintf(out, "%s", name(w, line));
	if (*pattern == 'D')
		return (size_t)sprintf(out, "d%d-%u", p->host->index, p->conn);
	if (*pattern == 'V')
		return (size_t)sprintf(out, "v%u", rng_below(&w->rng, 3));
	if (*pattern == 'F')
		return (size_t)sprintf(out, "%s", any_names[w->seed % ANY_NAMES]);
	if (*pattern == 'U')
		return (size_t)sprintf(out, "u%d-%u", p->host->index, p->conn);
	if (*pattern == 'X')
		return (size_t)sprintf(out, "%s", rng_percent(&w->rng, 30) ? "" : "x");
	return (size_t)sprintf(out, "%" PRId64, number(w, *pattern));
}

size_t any_words(struct any_peer *p, struct slice *words, size_t max)
{
	struct world *w = p->host->w;
	size_t n = latches_words(p, words);
	const char *line, *at;
	bool values;

	if (n)
		return n;
	values = values_turn(w);
	do
		line = values ? value_lines[rng_below(&w->rng, sizeof(value_lines) / sizeof(value_lines[0]))]
			      : lines[rng_below(&w->rng, sizeof(lines) / sizeof(lines[0]))];
	while ((strncmp(line, "FORCE", 5) == 0 && !w->any->forces) ||
	       (strcmp(line, "LIMIT N K") == 0 && !rng_percent(&w->rng, 10)));
	at = line;
	while (*at && n < max && n < WORDS_MAX) {
		size_t len = strcspn(at, " ");

		words[n] = (struct slice){ words_text[n], word(p, line, at, len, words_text[n]) };
		at += len + (at[len] == ' ');
		n++;
	}
	return n;
}
