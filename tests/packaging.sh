#!/bin/sh
# `make install` below a private directory: what is there works from there, an edited configuration file is kept, and
# `make uninstall` leaves nothing behind. Arguments: the build directory, the compiler.
set -eu

build=$1
cc=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail()
{
	echo "packaging: $*" >&2
	exit 1
}

place()
{
	${MAKE:-make} -s BUILD="$build" PREFIX=/usr DESTDIR="$root" "$@" >"$root/log" 2>&1 ||
		{ cat "$root/log" >&2; fail "make $* failed"; }
	rm -f "$root/log"
}

mkdir "$root/etc"
echo "# mine" >"$root/etc/lockbroker.conf"
place install
[ "$(cat "$root/etc/lockbroker.conf")" = "# mine" ] || fail "the configuration file was overwritten"

"$root/usr/sbin/lockbrokerd" --version >/dev/null || fail "lockbrokerd --version"
"$root/usr/bin/lockbroker" --version >/dev/null || fail "lockbroker --version"

cat >"$root/use.c" <<'END'
#include <lockbroker.h>
#include <stddef.h>

/* The address is enough to need the library. */
int main(void)
{
	return (void *)lb_lock == NULL;
}
END
flags="-I$root/usr/include -L$root/usr/lib"
# shellcheck disable=SC2086
$cc $flags "$root/use.c" -o "$root/shared" -llockbroker
LD_LIBRARY_PATH="$root/usr/lib" "$root/shared" || fail "the shared library does not load"
# shellcheck disable=SC2086
$cc $flags "$root/use.c" -o "$root/static" "$root/usr/lib/liblockbroker.a"
"$root/static" || fail "the static library does not run"
rm -f "$root/use.c" "$root/shared" "$root/static"
names=$(nm -D --defined-only "$root/usr/lib/liblockbroker.so.0" | awk '$3 !~ /^lb_/')
[ -z "$names" ] || fail "the library shows foreign names: $names"

if command -v pkg-config >/dev/null; then
	said=$(PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$root/usr/lib/pkgconfig" PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 \
		pkg-config --libs lockbroker)
	case $said in "-L$root/usr/lib -llockbroker"*) ;; *) fail "pkg-config says $said" ;; esac
fi
for page in "$root"/usr/share/man/man*/*; do
	grep -q '^\.SH NAME' "$page" || fail "$page is no man page"
done
service=$root/usr/lib/systemd/system/lockbrokerd.service
grep -q '^ExecStart=/usr/sbin/lockbrokerd ' "$service" ||
	fail "the service does not start what was installed"
socket=$(sed -n 's|^ListenStream=||p' "$root/usr/lib/systemd/system/lockbrokerd.socket")
if grep -qx "RuntimeDirectory=$(basename "$(dirname "$socket")")" "$service"; then
	grep -qx 'RuntimeDirectoryPreserve=yes' "$service" || fail "a stop of the service removes the socket's directory"
fi
[ "$(sed -n '/^\[Unit]/,/^\[Service]/s/^StartLimitIntervalSec=//p' "$service")" = 0 ] ||
	fail "systemd gives up starting the service"
if command -v systemd-analyze >/dev/null; then
	# It looks for the program that a service starts: here it is below the private directory.
	mkdir "$root/units"
	for unit in "$root"/usr/lib/systemd/system/*; do
		sed "s|=/usr/sbin/|=$root/usr/sbin/|" "$unit" >"$root/units/${unit##*/}"
	done
	said=$(systemd-analyze verify --man=no "$root"/units/* 2>&1) || fail "systemd-analyze: $said"
	said=$(printf '%s\n' "$said" | grep -F lockbroker || :)
	[ -z "$said" ] || fail "systemd-analyze: $said"
	rm -r "$root/units"
fi

place uninstall
left=$(find "$root" ! -type d ! -path "$root/etc/lockbroker.conf")
[ -z "$left" ] || fail "left behind: $left"
rm "$root/etc/lockbroker.conf"
place install
place uninstall
left=$(find "$root" ! -type d)
[ -z "$left" ] || fail "left behind: $left"
echo "packaging: installed, used, uninstalled"
