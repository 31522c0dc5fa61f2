#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each test program given; one line for each that passes, the whole output of one that fails. The slowest takes a
# few seconds with sanitizers: one that has not ended after $seconds hangs.
seconds=120
status=0
for test in "$@"; do
	output=$(timeout -k 5 $seconds "$test" 2>&1)
	ended=$?
	if [ $ended -eq 0 ]; then
		echo "ok    ${test##*/} $(printf '%s\n' "$output" | sed -n 's/.*\] \([0-9]* test(s)\) run.*/\1/p')"
	else
		echo "FAIL  ${test##*/}$([ $ended -ne 124 ] || echo " (it did not end in $seconds s)")"
		printf '%s\n' "$output"
		status=1
	fi
done
exit $status
