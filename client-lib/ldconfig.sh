#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# After `make install`: makes the library known to the dynamic linker, or says what is left to be done.
# Arguments: DESTDIR, the library's directory, its file name. $LDCONFIG: the program.
set -u
if [ -n "$1" ]; then
	echo "Installed below $1: run ldconfig where that is unpacked."
elif ! $LDCONFIG >/dev/null 2>/dev/null; then
	echo "Run ldconfig as root, so that programs find $2/$3."
elif ! $LDCONFIG -p | grep -qF " => $2/$3"; then
	echo "Programs do not find $2/$3: add $2 to /etc/ld.so.conf.d and run ldconfig, or set LD_LIBRARY_PATH."
fi
