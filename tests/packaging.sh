#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
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

# A program that not every machine has; what is not tested without it is said.
is_there()
{
	command -v "$1" >/dev/null || { echo "packaging, skipped: $2 (there is no $1)"; return 1; }
}

place()
{
	${MAKE:-make} -s BUILD="$build" PREFIX=/usr DESTDIR="$root" "$@" >"$root/log" 2>&1 ||
		{ cat "$root/log" >&2; fail "make $* failed"; }
	rm -f "$root/log"
}

mkdir "$root/etc"
echo "# mine" >"$root/etc/lockbroker.conf"
place SYSTEMD=253 install
[ "$(cat "$root/etc/lockbroker.conf")" = "# mine" ] || fail "the configuration file was overwritten"

"$root/usr/sbin/lockbrokerd" --version >/dev/null || fail "lockbrokerd --version"
"$root/usr/bin/lockbroker" --version >/dev/null || fail "lockbroker --version"

# What an exploit would like to write to, jump to or run.
for program in "$root/usr/sbin/lockbrokerd" "$root/usr/bin/lockbroker" "$root"/usr/libexec/lockbroker/lockbroker-* \
	"$root/usr/lib/liblockbroker.so.1"; do
	readelf -Wd "$program" | grep -q 'Flags:.* NOW' || fail "$program is bound as it runs"
	readelf -Wl "$program" | grep -q GNU_RELRO || fail "$program leaves its tables writable"
	readelf -Wl "$program" | grep 'GNU_STACK' | grep -qv ' RWE ' || fail "$program has an executable stack"
	readelf -W --dyn-syms "$program" | grep -q __stack_chk_fail || fail "$program is without stack protection"
	case $program in
	*.so.*) ;;
	*) readelf -Wd "$program" | grep -q 'Flags:.* PIE' || fail "$program is always at the same place" ;;
	esac
done

# What cannot be seen of a program is seen of the command that compiles one: what the compiler defines, and its words.
compile=$(${MAKE:-make} -n -B BUILD="$build" "$build/obj/daemon/main.o" | grep -- ' -c ' | tail -n 1)
case $compile in
*" -fsanitize="*) ;;
*)
	case $compile in
	*" -ftrivial-auto-var-init=zero "*) ;;
	*) fail "what is on the stack is not zero before it is written: $compile" ;;
	esac
	defined=$(sh -c "$(printf "%s" "${compile%% -c *}" | sed "s/ -MMD -MP / /") -E -dM -x c /dev/null")
	case $compile in
	*" -O"[123s]*)
		printf '%s\n' "$defined" | grep -qx '#define _FORTIFY_SOURCE 3' || fail "_FORTIFY_SOURCE is not 3"
		;;
	esac
	# Indirect jumps and returns of this kind of processor go where the compiler meant them to.
	case $(uname -m) in
	x86_64)
		printf '%s\n' "$defined" | grep -qx '#define __CET__ 3' || fail "jumps are not checked (-fcf-protection)"
		readelf -n "$build/obj/daemon/main.o" | grep -q 'IBT, SHSTK' || fail "an object does not say that jumps are checked"
		objdump -d --disassemble=main "$root/usr/sbin/lockbrokerd" | grep -q endbr64 ||
			fail "lockbrokerd as a whole is compiled without -fcf-protection"
		;;
	aarch64)
		readelf -n "$build/obj/daemon/main.o" | grep -q 'BTI, PAC' || fail "jumps are not checked (-mbranch-protection)"
		objdump -d "$root/usr/sbin/lockbrokerd" | grep -q paciasp ||
			fail "lockbrokerd as a whole is compiled without -mbranch-protection"
		;;
	esac
	;;
esac

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
names=$(nm -D --defined-only "$root/usr/lib/liblockbroker.so.1" | awk '$2 != "A" && $3 !~ /^lb_/')
[ -z "$names" ] || fail "the library shows foreign names: $names"

unversioned=$(nm -D --defined-only "$root/usr/lib/liblockbroker.so.1" | awk '$2 == "T" && $3 !~ /@@LOCKBROKER_[0-9.]+$/')
[ -z "$unversioned" ] || fail "symbols without a version: $unversioned"
listed=$(sed -n 's/^ \(lb_[a-z_]*@[^ ]*\) .*/\1/p' debian/liblockbroker1.symbols | sort)
shown=$(nm -D --defined-only "$root/usr/lib/liblockbroker.so.1" | sed -n 's/.* T \(lb_[a-z_]*@\)@\(.*\)/\1\2/p' | sort)
[ "$shown" = "$listed" ] ||
	fail "debian/liblockbroker1.symbols does not list the symbols of the library with their versions"
newer=$(sed -n 's/^ \(.*@LOCKBROKER_\([0-9]*\..*\)\) \(.*\)/\1 \2 \3/p' debian/liblockbroker1.symbols |
	awk '$2 != $3 { print $1 }')
[ -z "$newer" ] || fail "in debian/liblockbroker1.symbols the version differs from the name of the node: $newer"
case $(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog) in
"$(cat VERSION)" | "$(cat VERSION)"[+~]*) ;;
*) fail "debian/changelog begins with another version than VERSION" ;;
esac
cat >"$root/version.c" <<'END'
#include <lockbroker.h>
#include <stdio.h>

int main(void)
{
	printf("%d.%d.%d %d\n", LOCKBROKER_VERSION_MAJOR, LOCKBROKER_VERSION_MINOR, LOCKBROKER_VERSION_PATCH,
	       LOCKBROKER_VERSION_NUMBER);
	return 0;
}
END
# shellcheck disable=SC2086
$cc $flags "$root/version.c" -o "$root/version"
version=$("$root/usr/bin/lockbroker" --version)
[ "$version $("$root/version" | awk '{ split($1, v, "."); print v[1] * 65536 + v[2] * 256 + v[3] - $2 }')" = \
	"lockbroker $("$root/version" | cut -d ' ' -f 1) 0" ] || fail "the versions differ: $version, $("$root/version")"
[ "$version" = "lockbroker $(cat VERSION)" ] || fail "client-lib/lockbroker.h has another version than VERSION: $version"
[ "$("$root/usr/sbin/lockbrokerd" --version)" = "lockbrokerd ${version#* }" ] || fail "lockbrokerd is of another version"
grep -qx "Version: ${version#* }" "$root/usr/lib/pkgconfig/lockbroker.pc" || fail "pkg-config has another version"
rm -f "$root/version.c" "$root/version"

# What is left to be done for the dynamic linker is said, or done.
said=$(LDCONFIG=true sh client-lib/ldconfig.sh "$root" /usr/lib liblockbroker.so.1)
case $said in *"run ldconfig"*) ;; *) fail "installed elsewhere, ldconfig is not mentioned: $said" ;; esac
said=$(LDCONFIG=false sh client-lib/ldconfig.sh "" /usr/lib liblockbroker.so.1)
case $said in *"as root"*) ;; *) fail "ldconfig failed, and that is not said: $said" ;; esac
said=$(LDCONFIG="echo liblockbroker.so.1 => /usr/lib/liblockbroker.so.1" \
	sh client-lib/ldconfig.sh "" /usr/lib liblockbroker.so.1)
[ "${said#*Programs do not find}" = "$said" ] || fail "it is found, and the opposite is said: $said"
said=$(LDCONFIG=true sh client-lib/ldconfig.sh "" /usr/lib liblockbroker.so.1)
case $said in *"ld.so.conf.d"*) ;; *) fail "it is not found, and that is not said: $said" ;; esac

python=$(find "$root/usr" -name lockbroker -path '*-packages/*')
found=$(PYTHONPATH="${python%/*}" /usr/bin/python3 -B -c 'import lockbroker; print(lockbroker.__file__)')
[ "$found" = "$python/__init__.py" ] || fail "Python does not find lockbroker"
[ -e "$python/py.typed" ] || fail "Python's package is not typed"

for file in bash-completion/completions/lockbroker zsh/site-functions/_lockbroker \
	fish/vendor_completions.d/lockbroker.fish; do
	[ -s "$root/usr/share/$file" ] || fail "there is no completion: usr/share/$file"
done
bash -n "$root/usr/share/bash-completion/completions/lockbroker" || fail "the completion for bash is no script"

if is_there pkg-config "what lockbroker.pc says"; then
	said=$(PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$root/usr/lib/pkgconfig" PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 \
		pkg-config --libs lockbroker)
	case $said in "-L$root/usr/lib -llockbroker"*) ;; *) fail "pkg-config says $said" ;; esac
fi
for page in "$root"/usr/share/man/man*/*; do
	grep -q '^\.Sh NAME' "$page" || fail "$page is no man page"
done
if is_there man "how the manual pages look" && is_there groff "how the manual pages look"; then
	for page in "$root"/usr/share/man/man*/*; do
		said=$(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
		[ -z "$said" ] || fail "$page: $said"
	done
	for page in "$root"/usr/share/man/man1/lockbroker.1 "$root"/usr/share/man/man3/liblockbroker.3; do
		wide=$(MANWIDTH=80 LC_ALL=C.UTF-8 man -l "$page" | LC_ALL=C.UTF-8 col -bx | LC_ALL=C.UTF-8 grep -E '^.{81,}' || :)
		[ -z "$wide" ] || fail "$page does not fit on a terminal of 80 columns: $wide"
	done
fi
"$root/usr/bin/lockbroker" http --listen nowhere 2>&1 | grep -q 'no address and port' ||
	fail "lockbroker http does not run the program that was installed"
[ ! -e "$build/lockbroker-top" ] || "$root/usr/bin/lockbroker" top 2>&1 </dev/null | grep -q 'needs a terminal' ||
	fail "lockbroker top does not run the program that was installed"
service=$root/usr/lib/systemd/system/lockbrokerd.service
grep -q '^ExecStart=/usr/sbin/lockbrokerd ' "$service" ||
	fail "the service does not start what was installed"
grep -q '^ExecReload=/usr/bin/lockbroker ' "$service" || fail "the service does not reload by what was installed"
socket=$(sed -n 's|^ListenStream=||p' "$root/usr/lib/systemd/system/lockbrokerd.socket")
if grep -qx "RuntimeDirectory=$(basename "$(dirname "$socket")")" "$service"; then
	grep -qx 'RuntimeDirectoryPreserve=yes' "$service" || fail "a stop of the service removes the socket's directory"
fi
[ "$(sed -n '/^\[Unit]/,/^\[Service]/s/^StartLimitIntervalSec=//p' "$service")" = 0 ] ||
	fail "systemd gives up starting the service"
# What does not move the figure of systemd-analyze, or what the daemon cannot do without. Each line once, and no other one of
# its key.
lines_of()
{
	unit=$root/usr/lib/systemd/system/$1
	while read -r line; do
		[ "$(grep "^${line%%=*}=" "$unit")" = "$line" ] || fail "$1 is without $line, or says more"
	done
}
lines_of lockbrokerd.service <<'END'
User=lockbroker
Group=lockbroker
NotifyAccess=main
WatchdogSec=10
UMask=0077
RemoveIPC=yes
KeyringMode=private
LimitCORE=0
OOMPolicy=continue
NoNewPrivileges=yes
CapabilityBoundingSet=
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
SystemCallArchitectures=native
LoadCredential=zookeeper-auth
END
for unit in http:64M page:128M; do
	lines_of "lockbroker-${unit%:*}.service" <<END
DynamicUser=yes
SupplementaryGroups=lockbroker
UMask=0077
KeyringMode=private
LimitCORE=0
NoNewPrivileges=yes
CapabilityBoundingSet=
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
MemoryMax=${unit#*:}
TasksMax=4
END
done
# The metrics show no names, and are not what serves the page.
lines_of lockbroker-http.service <<'END'
ExecStart=/usr/bin/lockbroker http --listen ${LISTEN}
END
lines_of lockbroker-page.service <<'END'
Environment=LISTEN=127.0.0.1:9765
ExecStart=/usr/bin/lockbroker http --page=${LISTEN}
IPAddressDeny=any
IPAddressAllow=localhost
END
# An instance is confined as the plain daemon is, and uses none of its files.
lines_of lockbrokerd@.service <<'END'
User=lockbroker
Environment=LOCKBROKER_SOCKET=/run/lockbroker@%i/lockbroker.sock LOCKBROKER_LOG_IDENTIFIER=%p@%i
RuntimeDirectory=lockbroker@%i
StateDirectory=lockbroker@%i
LoadCredential=zookeeper-auth:zookeeper-auth@%i
NoNewPrivileges=yes
CapabilityBoundingSet=
END
lines_of lockbrokerd@.socket <<'END'
ListenStream=/run/lockbroker@%i/lockbroker.sock
SocketGroup=lockbroker
END
for unit in "$root"/usr/lib/systemd/system/*@.*; do
	shared=$(grep -vE '^(#|User=|Group=|SocketGroup=|SupplementaryGroups=)' "$unit" |
		grep -E 'lockbroker(d\.service|/|\.conf|$)' || :)
	shared=$(printf '%s\n' "$shared" | grep -vE '^ExecReload=/usr/bin/lockbroker |^$' || :)
	[ -z "$shared" ] || fail "${unit##*/} uses what is the plain daemon's: $shared"
done
# It has to see users and processes; MemoryHigh= would have it wait in the midst of a turn, and all locks with it.
! grep -E '^(PrivateUsers|ProtectProc|ProcSubset|MemoryHigh|DynamicUser|AmbientCapabilities)=' "$service" ||
	fail "the daemon cannot work so"
grep -q '^MemoryMax=[0-9]*M$' "$service" || fail "the memory of the service has no limit"
if is_there systemd-analyze "what systemd says of the units"; then
	# It looks for the program that a service starts: here it is below the private directory.
	mkdir "$root/units"
	for unit in "$root"/usr/lib/systemd/system/*; do
		sed "s|=/usr/\(s\?bin\)/|=$root/usr/\1/|" "$unit" >"$root/units/${unit##*/}"
	done
	said=$(systemd-analyze verify --man=no "$root"/units/* 2>&1) || fail "systemd-analyze: $said"
	said=$(printf '%s\n' "$said" | grep -F lockbroker || :)
	[ -z "$said" ] || fail "systemd-analyze: $said"
	mkdir "$root/units/user"
	for unit in "$root"/usr/lib/systemd/user/*; do
		sed "s|=/usr/\(s\?bin\)/|=$root/usr/\1/|" "$unit" >"$root/units/user/${unit##*/}"
	done
	said=$(XDG_RUNTIME_DIR="$root/units" systemd-analyze --user verify --man=no "$root"/units/user/* 2>&1) ||
		fail "systemd-analyze: $said"
	said=$(printf '%s\n' "$said" | grep -F lockbroker || :)
	[ -z "$said" ] || fail "systemd-analyze: $said"
	# In tenths; what is left is the network, and that it sees users and processes.
	said=$(systemd-analyze security --no-pager --offline=yes --threshold=15 "$root/units/lockbrokerd.service") ||
		fail "the service is exposed: $said"
	printf 'packaging: %s\n' "$(printf '%s\n' "$said" | sed -n 's/.*\(Overall exposure .*: [0-9.]*\).*/\1/p')"
	for unit in http page; do
		said=$(systemd-analyze security --no-pager --offline=yes --threshold=15 "$root/units/lockbroker-$unit.service") ||
			fail "lockbroker-$unit.service is exposed: $said"
	done
	rm -r "$root/units"
fi
if is_there systemd-sysusers "the user and the group"; then
	systemd-sysusers --root="$root" lockbrokerd.conf 2>/dev/null
	grep -q '^lockbroker:' "$root/etc/passwd" && grep -q '^lockbroker:' "$root/etc/group" ||
		fail "sysusers.d does not make the user and the group"
	rm -f "$root"/etc/passwd* "$root"/etc/shadow* "$root"/etc/group* "$root"/etc/gshadow* "$root"/etc/.pwd.lock
fi
seconds=$(sed -n 's/^TimeoutStopSec=//p' "$service")
stop_ms=$(sed -n 's/^stop_timeout_ms = //p' conf/lockbroker.conf)
[ $((seconds * 1000)) -ge $((stop_ms + 10000)) ] || fail "systemd kills a daemon that waits for its holders"

place uninstall
left=$(find "$root" ! -type d ! -path "$root/etc/lockbroker.conf")
[ -z "$left" ] || fail "left behind: $left"
rm "$root/etc/lockbroker.conf"
set -- LIBDIR=lib/machine UNITDIR=/lib/systemd/system SYSTEMD=257
place "$@" install
for file in usr/lib/machine/liblockbroker.so.1 usr/lib/machine/pkgconfig/lockbroker.pc \
	lib/systemd/system/lockbrokerd.service lib/systemd/system/lockbrokerd@.service \
	usr/lib/systemd/user/lockbrokerd.service; do
	[ -e "$root/$file" ] || fail "with $*, there is no $file"
done
grep -qxF ImportCredential=zookeeper-auth "$root/lib/systemd/system/lockbrokerd.service" ||
	fail "systemd logs that there is no credential"
grep -qxF 'libdir=${prefix}/lib/machine' "$root/usr/lib/machine/pkgconfig/lockbroker.pc" ||
	fail "pkg-config has another folder of libraries"
grep -qxF ImportCredential=zookeeper-auth@%i:zookeeper-auth "$root/lib/systemd/system/lockbrokerd@.service" ||
	fail "an instance gets the credential of another daemon, or none"
place "$@" uninstall
left=$(find "$root" ! -type d)
[ -z "$left" ] || fail "left behind: $left"
echo "packaging: installed, used, uninstalled"
