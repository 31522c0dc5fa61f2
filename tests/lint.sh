#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a compiler does not see: house rules of layout and length, then the static analyzers. Every finding is shown
# before it fails. Wants to be called from the project's directory by `make lint`, after the layers were checked.
# Arguments: the sources that the analyzers are to read; "all" for all of them.
set -u

status=0
found()
{
	[ -z "$2" ] && return
	echo "lint: $1:" >&2
	printf '%s\n' "$2" >&2
	status=1
}

need()
{
	command -v "$1" >/dev/null 2>&1 && return
	found "not installed: sh tests/deps.sh lint" "$1"
	return 1
}

c_files=$(find protocol daemon client-lib tests -name '*.[ch]' | sort)
sources=$(find protocol daemon client-lib -name '*.c' ! -path '*/examples/*' | sort)
[ "$*" = all ] || sources=$(printf '%s\n' "$@" | grep -xF "$sources")
scripts=$(find tests client-lib debian .ci -name '*.sh' -o -path .ci/run -o -name 'lockbrokerd.p*' | sort)
python=$(find tests client-lib -name '*.py' | sort)
go=$(find tests client-lib -name '*.go' | sort)
java=$(find client-lib tests -name '*.java' | sort)
page=$(find client-lib/http/page -type f | sort)
text=$(find . \( -name .git -o -name build -o -name __pycache__ \) -prune -o -type f -print | sort)

echo "lint: layout"
found "space at the end of a line" "$(grep -nE '[[:blank:]]+$' $c_files $scripts $python $go $java $page Makefile)"
found "indented by spaces" "$(grep -nE '^    ' $c_files | grep -vE '^[^:]*:[0-9]+: +\*')"
# 120 is the measure; a tab counts as four, and nobody has to break a sentence for a letter or two.
library=$(find client-lib -name '*.py' -o -name '*.go' -o -name '*.java' | sort)
found "much longer than 120 columns" "$(for file in $c_files $scripts $library $page; do
	expand -t 4 "$file" | awk -v file="$file" 'length > 125 { print file ":" NR ": " length " columns" }'; done)"
# Assembled here, so that this file does not find itself.
found "a note to oneself is no code: do it, or file it" "$(grep -nwE "TO""DO|FIX""ME|XX""X" $text)"

found "a comment that names what does not exist" "$(/usr/bin/python3 -B tests/comments.py $c_files)"

echo "lint: sentences"
found "the search for sentences without a noun errs" "$(/usr/bin/python3 -B tests/plain_test.py 2>&1)"
found "a sentence whose reader has to guess the noun" "$(/usr/bin/python3 -B tests/plain.py 2>&1)"

echo "lint: length"
# The public header is written for its readers, and for any compiler.
headers=$(printf '%s\n' $c_files | grep '\.h$' | grep -vx client-lib/lockbroker.h)
found "a source whose first lines do not name its licence" "$(for file in $c_files $scripts $python $go $java Makefile; do
	case $file in ./*) file=${file#./} ;; esac
	case $file in client-lib/* | protocol/*) licence='Apache-2.0 OR MIT' ;; *) licence='Apache-2.0' ;; esac
	head -n 2 "$file" | grep -qE "SPDX-License-Identifier: $licence( \*/)?\$" || echo "$file"; done)"
found "a header without #pragma once" "$(grep -L '^#pragma once' $headers)"
found "a function over 70 lines" "$(awk 'FNR == 1 { begin = 0 } /^\{/ { begin = FNR }
	/^\}/ { if (begin && FNR - begin > 70) print FILENAME ":" begin ": " FNR - begin " lines"; begin = 0 }' \
	$(printf '%s\n' $c_files | grep '\.c$'))"

echo "lint: scripts"
for script in $scripts; do
	case $(head -n 1 "$script") in *bash*) shell=bash ;; *) shell=sh ;; esac
	found "no valid script" "$($shell -n "$script" 2>&1)"
done
found "no valid Python" "$(/usr/bin/python3 -B -c '
import ast, sys
for file in sys.argv[1:]:
	try:
		ast.parse(open(file).read(), file)
	except SyntaxError as e:
		print(f"{file}:{e.lineno}: {e.msg}")' $python 2>&1)"

# All are looked for; those are compiled whose files differ, or include what differs.
differ="none $* $(sh tests/changed.sh)"
[ "$*" != all ] || differ=
found "a mutant that cannot be made any longer" \
	"$(/usr/bin/python3 -B tests/sim/mutants.py --list --jobs "$(nproc)" $differ | grep -v '^ *[0-9]')"

if need mandoc; then
	echo "lint: manuals"
	# What it says of the pages stands in its output; its errors may be about manuals that this machine lacks.
	for page in client-lib/man/*; do
		found "mandoc finds fault with $page" "$(mandoc -T lint -W warning "$page" 2>/dev/null || echo "status $?")"
	done
fi

if need mypy; then
	echo "lint: mypy"
	mypy --strict --python-version 3.9 --cache-dir /dev/null --no-error-summary client-lib/python/lockbroker || status=1
fi

if [ -z "$sources" ]; then
	echo "lint: no source for the analyzers to read"
	[ $status = 0 ] && echo "lint: nothing found"
	exit $status
fi

includes="-I. -Idaemon -D_GNU_SOURCE -DLOCKBROKERD_VERSION=\"0\" -DLOCKBROKER_SYSCONFDIR=\"/etc\""
jobs=$(nproc)
if need cppcheck; then
	echo "lint: cppcheck"
	# It reads no system headers, and cannot guess what the macros of this one stand for.
	queue=$(echo '#include <sys/queue.h>' | cc -E -H -x c - 2>&1 >/dev/null | sed -n 's/^\. //p' | head -n 1)
	cppcheck -q -j "$jobs" --std=c11 --enable=warning,portability,performance --inline-suppr --error-exitcode=1 \
		--suppress=missingIncludeSystem --suppress=unknownMacro --include="$queue" $includes $sources || status=1
fi
if need clang-tidy; then
	echo "lint: clang-tidy"
	printf '%s\n' $sources | xargs -P "$jobs" -I{} clang-tidy --quiet {} -- -std=gnu11 $includes 2>/dev/null || status=1
fi

[ $status = 0 ] && echo "lint: nothing found"
exit $status
