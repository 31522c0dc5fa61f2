#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds for another kind of processor, and runs there what qemu can run: the unit tests, seeds of the simulator, and a
# daemon with a client; what depends on the size of a page also with pages of 64 KiB. Nothing is installed of that
# architecture: its libraries are in a folder of their own (tests/root.sh), and so is all that is built.
#   sh tests/cross.sh BUILD ARCH SEEDS FIRST UNIT_TESTS
# UNIT_TESTS: all the unit tests, or `memory`: those of memory that processes share. $MAKE, $WERROR.
set -eu

build=$1
arch=$2
seeds=$3
first=$4
unit_tests=$5
cd "$(dirname "$0")/.."

fail()
{
	echo "make cross: $*" >&2
	exit 1
}

case $arch in
arm64) triplet=aarch64-linux-gnu qemu=qemu-aarch64 loader=ld-linux-aarch64.so.1 ;;
*) fail "ARCH=arm64 is the one that is known here, not: ARCH=$arch" ;;
esac
libraries=libc6-dev,libevent-dev,libzookeeper-st-dev,libinih-dev,libcmocka-dev

say()
{
	echo "== $(date +%T) cross: $*"
}

mkdir -p "$build/cross"
folder=$(cd "$build/cross" && pwd)
say "the libraries of $arch"
tar=$(sh tests/root.sh "$folder" --variant=extract --arch="$arch" --include="$libraries")
sysroot=${tar%.tar}
# Without /dev and /etc, which qemu would show to programs in the place of those of this machine.
if [ ! -e "$sysroot/whole" ]; then
	rm -rf "$sysroot"
	mkdir "$sysroot"
	tar -C "$sysroot" --no-same-owner -xf "$tar" --exclude='./dev' --exclude='./etc' --exclude='./var' --exclude='./tmp'
	touch "$sysroot/whole"
fi
[ -e "$sysroot/lib/$loader" ] || fail "$sysroot is without $loader"

made=$folder/$arch
make_there()
{
	${MAKE:-make} BUILD="$made" CC="$triplet-gcc --sysroot=$sysroot" AR="$triplet-ar" LD="$triplet-ld" \
		OBJCOPY="$triplet-objcopy" "$@"
}

say "all, the unit tests and the simulator, for $arch"
make_there cross-all
for program in lockbrokerd lockbroker liblockbroker.so.1 tests/test_page sim; do
	readelf -h "$made/$program" | grep -q 'Machine: *AArch64' || fail "$program is of another machine"
done
# As packaging.sh looks for it where the compiler is that of the machine.
readelf -n "$made/obj/daemon/main.o" | grep -q 'BTI, PAC' || fail 'jumps are not checked (-mbranch-protection)'
"$triplet-objdump" -d "$made/lockbrokerd" | grep -q paciasp ||
	fail 'lockbrokerd as a whole is compiled without -mbranch-protection'

run()
{
	"$qemu" -L "$sysroot" "$@"
}

# Whatever maps memory that processes share, and what charges for it.
memory='page page_file conn_page delegation library_delegation library_threads ledger saved saved_file life remains
account trim memory_watch worker'
memory_tests()
{
	# shellcheck disable=SC2046,SC2086
	UNIT_RUNNER="$qemu -L $sysroot $*" sh tests/unit/run.sh $(printf "$made/tests/test_%s " $memory)
}

# What they need that qemu lacks, by program and test.
export UNIT_SKIPS=tests/cross.skip
say "unit tests: $unit_tests"
case $unit_tests in
all) UNIT_RUNNER="$qemu -L $sysroot" make_there cross-unit ;;
memory) memory_tests ;;
*) fail "UNIT_TESTS=all or UNIT_TESTS=memory is known here, not: UNIT_TESTS=$unit_tests" ;;
esac
# What fuzzing has found, and a few bytes more.
for program in "$made"/tests/fuzz_*; do
	run "$program" 1000 >"$folder/fuzz" 2>&1 || { cat "$folder/fuzz" >&2; fail "${program##*/}"; }
done
say 'a daemon and a client'
sh tests/cross_lock.sh "$made/lockbrokerd" "$made/lockbroker" "$qemu" -L "$sysroot"

say 'pages of 64 KiB'
memory_tests -p 65536
sh tests/cross_lock.sh "$made/lockbrokerd" "$made/lockbroker" "$qemu" -L "$sysroot" -p 65536

say "$seeds seeds from $first on"
half=$((seeds / 2))
run "$made/sim" --seeds "$half" --first "$first" >"$folder/half" 2>&1 &
other=$!
status=0
run "$made/sim" --seeds $((seeds - half)) --first $((first + half)) || status=$?
wait "$other" || status=$?
cat "$folder/half"
[ "$status" = 0 ] || exit "$status"
say passed
