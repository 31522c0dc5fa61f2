/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/outbox.h"

#include <assert.h>

#include "base/mem.h"
#include "core/hosts/hosts.h"
#include "core/port/entry.h"

enum { TIME_DIGITS = 13 };

/* A delete that ZooKeeper refused is tried again, not at once. */
static const int64_t REFUSED_PAUSE_NS = 1000000000;

void outbox_path(const struct hosts *h, struct slice host, struct bytes *out)
{
	bytes_format(out, "%s/.mail/%s", h->env->conf->root, host);
}

bool letter_host_valid(struct slice host)
{
	const struct slice allowed = SLICE("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

	if (!host.len || host.len > LETTER_HOST_MAX || host.data[0] == '.')
		return false;
	for (size_t i = 0; i < host.len; i++)
		if (!memchr(allowed.data, host.data[i], allowed.len))
			return false;
	return true;
}

static const struct {
	const char *word;
	size_t most; /* letters under way with which one of the kind is still posted */
} kinds[] = {
	[LETTER_REVOKE] = { "revoke", LETTER_REVOKES_MAX },
	[LETTER_FORCE] = { "force", LETTER_FORCES_MAX },
	[LETTER_VALUE] = { "bearer", LETTER_REVOKES_MAX },
	[LETTER_ANSWER] = { "answer", LETTERS_MAX },
};

const char *letter_kind_word(enum letter_kind kind)
{
	return kinds[kind].word;
}

bool outbox_room(const struct hosts *h, enum letter_kind kind, const struct client *who, size_t count)
{
	const struct account *payer = who ? who->account : &h->env->accounts.nobody;
	bool shared = kind == LETTER_REVOKE || kind == LETTER_VALUE;
	bool privileged = !shared || (who && who->privileged);
	size_t path_max = strlen(h->env->conf->root) + sizeof("/.mail/") + LETTER_HOST_MAX + 48;

	return h->outbox_count + count <= kinds[kind].most &&
	       (!shared || account_may(payer, POOL_LETTERS, count, privileged)) &&
	       account_may(payer, POOL_PATHS, count * path_max, privileged);
}

void letter_ledger_add(struct letter *l)
{
	struct ledger *ledger = l->hosts->env->ledger;
	struct bytes text = { 0 };
	struct entry_writer w = { .out = &text };
	struct ledger_letter *r;

	if (!ledger)
		return;
	entry_text(&w, "path", bytes_view(&l->path));
	entry_number(&w, "id at", (int64_t)l->id_at);
	r = ledger_take(ledger, sizeof(*r) + text.len);
	r->head.number = l->number;
	r->pairs = (uint32_t)(w.values / 2);
	r->length = (uint32_t)text.len;
	memcpy(r->text, text.data, text.len);
	ledger_publish(ledger, &r->head, LEDGER_LETTER);
	l->record = r;
	bytes_free(&text);
}

static void letter_ledger_remove(struct letter *l)
{
	struct ledger *ledger = l->hosts->env->ledger;

	if (ledger)
		ledger_drop(ledger, &l->record->head);
}

void letter_abandon(struct letter *l)
{
	if (l->target)
		l->target->letter = NULL;
	if (l->forward)
		l->forward->letter = NULL;
	l->target = NULL;
	l->forward = NULL;
}

static void letter_free(struct letter *l)
{
	struct hosts *h = l->hosts;

	letter_abandon(l);
	heap_unset(&h->env->timers, &l->timer);
	TAILQ_REMOVE(&h->letters, l, link);
	letter_ledger_remove(l);
	h->outbox_count--;
	charge_give_back(&l->room, POOL_LETTERS);
	charge_give_back(&l->path_charge, POOL_PATHS);
	bytes_free(&l->path);
	mem_free(l);
}

static void send(struct letter *l, enum effect_type type, enum operation_kind kind)
{
	struct operation_request r = {
		.op = { .kind = kind, .query = l->number },
		.path = bytes_view(&l->path),
		.create = ZK_EPHEMERAL,
	};

	operation_send(l->hosts->ensemble, type, &r);
}

/* <milliseconds since 1970>-<session>-<nonce>: in order of age, as far as the clocks of the senders agree. */
static void write_id(struct hosts *h, struct bytes *out)
{
	char digits[TIME_DIGITS];
	int64_t ms = env_wall_ms(h->env, h->env->now_ns);

	for (int i = TIME_DIGITS - 1; i >= 0; i--) {
		digits[i] = (char)('0' + ms % 10);
		ms /= 10;
	}
	bytes_append(out, digits, sizeof(digits));
	ledger_number(h->env->ledger, CEILING_NONCE, ++h->locks->directories->last_nonce);
	bytes_format(out, "-%x-%x", h->ensemble->session.id, h->locks->directories->last_nonce);
}

void letter_add(struct letter *l)
{
	struct hosts *h = l->hosts;
	struct account *payer = l->payer ? l->payer : &h->env->accounts.nobody;

	TAILQ_INSERT_TAIL(&h->letters, l, link);
	h->outbox_count++;
	charge_force(&l->room, payer, POOL_LETTERS, 1);
	charge_force(&l->path_charge, payer, POOL_PATHS, l->path.len);
}

struct letter *outbox_post(struct hosts *h, struct slice host, struct account *payer)
{
	struct letter *l = mem_new(sizeof(*l));

	l->hosts = h;
	l->payer = payer;
	l->number = ++h->outbox_last;
	ledger_number(h->env->ledger, CEILING_LETTER, l->number);
	l->timer.kind = TIMER_LETTER;
	outbox_path(h, host, &l->path);
	bytes_char(&l->path, '/');
	l->id_at = l->path.len;
	write_id(h, &l->path);
	letter_add(l);
	letter_ledger_add(l);
	h->env->stats.mail_posted_total++;
	heap_set(&h->env->timers, &l->timer, h->env->now_ns + h->ensemble->session.timeout_ns);
	send(l, EFFECT_ZK_CREATE, OPERATION_LETTER_POST);
	return l;
}

void letter_withdraw(struct letter *l)
{
	l->state = LETTER_WITHDRAWING;
	if (l->deleting || !l->hosts->ensemble->session.connected)
		return;
	l->deleting = true;
	heap_unset(&l->hosts->env->timers, &l->timer);
	send(l, EFFECT_ZK_DELETE, OPERATION_LETTER_WITHDRAW);
}

struct slice letter_id(const struct letter *l)
{
	return (struct slice){ l->path.data + l->id_at, l->path.len - l->id_at };
}

void outbox_was_read(struct hosts *h, struct slice id)
{
	struct letter *l;

	TAILQ_FOREACH(l, &h->letters, link)
		if (slice_eq(letter_id(l), id))
			break;
	/* A letter that is being deleted is freed with the answer to its delete. */
	if (l && l->state != LETTER_WITHDRAWING)
		letter_free(l);
}

/* A letter that is being withdrawn reports with the answer to its delete. */
static struct letter_news posted(struct letter *l, enum zk_code code)
{
	struct letter_news news = { l->target, l->forward, LETTER_FAILED };

	if (code == ZK_UNKNOWN) {
		letter_abandon(l);
		letter_withdraw(l);
	} else if (l->state != LETTER_POSTING) {
		news.target = NULL;
		news.forward = NULL;
	} else if (code == ZK_OK) {
		l->state = LETTER_POSTED;
		news.fate = LETTER_STANDS;
	} else {
		news.fate = code == ZK_NONODE ? LETTER_NO_BOX : LETTER_FAILED;
		letter_free(l);
	}
	return news;
}

static struct letter_news withdrawn(struct letter *l, enum zk_code code)
{
	struct letter_news news = { l->target, l->forward, LETTER_FAILED };

	l->deleting = false;
	if (code == ZK_UNKNOWN) {
		news.target = NULL;
		news.forward = NULL;
	} else if (code == ZK_OK || code == ZK_NONODE) {
		news.fate = code == ZK_OK ? LETTER_WITHDRAWN : LETTER_TAKEN;
		letter_free(l);
	} else {
		letter_abandon(l);
		heap_set(&l->hosts->env->timers, &l->timer, l->hosts->env->now_ns + REFUSED_PAUSE_NS);
	}
	return news;
}

struct letter_news outbox_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;
	struct letter *l;

	TAILQ_FOREACH(l, &h->letters, link)
		if (l->number == op->query)
			return op->kind == OPERATION_LETTER_POST ? posted(l, code) : withdrawn(l, code);
	return (struct letter_news){ 0 };
}

void outbox_connected(struct hosts *h)
{
	struct letter *l;

	TAILQ_FOREACH(l, &h->letters, link)
		if (l->state == LETTER_WITHDRAWING)
			letter_withdraw(l);
}

void outbox_forget_all(struct hosts *h)
{
	struct letter *l;

	while ((l = TAILQ_FIRST(&h->letters)))
		letter_free(l);
	assert(!h->outbox_count);
}
