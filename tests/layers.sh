#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The pure parts (core, protocol, base's containers) may use each other and, of libc, memory and string functions
# only: no I/O, no clock, no environment. Arguments: their archives.
set -u

allowed='bcmp|mem(cpy|move|set|cmp|chr|rchr|mem)|str(len|nlen|cmp|ncmp|chr|rchr|str|spn|cspn)|'
allowed="${allowed}malloc|calloc|realloc|free|abort|qsort|bsearch|"
# What the compiler adds on its own: asserts, the stack protector, fortified forms.
allowed="${allowed}__assert_fail|__stack_chk_fail|__mem(cpy|move|set)_chk|__fortify_fail|_GLOBAL_OFFSET_TABLE_"

defined=$(mktemp) && foreign=$(mktemp) || exit 1
trap 'rm -f "$defined" "$foreign"' EXIT

nm --defined-only -g "$@" | awk 'NF == 3 { print $3 }' | sort -u >"$defined"
nm -u -A "$@" | awk 'NF >= 3 && $(NF - 1) ~ /^[Uwv]$/ { print $NF, $1 }' | sort -u |
	awk -v allowed="^($allowed)\$" 'NR == FNR { own[$1]; next } !($1 in own) && $1 !~ allowed' "$defined" - \
		>"$foreign"

if [ -s "$foreign" ]; then
	echo "layers: the pure parts name functions that are not for them:" >&2
	cat "$foreign" >&2
	exit 1
fi

# A lower layer may not name a higher one: includes run one way.
status=0
may_include()
{
	dir=$1
	pattern=$2
	found=$(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' --include='*.[ch]' "$dir" 2>/dev/null |
		grep -vE "include[[:space:]]*\"($pattern)[^/\"]*\"")
	if [ -n "$found" ]; then
		echo "layers: $dir may include only \"($pattern)...\":" >&2
		echo "$found" >&2
		status=1
	fi
}
may_include daemon/base 'base/|'
may_include protocol 'protocol/|'
may_include daemon/core 'core/([a-z]+/)?|protocol/|base/(cold|container|heap|map|mem|minmax|queue|random)|'
may_include daemon/io 'io/([a-z]+/)?|core/([a-z]+/)?|protocol/|base/|'
may_include client-lib 'client-lib/((cli|http)/)?|protocol/|'
exit $status
