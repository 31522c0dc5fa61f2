#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that are missing; does nothing, quickly, when all are there. Without an argument what builds
# and installs lockbroker; with one of the words below what that needs as well. LIST=RELEASE prints the names in that release
# of Debian instead.
set -u

build="gcc libc6-dev make libzookeeper-st-dev libevent-dev libinih-dev"
demo="zookeeper default-jre-headless python3"
# Of the tests, with the languages of docs/CLIENTS.md and the shells.
check="$demo g++ binutils abigail-tools libcmocka-dev systemd stunnel4 openssl
libcurator-recipes-java default-jdk-headless junit4
python3-pytest python3-pytest-xdist python3-redis python3-kazoo python3-gevent python3-eventlet redis-tools netcat-openbsd
prometheus nftables iproute2 strace bubblewrap clang libclang-rt-dev
libredis-perl nodejs node-redis ruby-redis php-cli php-redis gccgo-go golang-github-gomodule-redigo-dev golang-1.19-go
php-illuminate-cache php-illuminate-redis zsh fish pkg-config man-db valgrind
libncurses-dev tmux"
lint="clang-format clang-tidy cppcheck mandoc mypy"
deb="build-essential debhelper dh-python dpkg-dev fakeroot libcmocka-dev lintian pkg-config python3 systemd systemd-dev
libncurses-dev default-jdk-headless maven-repo-helper"
fresh="mmdebstrap"
# What signs a repository of packages and serves it.
repo="reprepro gnupg"
booted="$fresh systemd-container $repo"
# What looks at the page as people do, with a font, and what makes pictures of it small.
browser="chromium chromium-driver python3-selenium fonts-dejavu-core pngquant"
containers="$fresh podman buildah runc python3-yaml"
cross="$fresh make binutils gcc-aarch64-linux-gnu libc6-dev qemu-user"
# Of a minimal root: what boots, also the systemd of a user, what README's example needs (usermod), and a client of the
# tests; then what the daemon needs, and what upgrades a host by itself.
boot="systemd-sysv dbus libpam-systemd passwd apt python3"
machine="$boot libzookeeper-st2 libevent-core-2.1-7 libevent-extra-2.1-7 libinih1 needrestart unattended-upgrades"
# Of the tests with another release than that of the host.
dist="zookeeper default-jdk-headless junit4 libcurator-recipes-java
python3-pytest python3-pytest-xdist python3-redis python3-kazoo redis-tools"
bench="redis-server redis-tools memcached postgresql etcd-server etcd-client python3-psycopg2 iproute2"
profile="linux-perf valgrind redis-server"

# Names that differ: the release, the name above, and that of the release ("-": it has none, and none is needed).
differ="
bookworm systemd-dev -
trixie golang-1.19-go golang-1.24-go
trixie libevent-core-2.1-7 libevent-core-2.1-7t64
trixie libevent-extra-2.1-7 libevent-extra-2.1-7t64
"

fail()
{
	echo "make deps: $*" >&2
	exit 1
}

case "${1-}" in
demo) packages="$build $demo" ;;
check) packages="$build $check" ;;
lint) packages="$build $check $lint" ;;
deb) packages="$build $deb" ;;
fresh) packages=$fresh ;;
boot) packages=$boot ;;
machine) packages=$machine ;;
dist) packages="$build $deb $dist" ;;
repo) packages=$repo ;;
booted) packages="$build $check $booted" ;;
containers) packages="$build $check $containers" ;;
browser) packages="$build $check $browser" ;;
cross) packages=$cross ;;
bench) packages="$build $check $bench" ;;
profile) packages="$build $check $profile" ;;
"") packages=$build ;;
*) fail "unknown set of packages: $1 (demo, check, lint, deb, fresh, boot, machine, dist, repo, booted," \
	"containers, browser, cross, bench, profile, or nothing)" ;;
esac

[ ! -r /etc/os-release ] || . /etc/os-release
release=${LIST:-${VERSION_CODENAME-}}
names()
{
	for package in $packages; do
		name=$(printf '%s' "$differ" | sed -n "s/^$release $package //p")
		[ "$name" = - ] || echo "${name:-$package}"
	done
}
packages=$(names)
if [ -n "${LIST-}" ]; then
	echo "$packages"
	exit
fi

missing_packages()
{
	# shellcheck disable=SC2086
	dpkg-query -W -f '${Package} ${db:Status-Status}\n' $packages 2>/dev/null |
		sed -n 's/ installed$//p' | sort -u >"$known"
	for package in $packages; do
		grep -qxF "$package" "$known" || printf '%s ' "$package"
	done
}

by_hand="please install by hand (names of Debian 12 or 13):"

command -v dpkg-query >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1 ||
	fail "this is not Debian; $by_hand" $packages

known=$(mktemp) || fail "no room for a temporary file"
trap 'rm -f "$known"' EXIT
missing=$(missing_packages)
[ -z "$missing" ] && exit 0

[ "$(id -u)" = 0 ] || fail "not root; run once as root:  apt-get install -y $missing"
[ "${ID-}" = debian ] || echo "make deps: written for Debian 12 and 13; trying on ${PRETTY_NAME-this system}" >&2

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
