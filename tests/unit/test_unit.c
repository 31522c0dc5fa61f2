/* SPDX-License-Identifier: Apache-2.0 */
/* Which systemd unit a process belongs to, from the path of its control group. */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/unit_name.h"
#include "io/base/peer.h"

static void is_below(const char *root, const char *cgroup, const char *unit)
{
	struct slice found = unit_of(slice_of(cgroup), slice_of(root));

	if (!slice_eq(found, slice_of(unit)))
		fail_msg("%s has unit \"%.*s\", not \"%s\"", cgroup, (int)found.len, found.data, unit);
}

static void is(const char *cgroup, const char *unit)
{
	is_below("", cgroup, unit);
}

TEST(the_first_component_that_is_no_slice)
{
	is("0::/system.slice/web.service\n", "web.service");
	is("0::/system.slice/system-getty.slice/getty@tty1.service\n", "getty@tty1.service");
	is("0::/user.slice/user-1000.slice/session-3.scope\n", "session-3.scope");
	is("0::/init.scope\n", "init.scope");
	is("0::/web.service", "web.service");
}

TEST(never_what_was_delegated)
{
	/* Whoever has a service manager of their own calls its units as they like. */
	is("0::/user.slice/user-1000.slice/user@1000.service/app.slice/web.service\n", "user@1000.service");
	is("0::/user.slice/user-1000.slice/user@1000.service/system.slice/web.service\n", "user@1000.service");
	is("0::/system.slice/docker-0123.scope/system.slice/web.service\n", "docker-0123.scope");
	is("0::/system.slice/web.service/worker.service\n", "web.service");
}

TEST(what_is_no_unit_is_none)
{
	static const char *const paths[] = {
		"",
		"0::/\n",
		"0::/system.slice\n",
		"0::/system.slice/\n",
		"0::/docker/web.service\n",
		"0::/system.slice/../web.service\n",
		"0::/system.slice//web.service\n",
		"0::/system.slice/.service\n",
		"0::/system.slice/@a.service\n",
		"0::/system.slice/a b.service\n",
		"0::/system.slice/a\xc3\xa4.service\n",
		"0::/system.slice/web.timer\n",
		"0::web.service\n",
		"1:cpu:/system.slice/web.service\n",
		"1:cpu,name=systemd:/system.slice/web.service\n",
		"5:x:/0::/web.service\n",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		is(paths[i], "");
}

TEST(a_name_may_be_as_long_as_systemd_allows)
{
	char path[400], unit[300];

	memset(unit, 'a', sizeof(unit));
	memcpy(unit + UNIT_NAME_MAX - 8, ".service", 9);
	snprintf(path, sizeof(path), "0::/system.slice/%s\n", unit);
	is(path, unit);
	unit[UNIT_NAME_MAX - 8] = 'a';
	memcpy(unit + UNIT_NAME_MAX - 7, ".service", 9);
	snprintf(path, sizeof(path), "0::/system.slice/%s\n", unit);
	is(path, "");
}

TEST(older_systems_have_a_hierarchy_of_systemds_own)
{
	is("8:pids:/other.service\n1:name=systemd:/system.slice/web.service\n", "web.service");
	/* The unified one is there, but nobody uses it. */
	is("1:name=systemd:/system.slice/web.service\n0::/\n", "web.service");
	is("0::/system.slice/web.service\n1:name=systemd:/\n", "web.service");
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER_ID "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

/* Docker, Podman, containerd and CRI-O, with a manager of control groups that asks systemd. */
TEST(a_container_in_a_scope_is_that_scope)
{
	is("0::/system.slice/docker-" ID ".scope\n", "docker-" ID ".scope");
	is("0::/machine.slice/libpod-" ID ".scope/container\n", "libpod-" ID ".scope");
	is("0::/machine.slice/machine-libpod_pod_" OTHER_ID ".slice/libpod-" ID ".scope\n", "libpod-" ID ".scope");
	is("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod2c48913c_b29f_11e7_9350_020968147796.slice/"
	   "cri-containerd-" ID ".scope\n",
	   "cri-containerd-" ID ".scope");
	is("0::/kubepods.slice/kubepods-pod1aecc643_23ea_11e9_beec_06c846f19394.slice/crio-" ID ".scope/container\n",
	   "crio-" ID ".scope");
	is("11:cpuset:/kubepods.slice\n1:name=systemd:/kubepods.slice/kubepods-besteffort.slice/"
	   "kubepods-besteffort-pod1aecc643_23ea_11e9_beec_06c846f19394.slice/docker-" ID ".scope\n",
	   "docker-" ID ".scope");
	/* What a user runs belongs to the user's manager; a node that is a container itself, to that container. */
	is("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container\n",
	   "user@1000.service");
	is("0::/system.slice/docker-" ID ".scope/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" OTHER_ID
	   ".scope\n",
	   "docker-" ID ".scope");
}

/* The same, with one that makes the groups itself (cgroupfs). */
TEST(a_container_without_a_unit_is_known_by_its_digits)
{
	is("0::/docker/" ID "\n", ID);
	is("0::/libpod_parent/libpod-" ID "\n", "libpod-" ID);
	is("0::/kubepods/burstable/pod2c48913c-b29f-11e7-9350-020968147796/" ID "\n", ID);
	is("0::/kubepods/pod2c48913c-b29f-11e7-9350-020968147796/crio-" ID "\n", "crio-" ID);
	is("0::/mine.slice/of/engines/" ID "\n", ID);
	is("12:pids:/docker/" ID "\n1:name=systemd:/docker/" ID "\n", ID);
	/* Nobody gets another account by groups in the container. */
	is("0::/docker/" ID "/" OTHER_ID "\n", ID);
	is("0::/docker/" ID "/system.slice/web.service\n", ID);
	is("0::/system.slice/web.service/" ID "\n", "web.service");
	is("0::/user.slice/user-1000.slice/user@1000.service/" ID "\n", "user@1000.service");
	/* Sixty-four, and no other characters. */
	is("0::/docker/0" ID "\n", "");
	is("0::/docker/0123456789abcdef0123456789abcdef\n", "");
	is("0::/docker/ " ID "\n", "");
	is("0::/docker/" ID "x\n", "");
}

/* runc joined a group of its own in the unified hierarchy of a host with both only from 1.0 on. */
TEST(with_both_hierarchies_the_one_that_engines_use_counts)
{
	is("2:cpuset:/docker/" ID "\n1:name=systemd:/docker/" ID "\n0::/system.slice/containerd.service\n", ID);
	is("1:name=systemd:/kubepods/besteffort/pod74c13223-5a00-11e9-b385-42010a80018d/" ID
	   "\n0::/system.slice/k3s-agent.service\n",
	   ID);
	is("1:name=systemd:/libpod_parent/libpod-" ID "\n0::/libpod_parent/libpod-" ID "\n", "libpod-" ID);
}

/* The kubelet asks for a scope of systemd, and containerd is not configured to have one made. */
TEST(containers_below_the_service_of_containerd_are_told_apart)
{
	is("1:name=systemd:/system.slice/containerd.service/"
	   "kubepods-besteffort-podb41662f7_b03a_4c65_8ef9_6e4e55c3cf27.slice:cri-containerd:" ID "\n",
	   "kubepods-besteffort-podb41662f7_b03a_4c65_8ef9_6e4e55c3cf27.slice:cri-containerd:" ID);
	is("0::/system.slice/containerd.service\n", "containerd.service");
	is("0::/system.slice/containerd.service/web.service\n", "containerd.service");
}

/* The daemon is in a container with such a namespace, and sees all processes of the host. */
TEST(paths_outside_of_a_namespace_of_control_groups)
{
	is("0::/../web.service\n", "web.service");
	is("0::/../../system.slice/web.service\n", "web.service");
	is("0::/../cri-containerd-" ID ".scope\n", "cri-containerd-" ID ".scope");
	is("0::/../../../kubepods-besteffort.slice/kubepods-besteffort-pod2c48913c_b29f_11e7_9350_020968147796.slice/crio-" ID
	   ".scope/container\n",
	   "crio-" ID ".scope");
	is("0::/../../pod2c48913c-b29f-11e7-9350-020968147796/" ID "\n", ID);
	is("1:name=systemd:/../libpod-" ID "\n0::/../libpod-" ID "\n", "libpod-" ID);
	is("0::/../../user.slice/user-1000.slice/user@1000.service/app.slice/web.service\n", "user@1000.service");
	is_below("/../../../..", "0::/../../../../system.slice/web.service\n", "web.service");
	is_below("/../..", "0::/../libpod-" ID "\n", "libpod-" ID);
	is("0::/..\n", "");
	is("0::/../..\n", "");
	is("0::/...service\n", "...service");
}

TEST(names_that_the_kernel_has_a_use_for_are_written_with_one_more_mark)
{
	is("0::/system.slice/_cpu.service\n", "cpu.service");
	is("0::/system.slice/__a.service\n", "_a.service");
}

TEST(in_a_container_paths_begin_at_its_service_manager)
{
	is_below("/docker/0123", "0::/docker/0123/system.slice/web.service\n", "web.service");
	is_below("/docker/0123", "0::/docker/01234/system.slice/web.service\n", "");
	is_below("/docker/0123", "0::/docker/0123\n", "");
}

TEST(of_pid_0_nothing_is_known)
{
	char text[UNIT_CGROUP_MAX];

	assert_true(unit_is_unknown(unit_read(0, (struct slice){ 0 }, text)));
	assert_true(unit_is_unknown(unit_read(INT32_MAX, (struct slice){ 0 }, text)));
	assert_false(unit_is_unknown(unit_read(getpid(), (struct slice){ 0 }, text)));
}

static int connected(const char *path, int *ret_client)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	int32_t go = 0;
	pid_t pid;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(listening, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listening, 1), 0);
	*ret_client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid = fork();
	assert_true(pid >= 0);
	/* The child connects; the parent has the connection, too. */
	if (pid == 0)
		_exit(connect(*ret_client, (const struct sockaddr *)&addr, sizeof(addr)) == 0 &&
				      read(*ret_client, &go, sizeof(go)) == sizeof(go)
			      ? 0
			      : 1);
	fd = accept(listening, NULL, NULL);
	assert_true(fd >= 0);
	close(listening);
	return fd;
}

/* Its number may be another process' soon. */
TEST(a_peer_that_has_ended_is_seen_to_have_ended)
{
	char dir[] = "/tmp/test_unit.XXXXXX", path[64];
	int client, fd, process, later, status;
	const int32_t go = 1;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	fd = connected(path, &client);
	process = peer_process(fd);
	later = process == PEER_PROCESS_UNKNOWN ? process : dup(process);
	assert_int_equal(write(fd, &go, sizeof(go)), sizeof(go));
	if (process != PEER_PROCESS_UNKNOWN) {
		struct ucred cred;
		socklen_t len = sizeof(cred);

		assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len), 0);
		close(process);
		assert_int_equal(waitpid(cred.pid, &status, 0), cred.pid);
		assert_int_equal(status, 0);
		assert_false(peer_process_lives(later));
		process = peer_process(fd);
		assert_true(process != PEER_PROCESS_UNKNOWN);
		assert_false(peer_process_lives(process));
	}
	close(fd);
	close(client);
	unlink(path);
	rmdir(dir);
}

TEST(a_peer_that_lives_is_seen_to_live)
{
	int pair[2], process;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	process = peer_process(pair[0]);
	assert_true(process == PEER_PROCESS_UNKNOWN || peer_process_lives(process));
	close(pair[0]);
	close(pair[1]);
}

TEST(groups_of_a_peer_begin_with_its_own)
{
	struct peer_groups groups;
	gid_t own[PEER_GROUPS_MAX];
	int pair[2], count = getgroups(PEER_GROUPS_MAX, own);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	peer_groups(pair[0], 4711, &groups);
	assert_true(groups.all);
	assert_int_equal(groups.list[0], 4711);
	assert_int_equal(groups.count, count + 1);
	close(pair[0]);
	peer_groups(-1, 4711, &groups);
	assert_false(groups.all);
	assert_int_equal(groups.count, 1);
	close(pair[1]);
}

/* Of a process that is in three. */
TEST(groups_of_a_peer_are_all_there)
{
	pid_t child;
	int status;

	if (geteuid() != 0)
		skip();
	child = fork();
	if (child == 0) {
		struct peer_groups groups;
		int pair[2];

		if (setgroups(3, (const gid_t[]){ 1234, 4712, 5678 }) < 0 ||
		    socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
			_exit(1);
		peer_groups(pair[0], 4711, &groups);
		_exit(groups.all && groups.count == 4 && groups.list[0] == 4711 && groups.list[1] == 1234 &&
				      groups.list[2] == 4712 && groups.list[3] == 5678
			      ? 0
			      : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}
