#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages from a copy of the sources, so that nothing is written beside or into them. Arguments: the
# folder for the packages, what of the sources is left out (the build directory), and, for tests of an upgrade, the
# version, if it is to be another one than that of the sources. $DEB_BUILD_OPTIONS and $WERROR are heeded, and $CHECKS:
# goals of the Makefile that are to pass, instead of unit tests only (with $SEEDS). With $KEEP, what was compiled stays in
# the folder "compiled" beside the packages. With $PROCESSOR, the packages are for that one, which another one compiles, and
# only those that differ from one to the other; no test is run.
# The release is a part of their version: the same sources give other packages on another one, and those of the next release
# replace them in an upgrade to it.
set -eu

mkdir -p "$1"
folder=$(cd "$1" && pwd)
left_out=$2
version=${3-}
copy=$folder/lockbroker
log=$folder/log

fail()
{
	tail -n 100 "$log" >&2
	echo "make deb: $*" >&2
	exit 1
}

rm -rf "$copy"
rm -f "$folder"/*.deb "$folder"/*.changes "$folder"/*.buildinfo
mkdir "$copy"
tar -c --exclude-vcs --exclude=__pycache__ --exclude=./build --exclude="./${left_out#./}" . | tar -x -C "$copy"
cd "$copy"
. /etc/os-release
if [ -n "$version" ]; then
	sed -i "1s/(.*)/($version)/" debian/changelog
	echo "$version" >VERSION
fi
sed -i "1s/(\(.*\))/(\1+$ID${VERSION_ID-})/" debian/changelog
if [ -n "${PROCESSOR-}" ]; then
	set -- -B "-a$PROCESSOR" -Pcross,nocheck
else
	set -- -b
fi
# What this make was asked for is not meant for that one.
env -i PATH="$PATH" HOME="${HOME-/}" DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-}" WERROR="${WERROR-}" \
	CHECKS="${CHECKS-}" ${SEEDS:+"SEEDS=$SEEDS"} \
	dpkg-buildpackage "$@" -us -uc >"$log" 2>&1 || fail "dpkg-buildpackage failed; all it said is in $log"
cd "$folder"
rm -rf compiled
[ -z "${KEEP-}" ] || mv "$copy/debian/build" compiled
rm -r "$copy"
