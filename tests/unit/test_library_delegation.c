/* SPDX-License-Identifier: Apache-2.0 */
/* The library's side of a delegation, with a daemon of a page: what is a message, what is none, and what a loss comes to. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "client-lib/lockbroker.h"
#include "protocol/delegation.h"

enum { WORDS = 16, NAMES = 100, FAR_NS = 1000000000 };

struct lock {
	char name[32];
	unsigned slot; /* delegated there, or held there until UNLOCK; 0: none */
	bool delegated, lost;
	int depth;
};

/* It answers one connection after another; all of its state is looked at between two requests. */
static struct {
	char dir[32], socket[64], session_path[64];
	int listener, connection;
	pthread_t thread;
	pthread_mutex_t mutex;
	bool offers, refuses, no_slots;
	int requests, asked; /* all, and DELEGATE */
	struct delegation_page *page;
	int page_fd;
	struct session_page *session;
	struct session_view view;
	struct lock locks[NAMES];
	uint64_t generation;
	int64_t token;
} fake;

static const uint8_t id[SESSION_PAGE_ID_BYTES] = { 0xab };

static struct lock *lock_of(const char *name)
{
	int i = 0;

	while (fake.locks[i].name[0] && strcmp(fake.locks[i].name, name) != 0)
		i++;
	assert_true(i < NAMES);
	snprintf(fake.locks[i].name, sizeof(fake.locks[i].name), "%s", name);
	return &fake.locks[i];
}

static struct delegation_slot *slot_of(const struct lock *lock)
{
	return &fake.page->slots[lock->slot - 1];
}

static void recall(struct lock *lock)
{
	if (!lock->delegated)
		return;
	lock->delegated = false;
	if (delegation_recall(slot_of(lock)) == DELEGATION_HELD)
		lock->depth = 1;
	else
		lock->slot = 0;
}

static void lose(struct lock *lock)
{
	lock->lost = lock->depth > 0;
	if (lock->delegated && delegation_lose(slot_of(lock)) == DELEGATION_HELD)
		lock->lost = true;
	else
		lock->slot = 0;
	lock->delegated = false;
	lock->depth = 0;
}

static void end_slot(struct lock *lock)
{
	if (lock->slot)
		delegation_end(slot_of(lock));
	lock->slot = 0;
	lock->delegated = false;
}

/* Nobody may be there any longer to read the answer to an unlock. */
static void say(const char *text)
{
	(void)!send(fake.connection, text, strlen(text), MSG_NOSIGNAL);
}

static void say_integer(int64_t n)
{
	char text[32];

	snprintf(text, sizeof(text), ":%lld\r\n", (long long)n);
	say(text);
}

static void say_page(void)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	char text[] = ":63\r\n";
	struct iovec bytes = { .iov_base = text, .iov_len = 5 };
	struct msghdr message = {
		.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fake.page_fd, sizeof(int));
	assert_int_equal(sendmsg(fake.connection, &message, MSG_NOSIGNAL), 5);
}

static void hello(void)
{
	char text[512], hex[SESSION_PAGE_ID_CHARS + 1];

	session_page_id_text(id, hex);
	snprintf(text, sizeof(text), "%%3\r\n$12\r\nsession_page\r\n$%zu\r\n%s\r\n$15\r\nsession_page_id\r\n$32\r\n%s\r\n"
		 "$10\r\ndelegation\r\n:%d\r\n", strlen(fake.session_path), fake.session_path, hex, fake.offers ? 63 : 0);
	say(text);
}

static bool tells_loss(struct lock *lock)
{
	if (!lock->lost)
		return false;
	lock->lost = false;
	end_slot(lock);
	say("-LOST It is lost.\r\n");
	return true;
}

static void heed_lock(struct lock *lock, unsigned slot)
{
	recall(lock);
	if (tells_loss(lock))
		return;
	if (slot && !fake.no_slots && lock->depth == 0) {
		struct delegation_terms terms = { .generation = ++fake.generation, .token = ++fake.token,
						  .epoch = fake.view.epoch, .grant_min_ns = FAR_NS / 2 };

		for (int i = 0; i < NAMES; i++)
			assert_true(fake.locks[i].slot != slot);
		memcpy(terms.page_id, id, sizeof(id));
		lock->slot = slot;
		lock->delegated = true;
		delegation_grant(slot_of(lock), &terms, DELEGATION_HELD);
	} else if (lock->depth++ == 0) {
		fake.token++;
	}
	say_integer(fake.token);
}

static void heed_unlock(struct lock *lock)
{
	recall(lock);
	if (tells_loss(lock))
		return;
	if (lock->depth == 0) {
		say("-NOTHELD It is not held.\r\n");
		return;
	}
	if (--lock->depth == 0)
		end_slot(lock);
	say_integer(lock->depth);
}

static void heed(char words[WORDS][64], int n)
{
	unsigned slot = 0;

	for (int i = 2; i + 1 < n; i++)
		if (strcmp(words[i], "SLOT") == 0)
			slot = (unsigned)atoi(words[i + 1]);
	fake.requests++;
	if (strcmp(words[0], "HELLO") == 0) {
		hello();
	} else if (strcmp(words[0], "DELEGATE") == 0) {
		fake.asked++;
		if (fake.refuses)
			say("-DENIED There are no delegations here.\r\n");
		else
			say_page();
	} else if (strcmp(words[0], "LOCK") == 0) {
		heed_lock(lock_of(words[1]), slot);
	} else if (strcmp(words[0], "UNLOCK") == 0) {
		heed_unlock(lock_of(words[1]));
	} else {
		say("-ERR What?\r\n");
	}
}

static void serve(FILE *in)
{
	char line[32], words[WORDS][64];
	int n;

	while (fgets(line, sizeof(line), in) && line[0] == '*') {
		n = atoi(line + 1);
		for (int i = 0; i < n; i++) {
			size_t len;

			assert_non_null(fgets(line, sizeof(line), in));
			len = (size_t)atoi(line + 1);
			assert_true(n <= WORDS && len < 62);
			assert_int_equal(fread(words[i], 1, len + 2, in), len + 2);
			words[i][len] = '\0';
		}
		pthread_mutex_lock(&fake.mutex);
		heed(words, n);
		pthread_mutex_unlock(&fake.mutex);
	}
}

static void *run(void *unused)
{
	while ((fake.connection = accept(fake.listener, NULL, NULL)) >= 0) {
		FILE *in = fdopen(fake.connection, "r");

		serve(in);
		fclose(in);
		memset(fake.locks, 0, sizeof(fake.locks));
	}
	return unused;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * FAR_NS + t.tv_nsec;
}

static void prove(uint64_t epoch, int64_t ns)
{
	fake.view = (struct session_view){ .epoch = epoch, .state = SESSION_SAFE, .safe_until_ns = now_ns() + ns };
	session_page_write(fake.session, &fake.view);
}

static int begin(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.offers = true;
	pthread_mutex_init(&fake.mutex, NULL);
	strcpy(fake.dir, "/tmp/lbdelegationXXXXXX");
	assert_non_null(mkdtemp(fake.dir));
	snprintf(fake.socket, sizeof(fake.socket), "%s/sock", fake.dir);
	snprintf(fake.session_path, sizeof(fake.session_path), "%s/session", fake.dir);
	fd = open(fake.session_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, SESSION_PAGE_BYTES), 0);
	fake.session = mmap(NULL, SESSION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	session_page_init(fake.session, id);
	prove(1, 1000LL * FAR_NS);
	fake.page_fd = memfd_create("page", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fake.page_fd, DELEGATION_PAGE_BYTES), 0);
	fake.page = mmap(NULL, DELEGATION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fake.page_fd, 0);
	delegation_init(fake.page);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", fake.socket);
	fake.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fake.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fake.listener, 5), 0);
	return pthread_create(&fake.thread, NULL, run, NULL);
}

static int end(void **state)
{
	(void)state;
	shutdown(fake.listener, SHUT_RDWR);
	shutdown(fake.connection, SHUT_RDWR);
	pthread_join(fake.thread, NULL);
	close(fake.listener);
	close(fake.page_fd);
	munmap(fake.session, SESSION_PAGE_BYTES);
	munmap(fake.page, DELEGATION_PAGE_BYTES);
	unlink(fake.socket);
	unlink(fake.session_path);
	return rmdir(fake.dir);
}

static struct lb *opened(void)
{
	struct lb *lb;

	assert_int_equal(lb_open(fake.socket, &lb), LB_OK);
	return lb;
}

static int64_t locked(struct lb *lb, const char *name)
{
	int64_t token = -1;

	assert_int_equal(lb_lock(lb, name, &token), LB_OK);
	return token;
}

/* How many requests the daemon has answered; a lazy unlock may not have come yet, a lock has. */
static int pair(struct lb *lb, const char *name)
{
	int before = fake.requests;

	locked(lb, name);
	assert_int_equal(lb_unlock(lb, name), LB_OK);
	return fake.requests - before;
}

static void delegate(struct lb *lb, const char *name)
{
	for (int i = 0; i < 3; i++)
		pair(lb, name);
	assert_int_equal(fake.asked, 1);
}

static void with_fake(void (*act)(struct lock *), const char *name)
{
	pthread_mutex_lock(&fake.mutex);
	act(lock_of(name));
	pthread_mutex_unlock(&fake.mutex);
}

static void what_was_taken_often_is_taken_without_a_message(void **state)
{
	struct lb *lb = opened();
	int64_t token, ms;
	int before;

	(void)state;
	delegate(lb, "a");
	before = fake.requests;
	token = locked(lb, "a");
	assert_int_equal(lb_valid(lb, "a", &ms), LB_OK);
	assert_true(ms > 1000);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(locked(lb, "a"), token);
		assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	}
	assert_int_equal(fake.requests, before);
	assert_int_equal(fake.page->slots[lock_of("a")->slot - 1].uses, 1001);
	assert_int_equal(lb_unlock(lb, "a"), LB_NOTHELD);
	lb_close(lb);
}

static void what_was_taken_back_is_asked_for(void **state)
{
	struct lb *lb = opened();
	int64_t token;

	(void)state;
	delegate(lb, "a");
	token = locked(lb, "a");
	lb_unlock(lb, "a");
	with_fake(recall, "a");
	assert_true(locked(lb, "a") > token);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(pair(lb, "a"), 0);
	lb_close(lb);
}

static void what_is_wanted_is_released_by_message(void **state)
{
	struct lb *lb = opened();
	int before;

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	with_fake(recall, "a");
	before = fake.requests;
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(fake.requests, before + 1);
	assert_int_equal(lock_of("a")->depth, 0);
	assert_int_equal(pair(lb, "a"), 1);
	assert_int_equal(pair(lb, "a"), 0);
	lb_close(lb);
}

static void a_loss_is_told_by_the_unlock(void **state)
{
	struct lb *lb = opened();

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	with_fake(lose, "a");
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
	assert_int_equal(pair(lb, "a"), 1);
	/* While it is free, nobody has lost anything. */
	with_fake(lose, "a");
	assert_int_equal(pair(lb, "a"), 1);
	lb_close(lb);
}

static void a_lost_session_is_told_by_the_unlock(void **state)
{
	struct lb *lb = opened();
	int before;

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	prove(2, 1000LL * FAR_NS);
	with_fake(lose, "a");
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
	assert_int_equal(pair(lb, "a"), 1);
	/* The page is written first, and the word later. */
	prove(3, 1000LL * FAR_NS);
	assert_int_equal(pair(lb, "a"), 1);
	locked(lb, "a");
	prove(4, 1000LL * FAR_NS);
	before = fake.requests;
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(fake.requests, before + 1);
	lb_close(lb);
}

/* Nobody but the daemon can tell whether it is a loss. */
static void after_the_end_of_the_proof_the_unlock_asks(void **state)
{
	struct lb *lb = opened();
	int64_t ms = 1;
	int before;

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	prove(1, 0);
	assert_int_equal(lb_valid(lb, "a", &ms), LB_OK);
	assert_int_equal(ms, 0);
	before = fake.requests;
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(fake.requests, before + 1);
	lb_close(lb);
}

static void a_proof_that_is_too_short_is_not_enough_to_enter(void **state)
{
	struct lb *lb = opened();

	(void)state;
	delegate(lb, "a");
	prove(1, FAR_NS / 4);
	assert_int_not_equal(pair(lb, "a"), 0);
	prove(1, 1000LL * FAR_NS);
	pair(lb, "a");
	assert_int_equal(pair(lb, "a"), 0);
	lb_close(lb);
}

static void a_second_level_is_asked_for(void **state)
{
	struct lb *lb = opened();
	int64_t token;

	(void)state;
	delegate(lb, "a");
	token = locked(lb, "a");
	assert_int_equal(locked(lb, "a"), token);
	assert_int_equal(lock_of("a")->depth, 2);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_equal(lb_unlock(lb, "a"), LB_NOTHELD);
	lb_close(lb);
}

static void who_is_refused_does_not_ask_again(void **state)
{
	struct lb *lb = opened();

	(void)state;
	fake.refuses = true;
	for (int i = 0; i < 10; i++)
		pair(lb, "a");
	assert_int_equal(fake.asked, 1);
	lb_close(lb);
}

static void where_nothing_is_offered_nothing_is_asked(void **state)
{
	struct lb *lb;

	(void)state;
	fake.offers = false;
	lb = opened();
	for (int i = 0; i < 10; i++)
		pair(lb, "a");
	assert_int_equal(fake.asked, 0);
	lb_close(lb);
}

static void a_program_can_do_without(void **state)
{
	struct lb *lb = opened();

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	lb_set_delegation(lb, 0);
	assert_int_equal(lb_unlock(lb, "a"), LB_OK);
	assert_int_not_equal(pair(lb, "a"), 0);
	assert_int_not_equal(pair(lb, "a"), 0);
	lb_set_delegation(lb, 1);
	pair(lb, "a");
	assert_int_equal(pair(lb, "a"), 0);
	lb_close(lb);
}

static void there_may_be_more_names_than_slots(void **state)
{
	struct lb *lb = opened();
	char name[16];

	(void)state;
	delegate(lb, "n0");
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 70; i++) {
			snprintf(name, sizeof(name), "n%d", i);
			pair(lb, name);
		}
	assert_int_equal(pair(lb, "n62"), 0);
	assert_int_not_equal(pair(lb, "n69"), 0);
	with_fake(recall, "n5");
	assert_int_not_equal(pair(lb, "n69"), 0);
	assert_int_equal(pair(lb, "n69"), 0);
	assert_int_not_equal(pair(lb, "n5"), 0);
	lb_close(lb);
}

static void a_child_has_no_delegations(void **state)
{
	struct lb *lb = opened();
	int status, before;
	pid_t child;

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	before = fake.requests;
	child = fork();
	if (child == 0) {
		/* It goes on in place of its parent, which does nothing meanwhile. */
		bool well = lb_unlock(lb, "a") == LB_OK && lb_lock(lb, "a", NULL) == LB_OK && lb_unlock(lb, "a") == LB_OK;

		lb_close(lb);
		_exit(well ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(fake.requests > before);
	lb_close(lb);
}

static void the_end_of_the_connection_is_a_loss(void **state)
{
	struct lb *lb = opened();

	(void)state;
	delegate(lb, "a");
	locked(lb, "a");
	with_fake(recall, "a");
	shutdown(fake.connection, SHUT_RDWR);
	assert_int_equal(lb_unlock(lb, "a"), LB_LOST);
	fake.asked = 0;
	delegation_init(fake.page);
	pair(lb, "a");
	delegate(lb, "a");
	assert_int_equal(pair(lb, "a"), 0);
	lb_close(lb);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(what_was_taken_often_is_taken_without_a_message),
		TEST(what_was_taken_back_is_asked_for),
		TEST(what_is_wanted_is_released_by_message),
		TEST(a_loss_is_told_by_the_unlock),
		TEST(a_lost_session_is_told_by_the_unlock),
		TEST(after_the_end_of_the_proof_the_unlock_asks),
		TEST(a_proof_that_is_too_short_is_not_enough_to_enter),
		TEST(a_second_level_is_asked_for),
		TEST(who_is_refused_does_not_ask_again),
		TEST(where_nothing_is_offered_nothing_is_asked),
		TEST(a_program_can_do_without),
		TEST(there_may_be_more_names_than_slots),
		TEST(a_child_has_no_delegations),
		TEST(the_end_of_the_connection_is_a_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
