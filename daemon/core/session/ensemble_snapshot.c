/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/ensemble_snapshot.h"

#include <assert.h>

#include "core/port/entry.h"
#include "core/session/ensemble.h"

enum { TEXT_MAX = 4096, SHORT_LIVES_MAX = 1 << 30 };

static const int64_t TIMEOUT_MIN_NS = 100000000, TIMEOUT_MAX_NS = INT64_C(1) << 52;

static const struct field session_fields[] = {
	FIELD_NUMBER(struct session, "state", state, SESSION_NONE, SESSION_LOST),
	FIELD_FLAG(struct session, "moving", moving),
	FIELD_FLAG(struct session, "announced", announced),
	FIELD_FLAG(struct session, "had one", had_one),
	FIELD_FLAG(struct session, "was announced", was_announced),
	FIELD_FLAG(struct session, "fruitless", fruitless),
	FIELD_ANY(struct session, "id", id),
	FIELD_NUMBER(struct session, "epoch", epoch, 0, INT64_MAX - 1),
	FIELD_NUMBER(struct session, "timeout", timeout_ns, TIMEOUT_MIN_NS, TIMEOUT_MAX_NS),
	FIELD_OPEN_INSTANT(struct session, "safe until", proof.safe_until_ns),
	FIELD_OPEN_INSTANT(struct session, "told", proof.told_ns),
	FIELD_FLAG(struct session, "stalled", proof.stalled),
	FIELD_OPEN_INSTANT(struct session, "stalled until", proof.stalled_until_ns),
	FIELD_INSTANT(struct session, "write", write_ns),
	FIELD_INSTANT(struct session, "announced at", announced_ns),
	FIELD_INSTANT(struct session, "proved", proved_ns),
	FIELD_INSTANT(struct session, "beat", beat_ns),
	FIELD_INSTANT(struct session, "contact", contact_ns),
	FIELD_NUMBER(struct session, "short lives", short_lives, 0, SHORT_LIVES_MAX),
	FIELD_INSTANT(struct session, "shared", shared_ns),
	FIELD_INSTANT(struct session, "silent", silent_ns),
	FIELD_INSTANT(struct session, "complain", complain_ns),
	FIELD_TEXT(struct session, "server", server, TEXT_MAX),
};

static const struct field operation_fields[] = {
	FIELD_NUMBER(struct operations, "operations", end, 0, INT64_MAX - 1),
	FIELD_INSTANT(struct operations, "answered", answered_ns),
	FIELD_NUMBER(struct operations, "list bytes", list_bytes, 0, UINT32_MAX),
};

static const struct field budget_fields[] = {
	FIELD_NUMBER(struct budget, "packet bytes", packet_bytes, 0, UINT32_MAX),
};

static const struct field ensemble_fields[] = {
	FIELD_NUMBER(struct ensemble, "lacks", lacks, 0, UINT8_MAX),
};

static const struct field past_fields[] = {
	FIELD_NUMBER(struct past, "zxid", seen, 0, INT64_MAX),
	FIELD_NUMBER(struct past, "zxid floor", floor, 0, INT64_MAX),
	FIELD_NUMBER(struct past, "zxid of the own znode", own, 0, INT64_MAX),
	FIELD_FLAG(struct past, "looked", looked),
	FIELD_INSTANT(struct past, "gone back", complain_ns),
};

static const struct field former_fields[] = {
	FIELD_ANY(struct former, "session", session),
	FIELD_OPEN_INSTANT(struct former, "not before", not_before_ns),
	FIELD_FLAG(struct former, "own", own),
	FIELD_NUMBER(struct former, "state", state, FORMER_WAITING, FORMER_OVER),
};

static const struct field rival_fields[] = {
	FIELD_ANY(struct presence, "session", session),
	FIELD_ANY(struct presence, "mzxid", mzxid),
	FIELD_NUMBER(struct presence, "writes", writes, 0, UINT8_MAX),
	FIELD_FLAG(struct presence, "lives", lives),
	FIELD_INSTANT(struct presence, "complain", complain_ns),
	FIELD_TEXT(struct presence, "other", other, TEXT_MAX),
};

void ensemble_snapshot(const struct ensemble *zk, struct bytes *out)
{
	struct entry_writer w = entry_begin(out, "session");

	assert(!zk->session.connected && zk->operations.first == zk->operations.end);
	entry_fields(&w, FIELDS(session_fields), &zk->session);
	entry_due(&w, "due", &zk->session.timer);
	entry_fields(&w, FIELDS(operation_fields), &zk->operations);
	entry_fields(&w, FIELDS(budget_fields), &zk->budget);
	entry_fields(&w, FIELDS(past_fields), &zk->past);
	entry_fields(&w, FIELDS(ensemble_fields), zk);
	entry_due(&w, "formers due", &zk->formers.timer);
	entry_end(&w);
	for (size_t i = 0; i < zk->formers.count; i++) {
		w = entry_begin(out, "former");
		entry_fields(&w, FIELDS(former_fields), &zk->formers.list[i]);
		entry_end(&w);
	}
	w = entry_begin(out, "rival");
	entry_fields(&w, FIELDS(rival_fields), &zk->presence);
	entry_end(&w);
}

/* A session that holds something has a number, and it is proven until some instant. */
static bool is_consistent(const struct ensemble *zk)
{
	const struct session *s = &zk->session;
	bool lives = s->state == SESSION_SAFE || s->state == SESSION_JEOPARDY;

	if (zk->env->conf->standalone)
		return s->state == SESSION_SAFE && !s->id;
	if (!s->timeout_ns)
		return false;
	return !lives || (s->id && s->proof.safe_until_ns != INT64_MIN && s->proof.safe_until_ns != INT64_MAX);
}

bool session_restore(struct ensemble *zk, const struct entry *e)
{
	struct session *s = &zk->session;

	if (!entry_get_fields(e, FIELDS(session_fields), s) ||
	    !entry_get_fields(e, FIELDS(budget_fields), &zk->budget) ||
	    !entry_get_fields(e, FIELDS(past_fields), &zk->past) ||
	    !entry_get_fields(e, FIELDS(ensemble_fields), zk) ||
	    !entry_get_fields(e, FIELDS(operation_fields), &zk->operations) ||
	    !entry_get_due(e, "due", &zk->env->timers, &s->timer) ||
	    !entry_get_due(e, "formers due", &zk->env->timers, &zk->formers.timer))
		return false;
	if (!is_consistent(zk))
		return entry_refuse(e, "the state does not fit the other fields");
	zk->operations.first = zk->operations.end;
	if (s->had_one)
		window_begin(&zk->operations.window, zk->env->now_ns);
	return true;
}

bool former_restore(struct ensemble *zk, const struct entry *e)
{
	if (zk->formers.count == FORMERS_MAX)
		return entry_refuse(e, "there are too many");
	return entry_get_fields(e, FIELDS(former_fields), &zk->formers.list[zk->formers.count++]);
}

bool rival_restore(struct ensemble *zk, const struct entry *e)
{
	return entry_get_fields(e, FIELDS(rival_fields), &zk->presence);
}

void ensemble_resume(struct ensemble *zk)
{
	if (!zk->session.id && !zk->session.opening)
		effects_add(zk->env->out, EFFECT_ZK_OPEN);
	for (size_t i = 0; i < zk->formers.count; i++)
		if (zk->formers.list[i].state == FORMER_ENDING)
			effects_add(zk->env->out, EFFECT_FORMER_END)->session = zk->formers.list[i].session;
}
