#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The compiler of the build that shows what is executed: sources that may be mutated get a mark at each basic block, and are
# not optimized, so that a line has instructions of its own.
case " $* " in
*" -c daemon/core/"* | *" -c daemon/base/"*) ;;
*" -c daemon/"* | *" -c client-lib/"*) set -- "$@" -O0 -U_FORTIFY_SOURCE -fsanitize-coverage=trace-pc ;;
esac
exec gcc "$@"
