#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the files that differ from origin/main, those that git does not know yet among them; on origin/main itself, and
# where there is none, from the commit before. With --sources: of the C sources, those that differ or include what differs,
# and "all" where that cannot be known: there is no git or no commit before, or what reads the sources has changed. (Without
# --sources nothing is printed then.)
set -eu

differ()
{
	head=$(git rev-parse -q --verify HEAD 2>/dev/null) || return
	base=$(git merge-base HEAD origin/main 2>/dev/null) || base=$head
	[ "$base" != "$head" ] || base=$(git rev-parse -q --verify HEAD~1) || return
	git diff --name-only --diff-filter=d "$base" && git ls-files --others --exclude-standard
}

sources=${1-}
readers='\.clang-tidy|tests/(lint|changed|deps)\.sh'
if ! changed=$(differ) || { [ -n "$sources" ] && printf '%s\n' "$changed" | grep -qxE "$readers"; }; then
	[ -z "$sources" ] || echo all
	exit 0
fi
if [ -z "$sources" ]; then
	printf '%s\n' "$changed" | sort -u
	exit 0
fi

# `one.o: one.c a.h b.h`, a line for each source.
find protocol daemon client-lib -name '*.c' | while read -r source; do
	${CC:-cc} -I. -Idaemon -D_GNU_SOURCE -MM "$source" | tr -d '\\\n' | sed "s|^[^:]*:|$source|"
	echo
done | awk -v changed="$changed" '
	BEGIN { count = split(changed, list, "\n"); for (i = 1; i <= count; i++) differs[list[i]] }
	{ for (i = 1; i <= NF; i++) if ($i in differs) { print $1; next } }'
