#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A daemon and a command of another kind of processor, under qemu: a lock is taken.
#   sh tests/cross_lock.sh LOCKBROKERD LOCKBROKER QEMU [OPTION...]
# (Under qemu no command can be run while the lock is held: it has no PR_SET_CHILD_SUBREAPER.)
set -eu

lockbrokerd=$1
lockbroker=$2
shift 2

private=$(mktemp -d)
"$@" "$lockbrokerd" --standalone --foreground -o daemon.keeper=0 \
	-o daemon.rundir="$private" -o daemon.statedir="$private" -o daemon.socket="$private/socket" >"$private/log" 2>&1 &
daemon=$!
trap 'kill "$daemon" 2>/dev/null || :; rm -rf "$private"' EXIT
trap 'exit 1' HUP INT TERM
while [ ! -S "$private/socket" ] && kill -0 "$daemon"; do
	sleep 0.1
done
status=0
said=$("$@" "$lockbroker" -S "$private/socket" call LOCK a) || status=$?
kill "$daemon" || :
wait "$daemon" || status=$?
case $status,$said in
0,'(integer) '[1-9]*) ;;
*)
	cat "$private/log" >&2
	echo "cross: no lock from $lockbrokerd under $*: $status, $said" >&2
	exit 1
	;;
esac
echo "ok    a lock of a daemon under $1, token ${said#* }"
