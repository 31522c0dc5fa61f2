#!/bin/sh
# Runs each test program given; one line for each that passes, the whole output of one that fails.
status=0
for test in "$@"; do
	if output=$("$test" 2>&1); then
		echo "ok    ${test##*/} $(printf '%s\n' "$output" | sed -n 's/.*\] \([0-9]* test(s)\) run.*/\1/p')"
	else
		echo "FAIL  ${test##*/}"
		printf '%s\n' "$output"
		status=1
	fi
done
exit $status
