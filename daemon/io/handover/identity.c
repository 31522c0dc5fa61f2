/* SPDX-License-Identifier: Apache-2.0 */
#include "io/handover/identity.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "io/base/parcel.h"
#include "io/conf/conf.h"
#include "io/zookeeper/secret.h"

/* The second one says what a key of the configuration is, by its name there. */
static const struct {
	const char *name;
	size_t at;
} keys[] = {
	{ "daemon.socket", offsetof(struct conf, socket) },     { "daemon.rundir", offsetof(struct conf, rundir) },
	{ "daemon.statedir", offsetof(struct conf, statedir) }, { "zookeeper.root", offsetof(struct conf, broker.root) },
	{ "zookeeper.host", offsetof(struct conf, broker.host) },
	{ "daemon.operator_socket", offsetof(struct conf, operator_socket) },
};

static const char *value_of(const struct conf *conf, size_t key)
{
	return *(const char *const *)((const char *)conf + keys[key].at);
}

static void write_prefixes(struct bytes *out, const struct conf *conf)
{
	for (size_t i = 0; i < conf->broker.prefix_count; i++) {
		const struct broker_prefix *prefix = &conf->broker.prefixes[i];

		bytes_text(out, prefix->prefix);
		bytes_char(out, '\n');
		bytes_int(out, prefix->flavour);
		bytes_char(out, '\n');
		bytes_text(out, prefix->path);
		bytes_char(out, '\n');
	}
}

void identity_pack(struct bytes *text, const struct identity *self)
{
	struct entry_writer w = entry_begin(text, "identity");
	struct bytes prefixes = { 0 };

	write_prefixes(&prefixes, self->conf);
	entry_text(&w, "version", SLICE(LOCKBROKERD_VERSION));
	entry_number(&w, "pid", getpid());
	entry_number(&w, "uid", geteuid());
	entry_number(&w, "standalone", self->standalone);
	if (self->secret && !self->standalone)
		entry_text(&w, "owner", slice_of(secret_owner(self->secret)));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		entry_text(&w, keys[i].name, slice_of(value_of(self->conf, i)));
	entry_text(&w, "prefixes", bytes_view(&prefixes));
	entry_end(&w);
	bytes_free(&prefixes);
}

static bool key_differs(const struct entry *e, const struct conf *conf, size_t key, char *error)
{
	struct slice was = parcel_get_text(e, keys[key].name), is = slice_of(value_of(conf, key));

	if (slice_eq(was, is))
		return false;
	snprintf(
		error, IDENTITY_ERROR_MAX,
		"the configuration now has %s = %s, and the running daemon has %.*s: that changes only when the daemon is "
		"stopped and started",
		keys[key].name, is.data, (int)was.len, was.data);
	return true;
}

static bool prefixes_differ(const struct entry *e, const struct conf *conf, char *error)
{
	struct bytes prefixes = { 0 };
	bool same;

	write_prefixes(&prefixes, conf);
	same = slice_eq(bytes_view(&prefixes), parcel_get_text(e, "prefixes"));
	bytes_free(&prefixes);
	if (!same)
		snprintf(
			error, IDENTITY_ERROR_MAX,
			"the configuration now has other prefixes than the running daemon: they change only when the daemon is "
			"stopped and started");
	return !same;
}

/* The session's znodes belong to that owner. A process without its secret can neither keep the locks nor release them. */
static bool owner_differs(const struct entry *e, const struct secret *secret, char *error)
{
	struct slice owner = parcel_get_text(e, "owner");

	if (!owner.len || secret_is_of(secret, owner))
		return false;
	snprintf(
		error, IDENTITY_ERROR_MAX,
		"zookeeper.auth_file lacks the first line of the secret in use, to which the running daemon's znodes belong: "
		"keep that line below the new one (lockbrokerd(8), CREDENTIALS), or stop the daemon and start it");
	return true;
}

static bool differs(const struct entry *e, const struct identity *self, char *error)
{
	int64_t uid = e->pairs ? parcel_get_number(e, "uid") : -1;

	error[0] = '\0';
	/* What root had may go on as a user with less rights, when the service gets a user of its own. */
	if (uid < 0)
		snprintf(error, IDENTITY_ERROR_MAX, "the running daemon does not say who it is");
	else if (uid != 0 && uid != (int64_t)geteuid())
		snprintf(error, IDENTITY_ERROR_MAX, "the running daemon has uid %" PRId64 ", and the new process %ld", uid,
			 (long)geteuid());
	else if (parcel_get_number(e, "standalone") != self->standalone)
		snprintf(error, IDENTITY_ERROR_MAX, "only one of the two processes is standalone");
	if (error[0])
		return true;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (key_differs(e, self->conf, i, error))
			return true;
	return prefixes_differ(e, self->conf, error) || owner_differs(e, self->secret, error);
}

bool identity_differs(struct slice text, const struct identity *self, char error[IDENTITY_ERROR_MAX])
{
	struct parcel p = { .text = { .data = (char *)(uintptr_t)text.data, .len = text.len } };
	struct entry e;
	bool different;

	parcel_find(&p, "identity", &e);
	different = differs(&e, self, error);
	p.text = (struct bytes){ 0 }; /* it is not ours */
	parcel_free(&p);
	return different;
}
