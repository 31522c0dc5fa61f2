#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# On a release of Debian, whichever the host has: `make deb`, on a minimal root, with warnings as errors, unit tests and
# seeds of the simulator; then the compiled programs are tested with the ZooKeeper, Curator and kazoo there, and by the
# library for Java on the JDK there, which may have virtual threads.
#   sh tests/debian.sh RELEASE FOLDER
# The folder gets the packages (deb) and, for tests of an upgrade, those of the commit that tests/last-release names (last).
set -eu

release=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
rm -rf "$folder/deb" "$folder/last" "$folder/sources"

# What the tests of this release boot can be fetched meanwhile.
LOCKBROKER_BUILD=$folder/.. PYTHONPATH=tests/system:tests/booted \
	/usr/bin/python3 -B -c "import machine; machine.image('$release')" &
image=$!
trap 'kill $image 2>/dev/null || :' EXIT

# The test of an upgrade says that it is skipped.
last=$(grep -v '^#' tests/last-release)
older=:
if git cat-file -e "$last^{commit}" 2>/dev/null; then
	mkdir "$folder/sources"
	git archive "$last" | tar -C "$folder/sources" -xf -
	older='cd /srv/results/sources && DEB_BUILD_OPTIONS="nocheck noautodbgsym noopt" \
		sh /srv/lockbroker/tests/deb.sh ../last build "$(cat VERSION)~last"'
fi

# Who holds and asks for locks there are strangers. Their races are for the whole check.
RESULTS=$folder sh tests/fresh.sh "$release" "$folder/../fresh" \
	'export DEBIAN_FRONTEND=noninteractive; apt-get -q update && apt-get -q install -y make' \
	'KEEP=1 CHECKS="unit sim" SEEDS=100 WERROR=1 make deb' \
	"grep -E '^ok |seeds' build/deb/log" \
	'mkdir /srv/results/deb && cp build/deb/*.deb build/deb/*.changes /srv/results/deb' \
	'sh tests/deps.sh dist' \
	"log=\$(mktemp); ($older) >\$log 2>&1 & older=\$!
		LOCKBROKER_BUILD=\$PWD/build/deb/compiled python3 -B -m pytest -q -rs -p no:cacheprovider -n 4 \\
			-m 'not release_only' tests/system/test_interop.py tests/system/test_java.py; status=\$?
		wait \$older || { cat \$log; exit 1; }
		exit \$status"
wait $image
