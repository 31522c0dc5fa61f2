#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs what README.md says, as it stands there, on a machine that has nothing: a minimal Debian, and these sources as
# `git archive` has them. What an install step forgets is therefore missing. Other commands, if there are any, run instead
# of README's, one after the other, until one fails; its status is that of this script. As root. They have $WERROR and
# $NEED_CLIENTS, and in $CHANGED the files that differ (tests/changed.sh), for there is no git. The folder $RESULTS, if that
# is given, is /srv/results there.
#   sh tests/fresh.sh RELEASE FOLDER [COMMAND...]
# The release is Debian's, bookworm or trixie. The folder keeps the minimal root and the packages that apt has fetched. The
# machine has processes, mounts, /dev/shm and /run of its own, and all else of this kernel: its network, its control groups,
# and root's rights. Its processes and mounts end with this script, also if that is killed; its files are removed then by
# the next run.
set -eu

release=$1
folder=$2
shift 2
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/.."

say()
{
	echo "== $(date +%T) fresh: $*"
}

readme()
{
	found=$(sed -n '/^## Start$/,/^## /p' README.md | grep "$1") && [ "$(echo "$found" | wc -l)" = 1 ] || {
		echo "fresh: README.md does not have the command ($1) once, below \"Start\"" >&2
		exit 1
	}
	echo "$found"
}
if [ $# = 0 ]; then
	demo=$(readme '^apt-get .* make demo$')
	check=$(readme '^make check ')
	set -- "$demo" "$check"
fi

say "a minimal root of $release"
tar=$(sh tests/root.sh "$folder" "--release=$release" --variant=apt)

exec 9>"$folder/lock"
flock 9
for left in "$folder"/machine.*; do # of runs that were killed
	[ ! -e "$left" ] || ! flock -n "$left" true || rm -rf --one-file-system "$left"
done
machine=$(mktemp -d "$folder/machine.XXXXXX")
exec 8<"$machine"
flock 8
exec 9>&-

process=
clean()
{
	trap '' HUP INT TERM
	[ -z "$process" ] || kill -KILL "$process" 2>/dev/null || :
	mkdir -p "$folder/archives"
	cp -lu "$root"/var/cache/apt/archives/*.deb "$folder/archives" 2>/dev/null || :
	# Processes that have just been killed may still write.
	for _ in 1 2 3 4 5; do
		rm -rf --one-file-system "$machine" 2>/dev/null && break
		sleep 1
	done
}
root=$machine/root
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$root"
chmod 755 "$machine" "$root"
tar -C "$root" --numeric-owner -xpf "$tar"
# Where any user may read it.
mkdir -p "$root/srv/lockbroker"
git archive HEAD | tar -C "$root/srv/lockbroker" --no-same-owner -xf -

# The network is this machine's, and so is the way of apt to its mirrors.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
apt-config dump | grep -E '^Acquire::(http|https|Retries|ForceIPv[46])\b' >"$root/etc/apt/apt.conf.d/00network" || :
# A root that is thrown away need not survive a loss of power.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/fresh"
# What apt has fetched before, it need not fetch again. (On another file system, it does.)
for kept in "$folder/archives" /var/cache/apt/archives; do
	find "$kept" -maxdepth 1 -name '*.deb' -exec cp -lf -t "$root/var/cache/apt/archives" {} + 2>/dev/null || :
done

# Process 1 of the machine. Not chroot(2) alone: in a changed root no user namespace can be made.
INIT='
set -e
root=$1
shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
if [ -n "$RESULTS" ]; then
	mkdir "$root/srv/results"
	mount --bind "$RESULTS" "$root/srv/results"
fi
cd "$root"
mkdir host
pivot_root . host
exec chroot . sh -c "$COMMANDS" sh "$@"
'
COMMANDS='
unset COMMANDS
chroot /host umount -l / # a minimal root has no umount(8)
rmdir /host
cd /srv/lockbroker
for command; do
	echo "== $(date +%T) fresh: $command"
	sh -c "$command" </dev/null
	status=$?
	[ $status = 0 ] || { echo "== $(date +%T) fresh: that ended with $status"; exit $status; }
done
'
setpriv --pdeathsig KILL \
	env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin COMMANDS="$COMMANDS" \
	CHANGED="$(sh tests/changed.sh | tr '\n' ' ')" \
	RESULTS="${RESULTS:+$(realpath "$RESULTS")}" ${WERROR:+"WERROR=$WERROR"} ${NEED_CLIENTS:+"NEED_CLIENTS=$NEED_CLIENTS"} \
	${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} ${no_proxy:+"no_proxy=$no_proxy"} \
	unshare --mount --ipc --pid --fork --kill-child=KILL sh -c "$INIT" sh "$root" "$@" 8<&- &
process=$!
status=0
wait "$process" || status=$?
process=
say "ended with $status"
exit "$status"
