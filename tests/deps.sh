#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that building, testing and the demo need. Does nothing, quickly, when all are there.
set -u

packages="
gcc g++ libc6-dev make binutils abigail-tools
libzookeeper-st-dev libevent-dev libinih-dev
libcmocka-dev systemd
zookeeper default-jre-headless stunnel4 openssl
libcurator-recipes-java default-jdk-headless
python3 python3-pytest python3-pytest-xdist python3-redis python3-kazoo python3-gevent redis-tools netcat-openbsd
prometheus
nftables iproute2 strace bubblewrap
clang libclang-rt-dev
"
# With a word of argument: for `make demo`, which needs less; for `make check`, with the languages of docs/CLIENTS.md and the
# shells, `make lint`, `make deb`, `make booted`, `make bench` or `make profile`, as well.
demo_packages="gcc libc6-dev make binutils libzookeeper-st-dev libevent-dev libinih-dev zookeeper
default-jre-headless python3"
check_packages="libredis-perl nodejs node-redis ruby-redis php-cli php-redis gccgo-go golang-github-gomodule-redigo-dev
php-illuminate-cache php-illuminate-redis zsh fish pkg-config man-db valgrind"
lint_packages="clang-format clang-tidy cppcheck mandoc mypy"
deb_packages="debhelper dh-python dpkg-dev fakeroot lintian pkg-config"
booted_packages="mmdebstrap systemd-container"
bench_packages="redis-server redis-tools memcached postgresql"
profile_packages="linux-perf valgrind redis-server"

fail()
{
	echo "make deps: $*" >&2
	exit 1
}

case "${1-}" in
demo) packages=$demo_packages ;;
check) packages="$packages $check_packages" ;;
lint) packages="$packages $lint_packages" ;;
deb) packages="$packages $deb_packages" ;;
booted) packages="$packages $booted_packages" ;;
bench) packages="$packages $bench_packages" ;;
profile) packages="$packages $profile_packages" ;;
"") ;;
*) fail "unknown set of packages: $1 (demo, check, lint, deb, booted, bench, profile, or nothing)" ;;
esac

missing_packages()
{
	# shellcheck disable=SC2086
	dpkg-query -W -f '${Package} ${db:Status-Status}\n' $packages 2>/dev/null |
		sed -n 's/ installed$//p' | sort -u >"$known"
	for package in $packages; do
		grep -qxF "$package" "$known" || printf '%s ' "$package"
	done
}

by_hand="please install by hand (names of Debian 12):"

command -v dpkg-query >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1 ||
	fail "this is not Debian; $by_hand" $packages

known=$(mktemp) || fail "no room for a temporary file"
trap 'rm -f "$known"' EXIT
missing=$(missing_packages)
[ -z "$missing" ] && exit 0

[ "$(id -u)" = 0 ] || fail "not root; run once as root:  apt-get install -y $missing"
. /etc/os-release
[ "${ID-}" = debian ] || echo "make deps: written for Debian 12; trying on ${PRETTY_NAME-this system}" >&2

echo "make deps: installing $missing"
export DEBIAN_FRONTEND=noninteractive
apt-get -q update || fail "apt-get update failed; is there a network?"
# Of prometheus only promtool is needed: its service is neither started nor enabled.
policy=/usr/sbin/policy-rc.d
case " $missing" in
*" prometheus "*)
	[ -e $policy ] || { made=$policy && printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy; }
	trap 'rm -f "$known" ${made-}' EXIT
	;;
esac
# shellcheck disable=SC2086
apt-get -q install -y --no-install-recommends $missing || fail "apt-get could not install: $missing"
[ -z "${made-}" ] || [ ! -d /run/systemd/system ] || systemctl -q disable prometheus.service
missing=$(missing_packages)
[ -z "$missing" ] || fail "still missing after installing: $missing"
