#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The sources of the commit that is checked out as an archive, and its checksum: the same bytes whenever it is made.
#   sh tests/dist.sh FOLDER
set -eu

mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
name=lockbroker-$(cat VERSION)

git rev-parse -q --verify HEAD >/dev/null 2>&1 || {
	echo "make dist: an archive is made of a commit, which needs git and a clone of the repository; an archive that was" \
		"unpacked needs neither to be built: make, make deb" >&2
	exit 1
}
[ -z "$(git status --porcelain)" ] || echo "make dist: what is not committed is not in the archive" >&2
git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$folder/$name.tar.gz"
cd "$folder"
sha256sum "$name.tar.gz" | tee "$name.tar.gz.sha256"
