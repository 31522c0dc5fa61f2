#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The pure parts (core, protocol, base's containers) may use each other and, of libc, memory and string functions
# only: no I/O, no clock, no environment. Arguments: their archives.
set -u

allowed='bcmp|(__)?explicit_bzero(_chk)?|mem(cpy|move|set|cmp|chr|rchr|mem)|str(len|nlen|cmp|ncmp|chr|rchr|str|spn|cspn)|'
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
may_include daemon/base 'base/|protocol/(bytes|bytes_format|slice)\.h|'
may_include protocol 'protocol/|'
core_base='account|charge|cold|container|flight|glob|heap|hold_record|log_event|map|mem|minmax|queue|random|rule|'
core_base="${core_base}sha(1|256|_blocks)|unit_name"
may_include daemon/core "core/([a-z]+/)?|protocol/|base/($core_base)|"
may_include daemon/io 'io/([a-z]+/)?|core/([a-z]+/)?|protocol/|base/|'
may_include client-lib 'client-lib/((cli|http|top)/)?|protocol/|'

# What no test can interrupt: a process that is killed between two stores must not have shown more than it has written down.
in_order()
{
	awk -v name="$2" -v first="$3" -v second="$4" '
		/^[a-z]/ && index($0, name "(") { inside = 1 }
		inside && index($0, first "(") { at = at ? at : NR }
		inside && index($0, second "(") { good += at != 0; bad += at == 0 }
		/^}/ { inside = 0 }
		END { exit !good || bad }' "$1" && return
	echo "layers: $1: $2() must call $3() before $4()" >&2
	status=1
}
in_order daemon/io/loop.c loop_show saved_safe_until page_update
in_order daemon/io/loop.c loop_carry_out loop_show server_reply
exit $status
