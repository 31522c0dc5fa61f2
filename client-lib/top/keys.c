/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <curses.h>

#include "client-lib/cli/reply_text.h"
#include "client-lib/top/top.h"

enum {
	KEY_ESCAPE = 27,
	KEY_RETURN = '\r',
	KEY_LINE = '\n',
	KEY_DELETE = 127,
	KEY_CTRL_H = 8,
	KEY_CTRL_U = 21,
	KEY_CTRL_L = 12
};

/* ---- the filter ---- */

static void drop_character(char *text)
{
	size_t len = strlen(text);

	while (len && ((unsigned char)text[--len] & 0xc0) == 0x80)
		;
	text[len] = '\0';
}

/* Names are UTF-8 without control characters. */
static void add_character(char *text, wint_t key)
{
	size_t len = strlen(text);
	char character[MB_LEN_MAX];
	int bytes = wctomb(character, (wchar_t)key);

	if (key < ' ' || key == KEY_DELETE || bytes <= 0 || len + (size_t)bytes >= TOP_FILTER_MAX)
		return;
	memcpy(text + len, character, (size_t)bytes);
	text[len + (size_t)bytes] = '\0';
}

static void edit_filter(struct top *t, bool is_function, wint_t key)
{
	if (key == KEY_RETURN || key == KEY_LINE || (is_function && key == KEY_ENTER)) {
		t->prompt = PROMPT_NONE;
	} else if (key == KEY_ESCAPE) {
		t->prompt = PROMPT_NONE;
		memcpy(t->filter, t->filter_before, sizeof(t->filter));
	} else if ((is_function && key == KEY_BACKSPACE) || key == KEY_DELETE || key == KEY_CTRL_H) {
		drop_character(t->filter);
	} else if (key == KEY_CTRL_U) {
		*t->filter = '\0';
	} else if (!is_function) {
		add_character(t->filter, key);
	}
	*t->selected = '\0';
	t->offset = 0;
	top_hurry(t);
}

/* ---- what is shown ---- */

static void sort_by(struct top *t, enum top_order order)
{
	t->order = order;
	t->stopped = false;
	*t->selected = '\0';
	t->offset = 0;
	top_hurry(t);
}

static void select_row(struct top *t, size_t row)
{
	*t->selected = '\0';
	if (row && row < t->row_count)
		top_set_name(t->selected, reply_field(t->rows[row].lock, "name"));
}

/* By so many rows; the first row is whatever comes first later, any other one stays with its lock. */
static void move_by(struct top *t, long rows)
{
	long at = (long)(t->open ? t->detail_offset : top_selected(t)) + rows,
	     last = t->open ? LONG_MAX : (long)t->row_count - 1;

	at = at > last ? last : at;
	at = at < 0 ? 0 : at;
	if (t->open)
		t->detail_offset = (size_t)at;
	else
		select_row(t, (size_t)at);
}

static void open_lock(struct top *t)
{
	if (t->open || !t->row_count)
		return;
	top_name(t, t->opened);
	t->open = true;
	t->opening++;
	t->detail_offset = 0;
	kept_free(&t->why);
	kept_free(&t->queue);
	top_hurry(t);
}

static void go_back(struct top *t)
{
	if (t->helps)
		t->helps = false;
	else
		t->open = false;
}

static void begin_release(struct top *t)
{
	if (*top_name(t, t->releasing))
		t->prompt = PROMPT_RELEASE;
}

static void begin_filter(struct top *t)
{
	memcpy(t->filter_before, t->filter, sizeof(t->filter));
	t->open = t->helps = t->stopped = false;
	t->prompt = PROMPT_FILTER;
}

static void function_key(struct top *t, wint_t key)
{
	long page = (long)top_page();

	switch (key) {
	case KEY_UP:
		move_by(t, -1);
		break;
	case KEY_DOWN:
		move_by(t, 1);
		break;
	case KEY_PPAGE:
		move_by(t, -page);
		break;
	case KEY_NPAGE:
		move_by(t, page);
		break;
	case KEY_HOME:
		move_by(t, -INT_MAX);
		break;
	case KEY_END:
		move_by(t, t->open ? page : INT_MAX);
		break;
	case KEY_ENTER:
	case KEY_RIGHT:
		open_lock(t);
		break;
	case KEY_LEFT:
	case KEY_BACKSPACE:
		go_back(t);
		break;
	default:
		break;
	}
}

static bool letter_key(struct top *t, wint_t key)
{
	static const wint_t orders[TOP_ORDERS] = {
		[TOP_WAIT] = 'w', [TOP_WAITERS] = 'n', [TOP_RATE] = 'g', [TOP_NAME] = 'a'
	};

	for (size_t i = 0; i < TOP_ORDERS; i++)
		if (key == orders[i])
			sort_by(t, (enum top_order)i);
	switch (key) {
	case 'q':
		return false;
	case '/':
		begin_filter(t);
		break;
	case 'r':
		begin_release(t);
		break;
	case ' ':
		t->stopped = !t->stopped;
		top_hurry(t);
		break;
	case '?':
	case 'h':
		t->helps = !t->helps;
		break;
	case KEY_RETURN:
	case KEY_LINE:
		open_lock(t);
		break;
	case KEY_ESCAPE:
	case KEY_DELETE:
		go_back(t);
		break;
	case KEY_CTRL_L:
		clearok(curscr, TRUE);
		break;
	default:
		break;
	}
	return true;
}

static bool key_typed(struct top *t, bool is_function, wint_t key)
{
	*t->message = '\0';
	switch (t->prompt) {
	case PROMPT_FILTER:
		edit_filter(t, is_function, key);
		return true;
	case PROMPT_RELEASE:
		t->prompt = PROMPT_NONE;
		if (!is_function && key == 'y')
			top_revoke(t);
		return true;
	case PROMPT_NONE:
		break;
	}
	if (!is_function)
		return letter_key(t, key);
	function_key(t, key);
	return true;
}

bool top_keys(struct top *t)
{
	wint_t key;
	int kind;

	while ((kind = get_wch(&key)) != ERR)
		if (!key_typed(t, kind == KEY_CODE_YES, key))
			return false;
	return true;
}
