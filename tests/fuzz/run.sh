#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs fuzz targets: BUILD, seconds for each, and the targets' names. libFuzzer is a part of clang; where there is none, the
# driver makes twenty times as many inputs as in the unit tests. An input that fails is left in BUILD/fuzz, and named.
set -u

build=$1
seconds=$2
shift 2
dir=$build/fuzz
mkdir -p "$dir" || exit 1

for target in "$@"; do
	if command -v clang >/dev/null 2>&1; then
		# shellcheck disable=SC2046
		clang -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. -Idaemon \
			-o "$dir/$target" "tests/fuzz/$target.c" \
			$(find protocol daemon/core -name '*.c') daemon/base/map.c daemon/base/heap.c daemon/base/rule.c || exit 1
		mkdir -p "$dir/$target.inputs"
		"$dir/$target" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$dir/$target-" \
			"$dir/$target.inputs" >"$dir/$target.log" 2>&1 || { tail -n 60 "$dir/$target.log"; exit 1; }
		sed -n "s/^stat::number_of_executed_units: */$target, inputs: /p" "$dir/$target.log"
	else
		$MAKE BUILD="$build/san" SAN=address,undefined "$build/san/tests/$target" || exit 1
		seed=$(date +%s)
		"$build/san/tests/$target" 1200000 "$seed" || { echo "again: $build/san/tests/$target 1200000 $seed"; exit 1; }
	fi
done
