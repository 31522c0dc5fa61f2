#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is built depends on the sources, the compiler and the flags, and on nothing else: a copy of the sources in a folder
# with another name and at another time gives the same bytes. Argument: the build directory, with which it is compared.
set -eu

build=$1
copy=$(mktemp -d)/a-folder-with-another-name
trap 'rm -rf "${copy%/*}"' EXIT

mkdir "$copy"
tar -c --exclude-vcs --exclude=__pycache__ --exclude=./build --exclude="./${build#./}" . | tar -x -C "$copy"
${MAKE:-make} -s -C "$copy" BUILD=build all >"$copy/log" 2>&1 || {
	cat "$copy/log" >&2
	exit 1
}
status=0
top=$(cd "$build" && ls lockbroker-top 2>/dev/null)
for file in lockbrokerd lockbroker lockbroker-http $top liblockbroker.so.1 liblockbroker.a; do
	cmp "$build/$file" "$copy/build/$file" >&2 || status=1
done
[ $status = 0 ] || echo "reproducible: builds of the same sources differ" >&2
[ $status != 0 ] || echo "reproducible: the same bytes from another folder"
exit $status
