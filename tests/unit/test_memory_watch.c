/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a control group, in files as the kernel has them, and the account that is charged for most. */
#include "io/memory_watch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/charge.h"
#include "core/port/pools.h"
#include "io/base/memory_limit.h"
#include "io/socket/socket_pools.h"

enum { USERS = 5000, MIB = 1 << 20 };

/* ---- files ---- */

static char root[] = "/tmp/lockbroker-memory-XXXXXX";

static void write_file(const char *path, const char *text)
{
	char whole[PATH_MAX];
	FILE *f;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *slash = whole + sizeof(root); (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(whole, 0700);
		*slash = '/';
	}
	f = fopen(whole, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void unified(const char *group, const char *limit, const char *used, const char *stat)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
	write_file(path, limit);
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.current", group);
	write_file(path, used);
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.stat", group);
	write_file(path, stat);
}

static int set_up(void **state)
{
	strcpy(root + sizeof(root) - sizeof("XXXXXX"), "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -r '%s'", root);
	return system(command); /* NOLINT(cert-env33-c): the name is ours */
}

static void assert_use(uint64_t used, uint64_t limit)
{
	struct memory_use use;

	assert_true(memory_limit_read(root, &use));
	assert_int_equal(use.used, used);
	assert_int_equal(use.limit, limit);
}

TEST_WITH(the_group_of_the_unit_is_read, set_up, tear_down)
{
	struct memory_use use;

	assert_false(memory_limit_read(root, &use));
	assert_int_equal(memory_limit_kills(root), 0);
	write_file("/proc/self/cgroup", "1:name=systemd:/other\n0::/system.slice/lockbrokerd.service\n");
	unified("/system.slice/lockbrokerd.service", "max\n", "500\n", "");
	assert_false(memory_limit_read(root, &use));
	unified("/system.slice/lockbrokerd.service", "1000\n", "749\n", "anon 9\nfile 100\nshmem 40\n");
	assert_use(749, 1000);
	write_file("/sys/fs/cgroup/system.slice/lockbrokerd.service/memory.events", "oom 5\noom_kill 3\noom_group_kill 7\n");
	write_file("/sys/fs/cgroup/system.slice/memory.events", "oom_kill 50\n");
	assert_int_equal(memory_limit_kills(root), 3);
}

/* The kernel takes back pages of files before it kills, but not the memory that only is shown as a file. */
TEST_WITH(pages_of_files_do_not_count_where_it_matters, set_up, tear_down)
{
	write_file("/proc/self/cgroup", "0::/a\n");
	unified("/a", "1000\n", "750\n", "anon 9\nfile 100\nkernel 5\nshmem 40\n");
	assert_use(690, 1000);
	unified("/a", "1000\n", "1000\n", "file 100\nfile_mapped 9\n");
	assert_use(1000, 1000);
}

TEST_WITH(the_group_around_it_that_is_nearest_to_its_limit_counts, set_up, tear_down)
{
	write_file("/proc/self/cgroup", "0::/slice/a\n");
	unified("/slice/a", "max\n", "300\n", "");
	unified("/slice", "1000\n", "600\n", "");
	assert_use(600, 1000);
	unified("/slice/a", "1000\n", "500\n", "");
	assert_use(600, 1000);
	unified("/slice/a", "500\n", "301\n", "");
	assert_use(301, 500);
	unified("", "100\n", "70\n", ""); /* a container's */
	assert_use(70, 100);
}

/* Docker shows a container its own group as the outermost one, and the name of the group as the host has it. */
TEST_WITH(older_systems_have_a_hierarchy_for_it, set_up, tear_down)
{
	struct memory_use use;

	write_file("/proc/self/cgroup", "4:memory:/docker/1a2b\n0::/\n");
	write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	write_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "900\n");
	assert_false(memory_limit_read(root, &use));
	write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
	write_file("/sys/fs/cgroup/memory/memory.stat", "cache 1\nshmem 1\ntotal_cache 300\ntotal_shmem 100\n");
	assert_use(700, 1000);
	write_file("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
	assert_int_equal(memory_limit_kills(root), 4);
}

TEST(a_warning_comes_again_when_less_was_used)
{
	bool warned = false;

	assert_false(memory_watch_warns(&warned, MEMORY_WATCH_PERCENT - 1));
	assert_true(memory_watch_warns(&warned, MEMORY_WATCH_PERCENT));
	assert_false(memory_watch_warns(&warned, 100));
	assert_false(memory_watch_warns(&warned, MEMORY_WATCH_FELL));
	assert_false(memory_watch_warns(&warned, MEMORY_WATCH_PERCENT));
	assert_false(memory_watch_warns(&warned, MEMORY_WATCH_FELL - 1));
	assert_true(memory_watch_warns(&warned, MEMORY_WATCH_PERCENT));
}

/* ---- accounts ---- */

static struct accounts sockets, core;
static struct memory_most most;

static int set_up_accounts(void **state)
{
	accounts_init(&sockets, SOCKET_POOLS, 1, 2);
	accounts_init(&core, POOLS, 3, 4);
	most = (struct memory_most){ 0 };
	return 0;
}

static int tear_down_accounts(void **state)
{
	accounts_deinit(&sockets);
	accounts_deinit(&core);
	memory_most_deinit(&most);
	return 0;
}

static struct charge charged(struct accounts *all, uint32_t uid, const char *unit, size_t pool, uint64_t amount)
{
	struct account *a = account_enter(all, uid, unit, strlen(unit));
	struct charge c = { 0 };

	charge_force(&c, a, pool, amount);
	account_leave(a);
	return c;
}

static const char *looked(void)
{
	memory_most_look(&most, &sockets, &core);
	return memory_most_text(&most);
}

TEST_WITH(charges_of_connections_and_of_names_are_added, set_up_accounts, tear_down_accounts)
{
	struct charge web = charged(&sockets, 0, "web.service", SOCKET_CONNECTIONS, 12);
	struct charge output = charged(&sockets, 1000, "", SOCKET_OUTPUT, MIB / 4);
	struct charge names = charged(&core, 1000, "", POOL_LOCKS, 100);
	struct charge left;

	/* 1.125 MiB against 0.5 and 0.68. */
	assert_string_equal(looked(), "user 1000 (up to 1 MiB: 0 connections, 100 names)");
	charge_give_back(&output, SOCKET_OUTPUT);
	account_keeps(account_find(&sockets, 0, "web.service", 11), SOCKET_CONNECTIONS, "7 are kept", 10);
	assert_string_equal(looked(), "user 0 (unit web.service) (up to 1 MiB: 12 connections, 0 names; 7 are kept)");
	/* Names of who has no connection any longer. */
	left = charged(&core, 2000, "", POOL_MEMORY, MIB);
	assert_string_equal(looked(), "user 2000 (up to 2 MiB: 0 connections, 0 names)");
	charge_give_back(&web, SOCKET_CONNECTIONS);
	charge_give_back(&names, POOL_LOCKS);
	charge_give_back(&left, POOL_MEMORY);
	assert_string_equal(looked(), "nobody");
}

TEST_WITH(a_look_is_bounded_and_a_pass_sees_everybody, set_up_accounts, tear_down_accounts)
{
	static struct charge charges[USERS];
	size_t looks = 0, before;

	for (uint32_t i = 0; i < USERS; i++)
		charges[i] = charged(&sockets, i + 1000, "", SOCKET_CONNECTIONS, i == USERS / 2 ? 2 : 1);
	do {
		before = most.at;
		looked();
		assert_true(most.latest || most.at - before <= MEMORY_WATCH_LOOKS);
		looks++;
	} while (!most.latest && looks < USERS);
	assert_in_range(looks, USERS / MEMORY_WATCH_LOOKS, 4 * USERS / MEMORY_WATCH_LOOKS);
	assert_string_equal(memory_most_text(&most), "user 3500 (up to 0 MiB: 2 connections, 0 names)");
	/* It stays the answer until the next pass has found who has more. */
	assert_string_equal(looked(), "user 3500 (up to 0 MiB: 2 connections, 0 names)");
	for (uint32_t i = 0; i < USERS; i++)
		charge_give_back(&charges[i], SOCKET_CONNECTIONS);
}
