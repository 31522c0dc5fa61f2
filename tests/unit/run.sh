#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each test program given, as many at once as there are processors; one line for each that passes, and why it skips what
# it skips; the whole output of one that fails. The slowest takes a minute with sanitizers on an idle machine: one that has
# not ended after 900 s hangs. $UNIT_RUNNER runs programs of another kind of processor.
one='
	output=$(timeout -k 5 900 ${UNIT_RUNNER-} "$1" 2>&1)
	ended=$?
	if [ $ended -eq 0 ]; then
		echo "ok    ${1##*/} $(printf "%s\n" "$output" | sed -n "s/.*\] \([0-9]* test(s)\) run.*/\1/p")"
		printf "%s\n" "$output" | sed -n "s/^skipped: /      ${1##*\/}, skipped: /p"
	else
		late=
		[ $ended -ne 124 ] || late=" (it did not end in 900 s)"
		printf "FAIL  %s%s\n%s\n" "${1##*/}" "$late" "$output"
		exit 1
	fi
'
printf '%s\n' "$@" | xargs -n 1 -P "$(nproc)" sh -c "$one" one
