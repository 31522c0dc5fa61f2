/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon leaves to its successor in their file: sessions, who holds something under them, connections. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "io/base/parcel.h"
#include "io/base/peer.h"
#include "saved_fixture.h"

TEST(nothing_is_left_by_nobody)
{
	struct stat st;

	daemon_begins();
	assert_int_equal(left_count(), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | S_ISVTX | 0600);
}

TEST(a_living_holder_has_until_the_last_instant)
{
	daemon_dies(1, getpid(), own_start());
	daemon_begins();
	left_is(0, 1, NOW + 10 * SECOND);
	assert_true(saved_holders_live(s));
	assert_int_equal(saved_held_session(s), 1);
}

TEST(a_dead_holder_has_nothing)
{
	daemon_dies(1, getpid(), own_start() + 1);
	daemon_begins();
	left_is(0, 1, 0);
	assert_int_equal(saved_held_session(s), 0);
}

TEST(who_cannot_be_told_lives)
{
	daemon_dies(1, 0, 0);
	daemon_begins();
	left_is(0, 1, NOW + 10 * SECOND);
}

TEST(who_let_go_is_no_holder)
{
	daemon_begins();
	session_is(1, 10 * SECOND);
	connected(3, getpid(), own_start(), -1);
	saved_holder(s, 3, true);
	saved_holder(s, 3, false);
	daemon_begins();
	left_is(0, 1, 0);
}

TEST(the_instant_only_grows_under_one_session)
{
	daemon_begins();
	session_is(1, 10 * SECOND);
	saved_safe_until(s, NOW + 8 * SECOND);
	saved_safe_until(s, 0);
	session_is(1, 9 * SECOND); /* connected again */
	connected(0, getpid(), own_start(), -1);
	saved_holder(s, 0, true);
	daemon_begins();
	left_is(0, 1, NOW + 10 * SECOND);
	session_is(2, 3 * SECOND);
	session_is(4, 2 * SECOND); /* a new one begins anew */
	connected(0, getpid(), own_start(), -1);
	saved_holder(s, 0, true);
	daemon_begins();
	assert_int_equal(left_count(), 2);
	left_is(0, 1, NOW + 10 * SECOND);
	left_is(1, 4, NOW + 2 * SECOND);
}

TEST(an_instant_of_another_clock_is_bounded)
{
	daemon_begins();
	session_is(1, 100 * SECOND);
	connected(0, getpid(), own_start(), -1);
	saved_holder(s, 0, true);
	daemon_begins();
	left_is(0, 1, NOW + 15 * SECOND);
}

/* The server may grant another one when the session is continued. */
TEST(the_bound_is_the_timeout_that_was_granted_last)
{
	daemon_begins();
	session_is(1, 3000 * SECOND);
	saved_session(s, &(struct zk_identity){ .session = 1, .password = "secret of 1" }, 20 * SECOND);
	connected(0, getpid(), own_start(), -1);
	saved_holder(s, 0, true);
	daemon_begins();
	left_is(0, 1, NOW + 20 * SECOND);
}

TEST(what_is_freed_or_over_stays_so)
{
	daemon_dies(1, getpid(), own_start());
	daemon_dies(2, getpid(), own_start());
	daemon_begins();
	left_is(0, 1, NOW + 10 * SECOND);
	left_is(1, 2, NOW + 10 * SECOND);
	saved_free_former(s, 1);
	saved_end_former(s, 2);
	daemon_begins();
	assert_int_equal(left_count(), 1);
	left_is(0, 1, 0);
}

TEST(the_oldest_of_too_many_is_forgotten)
{
	int64_t id;

	for (id = 1; id <= FORMERS_MAX + 2; id++)
		daemon_dies(id, getpid(), own_start());
	daemon_begins();
	assert_int_equal(left_count(), FORMERS_MAX);
	left_is(0, 3, NOW + 10 * SECOND);
	left_is(FORMERS_MAX - 1, FORMERS_MAX + 2, NOW + 10 * SECOND);
}

TEST(what_is_given_up_is_left_until_it_is_over)
{
	struct zk_identity identity;

	daemon_begins();
	session_is(1, 3 * SECOND);
	saved_add_former(s, 1);
	left_is(0, 1, NOW + 3 * SECOND);
	session_is(2, 5 * SECOND);
	saved_add_former(s, 2);
	daemon_begins();
	assert_int_equal(left_count(), 2);
	left_is(0, 1, NOW + 3 * SECOND);
	left_is(1, 2, NOW + 5 * SECOND);
	saved_end_former(s, 1);
	assert_false(saved_identity(s, 1, &identity));
	daemon_begins();
	assert_int_equal(left_count(), 1);
}

/* Killed between the two stores: it stands there twice. */
TEST(what_is_given_up_when_the_kill_comes_is_left_once)
{
	daemon_begins();
	session_is(1, 3 * SECOND);
	saved_add_former(s, 1);
	saved_session(s, &(struct zk_identity){ .session = 1, .password = "secret of 1" }, 15 * SECOND);
	daemon_begins();
	assert_int_equal(left_count(), 1);
	left_is(0, 1, NOW + 3 * SECOND);
}

TEST(an_ended_session_is_not_left)
{
	daemon_begins();
	session_is(1, SECOND);
	saved_session_ended(s);
	daemon_begins();
	assert_int_equal(left_count(), 0);
}

/* It may have come here with a copy of a disk, from a host whose daemon lives. */
TEST(another_boot_is_nobodys_predecessor)
{
	daemon_dies(1, getpid(), own_start());
	conf.boot_id = "another";
	daemon_begins();
	assert_int_equal(left_count(), 0);
}

TEST(another_name_is_nobodys_predecessor)
{
	daemon_dies(1, getpid(), own_start());
	conf.host = "beta";
	daemon_begins();
	assert_int_equal(left_count(), 0);
}

/* ---- who lives ---- */

/* Who connected has ended, and a child of it has the connection. */
TEST(whoever_has_the_connection_of_an_ended_holder_is_one)
{
	int child = daemon_is_killed(1, getpid(), own_start() + 1, true);

	daemon_begins();
	left_is(0, 1, NOW + 10 * SECOND);
	assert_true(saved_holders_live(s));
	close(child);
	assert_false(saved_holders_live(s));
}

/* The daemon did not live to learn which connection that is. */
TEST(a_connection_that_is_not_known_may_be_left_to_a_child)
{
	close(daemon_is_killed(1, getpid(), own_start() + 1, false));
	daemon_begins();
	left_is(0, 1, NOW + 10 * SECOND);
	assert_true(saved_holders_live(s));
}

/* A question about each of thousands would take seconds where there are many sockets. */
TEST(many_ended_holders_are_looked_at_little_by_little)
{
	enum { MANY = 4000 };
	int of_all[2], of_last[2], calls = 0;

	conf.clients = MANY;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, of_all), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, of_last), 0);
	daemon_begins();
	session_is(1, 10 * SECOND);
	for (uint32_t i = 0; i < MANY; i++) {
		connected(i, getpid(), own_start() + 1, i == MANY - 1 ? of_last[0] : of_all[0]);
		saved_holder(s, i, true);
	}
	for (int i = 0; i < MANY; i++)
		saved_look(s);
	daemon_ends();
	close(of_all[0]);
	close(of_all[1]);
	daemon_begins();
	left_is(0, 1, NOW + 10 * SECOND);
	close(of_last[0]);
	close(of_last[1]);
	while (saved_holders_live(s))
		calls++;
	assert_in_range(calls, 2, MANY);
}

/* It may have read until when it is safe. */
TEST(a_living_holder_that_closed_its_connection_is_one)
{
	daemon_dies(1, getpid(), own_start());
	daemon_begins();
	assert_true(saved_holders_live(s));
}

/* ---- going on ---- */

static const struct saved_conn who = { .pid = 10, .uid = 20, .gid = 30, .start = 40, .peer = 50 };

/* With the file that was made ahead, or -1. */
static void goes_on(int ahead)
{
	struct saved_previous *left = read_left();

	assert_int_equal(saved_continue(&s, &conf, left, ahead), 0);
	saved_previous_free(left);
}

/* What a process that goes on finds, and that nothing has changed before the new file has its name. */
TEST(who_goes_on_has_session_and_formers)
{
	struct saved_previous *left;
	struct zk_identity identity;
	struct stat before, after;

	daemon_dies(1, getpid(), own_start());
	daemon_dies(2, getpid(), own_start());
	assert_int_equal(stat(path, &before), 0);
	left = read_left();
	assert_true(left->here);
	assert_int_equal(left->session.id, 2);
	assert_int_equal(saved_continue(&s, &conf, left, -1), 0);
	saved_previous_free(left);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(saved_previous_read(&left, &conf), -EBUSY);
	assert_int_equal(saved_publish(s), 0);
	assert_int_equal(stat(path, &after), 0);
	assert_int_not_equal(before.st_ino, after.st_ino);
	assert_int_equal(saved_previous_read(&left, &conf), -EBUSY);
	left_is(0, 1, NOW + 10 * SECOND);
	assert_int_equal(left_count(), 1);
	assert_true(saved_present(s, &identity));
	assert_int_equal(identity.session, 2);
	assert_string_equal(identity.password, "secret of 2");
}

TEST(who_goes_on_and_is_killed_at_once_leaves_what_there_was)
{
	struct saved_previous *left;

	daemon_dies(1, getpid(), own_start());
	goes_on(-1);
	saved_connected(s, 1, &who, -1);
	daemon_ends();
	left = read_left();
	assert_int_equal(left->session.id, 1);
	assert_int_equal(left->conns[1].pid, 0);
	saved_previous_free(left);
}

/* A file that was made ahead becomes the new one; it has no name before, so a process that ends leaves nothing. */
TEST(a_file_that_was_made_ahead_becomes_the_new_one)
{
	int ahead, other;
	struct stat made, named;

	daemon_begins();
	assert_non_null(saved_grow(s, 256 << 10));
	daemon_ends();
	ahead = saved_ahead(dir);
	other = saved_ahead(dir);
	assert_true(ahead >= 0 && other >= 0);
	assert_int_equal(close(other), 0);
	goes_on(ahead);
	assert_true(saved_room(s) >= 256 << 10);
	assert_non_null(saved_grow(s, 128 << 10));
	assert_int_equal(saved_publish(s), 0);
	assert_int_equal(fstat(ahead, &made), 0);
	assert_int_equal(stat(path, &named), 0);
	assert_int_equal(made.st_ino, named.st_ino);
	assert_int_equal(named.st_nlink, 1);
	assert_int_equal(named.st_mode & 0777, 0600);
	for (size_t room = saved_room(s); room > 0; room = saved_room(s)) {
		assert_true(saved_cut(s, 64 << 10));
		assert_true(room - saved_room(s) <= 64 << 10);
	}
	assert_false(saved_cut(s, 64 << 10));
}

/* Without one, or with one that cannot be named there, the file is made when it is needed. */
TEST(a_file_that_cannot_be_named_is_made_anew)
{
	struct saved_previous *left;
	int elsewhere = memfd_create("elsewhere", MFD_CLOEXEC);

	assert_int_equal(saved_ahead(dir), -1);
	assert_int_equal(saved_ahead("/nowhere"), -1);
	daemon_dies(1, getpid(), own_start());
	assert_true(elsewhere >= 0);
	goes_on(elsewhere);
	assert_int_equal(saved_publish(s), 0);
	daemon_ends();
	left = read_left();
	assert_int_equal(left->session.id, 1);
	saved_previous_free(left);
}

/* Connections keep their numbers, also if there may be fewer of them by now. */
TEST(a_table_is_never_smaller_than_the_one_before)
{
	daemon_dies(1, getpid(), own_start());
	conf.clients = 2;
	goes_on(-1);
	assert_int_equal(saved_clients(s), CLIENTS);
}

TEST(a_connection_is_found_as_it_was)
{
	struct saved_previous *left;
	int ends[2];

	daemon_begins();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	saved_connected(s, 1, &who, ends[0]);
	*saved_keep(s, 1, true) = 0;
	saved_connected(s, 2, &who, ends[1]);
	saved_keep(s, 2, true);
	saved_gone(s, 2);
	saved_connected(s, 3, &who, -1);
	daemon_ends();
	left = read_left();
	assert_true(left->conns[1].cookie == peer_cookie(ends[0]) && left->conns[1].kept && !left->conns[1].busy);
	assert_true(left->conns[1].pid == 10 && left->conns[1].uid == 20 && left->conns[1].gid == 30);
	assert_true(left->conns[1].start == 40 && left->conns[1].peer == 50);
	assert_false(left->conns[2].cookie || left->conns[2].kept);
	assert_true(left->conns[3].pid == 10 && !left->conns[3].cookie);
	saved_previous_free(left);
	close(ends[0]);
	close(ends[1]);
}

/* Something is in the way of the new name: what the earlier process left is not true for ever. */
TEST(a_file_that_stays_behind_is_spoiled)
{
	char in_the_way[128];
	struct saved_previous *left;

	daemon_dies(1, getpid(), own_start());
	left = read_left();
	assert_non_null(left->file);
	assert_int_equal(saved_continue(&s, &conf, left, -1), 0);
	saved_previous_free(left);
	snprintf(in_the_way, sizeof(in_the_way), "%s/saved.new", dir);
	assert_int_equal(unlink(in_the_way), 0);
	assert_int_equal(saved_publish(s), -ENOENT);
	saved_spoil_earlier(s);
	daemon_ends();
	left = read_left();
	assert_null(left->file);
	saved_previous_free(left);
}

/* What a hand-over passes on: the sessions, the file with its lock, and who held something under an earlier session. */
TEST(a_parcel_has_what_the_file_has)
{
	struct parcel p = { 0 };
	struct saved_previous *left;
	struct saved *before;
	struct zk_identity identity;

	daemon_dies(1, getpid(), own_start());
	daemon_begins();
	session_is(2, 5 * SECOND);
	saved_pack(s, &p);
	p.fds[0] = dup(p.fds[0]); /* a process of its own */
	assert_int_equal(saved_previous_unpack(&left, &p), 0);
	before = s;
	assert_int_equal(saved_continue(&s, &conf, left, -1), 0);
	saved_previous_free(left);
	assert_int_equal(saved_publish(s), 0);
	left_is(0, 1, NOW + 10 * SECOND);
	assert_int_equal(saved_held_session(s), 1);
	assert_true(saved_holders_live(s));
	assert_true(saved_present(s, &identity));
	assert_int_equal(identity.session, 2);
	saved_close(before);
	parcel_free(&p);
}

TEST(a_parcel_without_the_file_is_refused)
{
	struct parcel p = { 0 };
	struct entry_writer w;
	struct saved_previous *left;

	assert_int_equal(saved_previous_unpack(&left, &p), -EBADMSG);
	w = entry_begin(&p.text, "saved");
	parcel_fd(&p, &w, "fd", open("/dev/null", O_RDONLY));
	entry_end(&w);
	assert_int_equal(saved_previous_unpack(&left, &p), -EBADMSG);
	parcel_free(&p);
}
