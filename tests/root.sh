#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A minimal Debian as a tar file: of the release given (else the one that runs here), from the mirrors that apt uses here,
# as mmdebstrap makes it with the options given. Prints its path. It is made once for each list of options, and kept in the
# folder. As root.
#   sh tests/root.sh FOLDER [--release=NAME] [OPTION...]
set -eu

folder=$1
shift
. /etc/os-release
release=$VERSION_CODENAME
case ${1-} in
--release=*)
	release=${1#*=}
	shift
	;;
esac

# A mirror has all releases. Nothing, where apt has no lists: mmdebstrap then knows Debian's own mirror.
mirrors=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
	sed -n "s/ $VERSION_CODENAME\([ -]\)/ $release\1/p" | sort -u) || :
digest=$(printf '%s\n' "$release" "$mirrors" "$@" | sha256sum | cut -c 1-12)
tar=$folder/root-$digest.tar

mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
if [ ! -e "$tar" ]; then
	memory=/dev/shm
	[ -w $memory ] || memory=$folder
	TMPDIR=$(mktemp -d "${LOCKBROKER_RUN:-$memory}/root.XXXXXX")
	export TMPDIR
	trap 'rm -rf "$TMPDIR"' EXIT
	trap 'exit 1' HUP INT TERM
	chmod 755 "$TMPDIR"
	set -- --quiet --mode=root --aptopt='Acquire::Languages "none"' "$@" "$release" "$tar.new.tar"
	[ -z "$mirrors" ] || set -- "$@" -
	# A shell that apt runs for mmdebstrap knows descriptors of one digit only, and make may have left others open.
	printf '%s\n' "$mirrors" | mmdebstrap "$@" >&2 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
	mv "$tar.new.tar" "$tar"
fi
echo "$tar"
