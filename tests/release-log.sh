#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Without an argument: says when `make release` passed last. With "passed": writes that it has, for the commit; if the
# sources differ from it, that is not recorded, because nobody could tell later what passed.
set -eu

log=tests/release-log

if [ "${1-}" != passed ]; then
	last=$(grep -v '^#' "$log" | tail -n 1)
	echo "== the last run of make release that passed: ${last:-none is recorded}"
	exit 0
fi
commit=$(git rev-parse -q --verify HEAD 2>/dev/null) || commit=
if [ -z "$commit" ] || [ -n "$(git status --porcelain -- ":!$log")" ]; then
	echo "== all of make release passed; not recorded in $log: these sources are no commit"
	exit 0
fi
echo "$(date -u +%Y-%m-%d) $commit" >>"$log"
echo "== all of make release passed; recorded in $log, which is for the next commit"
