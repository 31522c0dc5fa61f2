#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs fuzz targets: BUILD, seconds for each, and the targets' names; two at a time. libFuzzer is a part of clang; where
# there is none, the driver makes twenty times as many inputs as in the unit tests, and what is left out is said; with
# NEED_CLANG set, as CI sets it, that is an error. It begins with what is kept in tests/fuzz/corpus/NAME; what it finds worth
# trying again is in BUILD/fuzz/NAME.inputs. An input that fails is left in BUILD/fuzz, and named.
set -u

build=$1
seconds=$2
shift 2
dir=$build/fuzz
mkdir -p "$dir" || exit 1

# Its runtime is in a package of its own.
has_libfuzzer()
{
	echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
		clang -fsanitize=fuzzer,address,undefined -x c - -o "$dir/probe" 2>/dev/null && rm "$dir/probe"
}

if ! has_libfuzzer; then
	echo "fuzz: there is no clang with libFuzzer (packages clang and libclang-rt-dev of Debian 12)" >&2
	[ -z "${NEED_CLANG-}" ] || exit 1
	echo "fuzz: left out: fuzz_core (the whole core), and inputs that follow what the code does; the driver runs instead" >&2
	for target in "$@"; do
		$MAKE BUILD="$build/san" SAN=address,undefined "$build/san/tests/$target" || exit 1
		seed=$(date +%s)
		"$build/san/tests/$target" 1200000 "$seed" || { echo "again: $build/san/tests/$target 1200000 $seed"; exit 1; }
	done
	exit 0
fi

libfuzzer()
{
	$MAKE CC=clang SAN=fuzzer-no-link,address,undefined WERROR= "$@" || exit 1
}

# fuzz_core counts the steps of each event (tests/steps/). Its bytes are choices: to try operands of comparisons is no use.
libfuzzer BUILD="$dir" CFLAGS='-O1 -g' libfuzzer
libfuzzer BUILD="$dir/core" CFLAGS='-O1 -g -fno-sanitize-coverage=trace-cmp' STEPS=1 libfuzzer-core

fuzz()
{
	inputs=$dir/$1.inputs
	program=$dir/tests/libfuzzer/$1
	options="-max_total_time=$seconds -timeout=60 -print_final_stats=1"
	sanitizer=${ASAN_OPTIONS-}
	mkdir -p "$inputs"
	cp "tests/fuzz/corpus/$1"/* "$inputs"
	[ "$1" != fuzz_conf ] || cp conf/lockbroker.conf "$inputs/sample"
	# No two worlds run each edge equally often, so counts of runs would make nearly every input worth keeping. An input of
	# 360 bytes has about a hundred events.
	[ "$1" != fuzz_core ] || {
		program=$dir/core/tests/libfuzzer/$1
		options="$options -max_len=360 -entropic=0 -use_counters=0 -print_funcs=0"
		sanitizer=quarantine_size_mb=8:malloc_context_size=1:$sanitizer
	}
	# shellcheck disable=SC2086 # those are words
	LOCKBROKER_STEPS=1 ASAN_OPTIONS=$sanitizer "$program" $options -artifact_prefix="$dir/$1-" "$inputs" \
		>"$dir/$1.log" 2>&1 || { tail -n 60 "$dir/$1.log"; return 1; }
	sed -n "s/^stat::number_of_executed_units: */$1, inputs: /p; s/^#.*DONE *cov: \([0-9]*\).*/$1, edges: \1/p
		s/^The longest of/$1: the longest of/p" "$dir/$1.log"
}

set -- "$@" fuzz_core
status=0
while [ $# -gt 0 ]; do
	fuzz "$1" &
	first=$!
	shift
	if [ $# -gt 0 ]; then
		fuzz "$1" || status=1
		shift
	fi
	wait "$first" || status=1
done
exit $status
