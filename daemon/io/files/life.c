/* SPDX-License-Identifier: Apache-2.0 */
#include "io/files/life.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/base/file.h"

enum { LIFE_TEXT_MAX = 256 };

struct life {
	char path[PATH_MAX];
	char text[LIFE_TEXT_MAX]; /* what the file says of this process */
	bool begun, said;
	int64_t wait_ns;
};

static int say(struct life *l)
{
	int rc = file_replace(AT_FDCWD, l->path, slice_of(l->text), false);

	l->said = rc == 0;
	return rc;
}

static struct life *make(const struct life_conf *conf)
{
	struct life *l = mem_new(sizeof(*l));

	l->wait_ns = INT64_MIN;
	snprintf(l->text, sizeof(l->text), "%s %s\n", conf->boot_id, conf->page);
	if (snprintf(l->path, sizeof(l->path), "%s/life", conf->statedir) < (int)sizeof(l->path))
		return l;
	life_free(l);
	return NULL;
}

int life_open(struct life **ret_life, const struct life_conf *conf, int64_t now_ns)
{
	char left[LIFE_TEXT_MAX], ended[LIFE_TEXT_MAX];
	size_t boot = strlen(conf->boot_id);
	struct life *l = make(conf);
	int rc = 0;

	if (!l)
		return -ENAMETOOLONG;
	*ret_life = l;
	file_read(AT_FDCWD, l->path, O_NOFOLLOW | O_NONBLOCK, left, sizeof(left));
	snprintf(ended, sizeof(ended), "%s %s\n", conf->boot_id, conf->ended);
	if (strncmp(left, conf->boot_id, boot) != 0 || left[boot] != ' ') {
		unlink(l->path);
	} else if (strcmp(left, ended) != 0) {
		/* The file says so until the wait is over: this process may be killed before. */
		l->wait_ns = now_ns + LIFE_BELIEF_NS;
	} else if (conf->goes_on) {
		rc = say(l);
		l->begun = true;
	} else {
		unlink(l->path);
	}
	return rc;
}

int life_continue(struct life **ret_life, const struct life_conf *conf)
{
	struct life *l = make(conf);
	char left[LIFE_TEXT_MAX];

	if (!l)
		return -ENAMETOOLONG;
	*ret_life = l;
	file_read(AT_FDCWD, l->path, O_NOFOLLOW | O_NONBLOCK, left, sizeof(left));
	l->begun = l->said = strcmp(left, l->text) == 0;
	return 0;
}

int64_t life_wait_ns(const struct life *l)
{
	return l ? l->wait_ns : INT64_MIN;
}

bool life_begins(struct life *l, int64_t now_ns)
{
	int rc;

	if (!l || l->begun)
		return true;
	if (now_ns < l->wait_ns)
		return false;
	/* Once: without the file everything works, and only a kill of all processes would need it. */
	l->begun = true;
	rc = say(l);
	if (rc < 0)
		log_warning(cannot_use, LOG_FIELDS("what=%s error=%v", "life", strerror(-rc)),
			    "cannot write the file life in daemon.statedir: %s; if all processes of the daemon are killed "
			    "and daemon.rundir is emptied, a lock may be held twice for a second",
			    strerror(-rc));
	return true;
}

bool life_is_missing(const struct life *l)
{
	return l && l->said && access(l->path, F_OK) < 0 && errno == ENOENT;
}

int life_again(struct life *l)
{
	return say(l);
}

void life_over(const struct life *l, int64_t now_ns)
{
	if (l && now_ns >= l->wait_ns)
		unlink(l->path);
}

void life_free(struct life *l)
{
	mem_free(l);
}
