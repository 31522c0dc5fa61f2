/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_daemon.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/unit.h"

enum { WORDS = 16 };

struct fake_daemon fake;

static const uint8_t id[SESSION_PAGE_ID_BYTES] = { 0xab };

struct fake_lock *fake_lock_of(const char *name)
{
	int i = 0;

	while (fake.locks[i].name[0] && strcmp(fake.locks[i].name, name) != 0)
		i++;
	assert_true(i < NAMES);
	snprintf(fake.locks[i].name, sizeof(fake.locks[i].name), "%s", name);
	return &fake.locks[i];
}

static struct delegation_slot *slot_of(const struct fake_lock *lock)
{
	return &fake.page->slots[lock->slot - 1];
}

void fake_recall(struct fake_lock *lock)
{
	if (!lock->delegated)
		return;
	lock->delegated = false;
	if (delegation_recall(slot_of(lock)) == DELEGATION_HELD)
		lock->depth = 1;
	else
		lock->slot = 0;
}

void fake_lose(struct fake_lock *lock)
{
	lock->lost = lock->depth > 0;
	if (lock->delegated && delegation_lose(slot_of(lock)) == DELEGATION_HELD)
		lock->lost = true;
	else
		lock->slot = 0;
	lock->delegated = false;
	lock->depth = 0;
}

static void end_slot(struct fake_lock *lock)
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
	assert_int_equal(unit_send_fds(fake.connection, ":63\r\n", 5, &fake.page_fd, 1, MSG_NOSIGNAL), 5);
}

static void hello(void)
{
	char text[512], hex[SESSION_PAGE_ID_CHARS + 1];

	session_page_id_text(id, hex);
	snprintf(text, sizeof(text), "%%3\r\n$12\r\nsession_page\r\n$%zu\r\n%s\r\n$15\r\nsession_page_id\r\n$32\r\n%s\r\n"
		 "$10\r\ndelegation\r\n:%d\r\n", strlen(fake.session_path), fake.session_path, hex, fake.offers ? 63 : 0);
	say(text);
}

static bool tells_loss(struct fake_lock *lock)
{
	if (!lock->lost)
		return false;
	lock->lost = false;
	end_slot(lock);
	say("-LOST It is lost.\r\n");
	return true;
}

static void heed_lock(struct fake_lock *lock, unsigned slot)
{
	fake_recall(lock);
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

static void heed_unlock(struct fake_lock *lock)
{
	fake_recall(lock);
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
	if (strcmp(words[0], "DOWNGRADE") != 0)
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
		heed_lock(fake_lock_of(words[1]), slot);
	} else if (strcmp(words[0], "UNLOCK") == 0) {
		heed_unlock(fake_lock_of(words[1]));
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

/* What stdio itself calls, ThreadSanitizer does not see. */
static ssize_t hear(void *unused, char *bytes, size_t len)
{
	return recv(fake.connection, bytes, len, 0);
}

static void begin(int connection)
{
	pthread_mutex_lock(&fake.mutex);
	fake.connection = connection;
	memset(fake.locks, 0, sizeof(fake.locks));
	pthread_mutex_unlock(&fake.mutex);
}

static void *run(void *unused)
{
	int fd;

	while ((fd = accept(fake.listener, NULL, NULL)) >= 0) {
		FILE *in = fopencookie(NULL, "r", (cookie_io_functions_t){ .read = hear });

		begin(fd);
		serve(in);
		fclose(in);
		begin(-1);
		close(fd);
	}
	return unused;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * FAR_NS + t.tv_nsec;
}

void fake_prove(uint64_t epoch, int64_t ns)
{
	fake.view = (struct session_view){ .epoch = epoch, .state = SESSION_SAFE, .safe_until_ns = now_ns() + ns };
	session_page_write(fake.session, &fake.view);
}

int fake_begin(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

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
	fake_prove(1, 1000LL * FAR_NS);
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

int fake_end(void **state)
{
	shutdown(fake.listener, SHUT_RDWR);
	pthread_mutex_lock(&fake.mutex);
	shutdown(fake.connection, SHUT_RDWR);
	pthread_mutex_unlock(&fake.mutex);
	pthread_join(fake.thread, NULL);
	close(fake.listener);
	close(fake.page_fd);
	munmap(fake.session, SESSION_PAGE_BYTES);
	munmap(fake.page, DELEGATION_PAGE_BYTES);
	unlink(fake.socket);
	unlink(fake.session_path);
	return rmdir(fake.dir);
}

void fake_with(void (*act)(struct fake_lock *), const char *name)
{
	pthread_mutex_lock(&fake.mutex);
	act(fake_lock_of(name));
	pthread_mutex_unlock(&fake.mutex);
}
