#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether a library is still the one that programs were built against: the functions and types that lockbroker.h shows of it,
# by libabigail, beside those that are recorded for this kind of machine. Arguments: the library; lockbroker.h as it was
# compiled; --write to record what is there.
set -eu

library=$1
header=$2
recorded=tests/abi/${library##*/}.$(uname -m).abi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail()
{
	echo "abi: $*" >&2
	exit 1
}

command -v abidw >/dev/null || fail "there is no abidw: sh tests/deps.sh check installs it"
readelf -WS "$library" | grep -q '\.debug_info' || fail "$library was built without -g, and does not tell its types"
abidw --header-file "$header" --drop-private-types --exported-interfaces-only --no-parameter-names --no-show-locs \
	--no-corpus-path --no-comp-dir-path --no-elf-needed "$library" >"$folder/found"

if [ "${3-}" = --write ]; then
	mkdir -p "${recorded%/*}"
	cp "$folder/found" "$recorded"
	echo "abi: recorded in $recorded"
	exit
fi
[ -e "$recorded" ] || fail "nothing is recorded for this kind of machine: make abi WRITE=1 records $recorded"
if abidiff --no-show-locs --leaf-changes-only "$recorded" "$folder/found" >"$folder/report"; then
	echo "abi: ${library##*/} is as $recorded records it"
	exit
fi
what=$(sed -n -e "s/^ *\[D\] 'function .*\<\(lb_[a-z_]*\)(.*/\1() is gone/p" \
	-e "s/^ *\[C\] 'function .*\<\(lb_[a-z_]*\)(.*/\1() has changed/p" \
	-e "s/^ *\[A\] 'function .*\<\(lb_[a-z_]*\)(.*/\1() is new/p" \
	-e "s/^'\(struct\|enum\) \([a-z_]*\)' changed:/\1 \2 has changed/p" "$folder/report" | paste -sd , - |
	sed 's/,/, /g')
echo "abi: ${library##*/} is not as $recorded records it (${what:-see below}):" \
	"CONTRIBUTING.md, \"A function of the library\", says what may change and how it is recorded" >&2
cat "$folder/report" >&2
exit 1
