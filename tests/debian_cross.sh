#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The packages of a release of Debian for another kind of processor, compiled on this one: as `make deb` makes them, on a
# minimal root with the libraries of that processor. Then a daemon of these packages grants a lock there, under qemu.
#   sh tests/debian_cross.sh RELEASE PROCESSOR FOLDER
# The folder gets the packages (deb).
set -eu

release=$1
processor=$2
mkdir -p "$3"
folder=$(cd "$3" && pwd)
cd "$(dirname "$0")/.."
rm -rf "$folder/deb"

case $processor in
arm64) qemu=qemu-aarch64 ;;
*)
	echo "make $release-$processor: arm64 is the one that is known here" >&2
	exit 1
	;;
esac

RESULTS=$folder sh tests/fresh.sh "$release" "$folder/../fresh" \
	'export DEBIAN_FRONTEND=noninteractive
		dpkg --add-architecture '"$processor"' && apt-get -q update && apt-get -q install -y --no-install-recommends \
			make qemu-user crossbuild-essential-'"$processor"' &&
		apt-get -q build-dep -y --no-install-recommends --arch-only -a '"$processor"' -P cross,nocheck ./' \
	"PROCESSOR=$processor sh tests/deb.sh /srv/results/deb build" \
	'for package in /srv/results/deb/*.deb; do dpkg-deb -x "$package" /srv/there || exit 1; done
		sh tests/cross_lock.sh /srv/there/usr/sbin/lockbrokerd /srv/there/usr/bin/lockbroker '"$qemu -L /"
for package in lockbrokerd lockbroker liblockbroker1 liblockbroker-dev; do
	set -- "$folder/deb/$package"_*_"$processor.deb"
	[ -e "$1" ] || { echo "make $release-$processor: there is no package $package" >&2; exit 1; }
done
