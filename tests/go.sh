#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Says where Go 1.19 or later is, or what is missing. Debian has each version below a path of its own; the package golang-go,
# which puts one into $PATH, displaces gccgo-go, whose go is too old for the module and which other tests need.
for go in $(ls -d /usr/lib/go-1.*/bin/go 2>/dev/null | sort -rV) go; do
	minor=$("$go" version 2>/dev/null | sed -n '/gccgo/d; s/^go version go1\.\([0-9]*\).*/\1/p')
	[ "${minor:-0}" -ge 19 ] && command -v "$go" && exit 0
done
echo "no Go 1.19 or later: sh tests/deps.sh check" >&2
exit 1
