#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make release: tests/release.sh BUILD STEP...
# Runs `make STEP` for each, in order, up to the first that fails. A step that has passed for this commit on this
# machine is not run again: BUILD/release-passed has the commits and steps. When all have passed, the day and the
# commit go into tests/release-log. Sources that are no commit, or differ from it, are tested as well, but nothing is
# recorded, because nobody could tell later what passed.
set -eu

build=$1
shift
log=tests/release-log
passed=$build/release-passed
# `make -n` only says what it would run.
flags=${MAKEFLAGS-}
case ${flags%% *} in *=* | -*) ;; *n*) exec printf '%s\n' "$@" ;; esac
last=$(grep -v '^#' "$log" | tail -n 1)
echo "== the last run of make release that passed: ${last:-none is recorded}"

commit_of_sources() {
	[ -z "$(git status --porcelain -- ":!$log" 2>/dev/null)" ] && git rev-parse -q --verify HEAD 2>/dev/null || :
}

mkdir -p "$build"
for step; do
	commit=$(commit_of_sources)
	if [ -n "$commit" ] && grep -qsxF "$commit $step" "$passed"; then
		echo "== $(date +%T) $step: has passed for this commit"
		continue
	fi
	echo "== $(date +%T) $step"
	eval "${MAKE:-make} $step"
	if [ -n "$commit" ] && [ "$(commit_of_sources)" = "$commit" ]; then
		echo "$commit $step" >>"$passed"
	fi
done

commit=$(commit_of_sources)
if [ -z "$commit" ]; then
	echo "== all of make release passed; not recorded in $log: these sources are no commit"
	exit 0
fi
echo "$(date -u +%Y-%m-%d) $commit" >>"$log"
echo "== $(date +%T) all of make release passed; recorded in $log, which is for the next commit"
