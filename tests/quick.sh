#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a change needs before it is committed, after everything was built: house rules for all files, the analyzers for
# the sources that differ (tests/changed.sh), 10 s of simulator seeds that no run had before, beside some of each other
# mix, and 15 s of mutants, those of the changed files first. Arguments: the simulator, its objects, and a number that
# chooses the seeds. What fails says how to replay it.
set -u

sim=$1
objects=$2
first=$3
status=0

changed=$(sh tests/changed.sh)

echo "== lint of what changed"
# shellcheck disable=SC2086
sh tests/lint.sh $changed || status=1

summed_up()
{
	grep -vE '^(faults|queued|closest):' | sed 's|^\([0-9]* seeds, .* steps/s)\):.*|\1|'
}

echo "== simulator, seeds from $first"
log=$(mktemp) || exit 1
trap 'rm -f "$log" "$log.any"' EXIT
"$sim" --other-mixes | (
	while read -r mix; do
		echo "mix \"$mix\":"
		"$sim" --seeds 100000 --seconds 0.7 --first "$first" --mix "$mix" || exit 1
	done
) >"$log" &
mixes=$!
"$sim" --seeds 100000 --seconds 10 --first "$first" >"$log.any" || status=1
wait "$mixes" || status=1
summed_up <"$log.any"
summed_up <"$log"

echo "== mutants, in the order of $first"
# shellcheck disable=SC2086
/usr/bin/python3 -B tests/sim/mutants.py --objects "$objects" --seconds 15 --seed "$first" --jobs "$(nproc)" $changed ||
	status=1
exit $status
