#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A signed apt repository of the packages in the folders given, of each release and processor that is among them: the
# release is a part of their version (tests/deb.sh). It replaces the one that the folder has, once it is whole. For each
# release it has a file RELEASE.sources, which apt reads: where the repository is, and the public key.
#   sh tests/repo.sh FOLDER KEY URL PACKAGES...
# The key is one of the caller's (gpg --list-secret-keys), and $GNUPGHOME is heeded.
set -eu

fail()
{
	echo "make repo: $*" >&2
	exit 1
}

folder=$1
key=$2
url=$3
shift 3

[ -n "$key" ] || fail "which key signs it? KEY=, one of gpg --list-secret-keys"
fingerprint=$(gpg --batch --with-colons --list-secret-keys "$key" 2>/dev/null |
	sed -n 's/^fpr:*\([0-9A-F]*\):$/\1/p' | head -n 1)
[ -n "$fingerprint" ] || fail "gpg has no secret key \"$key\""

new=$folder.new
state=$(mktemp -d)
trap 'rm -rf "$state" "$new"' EXIT
trap 'exit 1' HUP INT TERM
rm -rf "$new"
mkdir -p "$new" "$state/conf"

find "$@" -maxdepth 1 -name '*.deb' | sort -u | while read -r package; do
	version=$(dpkg-deb -f "$package" Version)
	case $version in
	*+debian12) release=bookworm ;;
	*+debian13) release=trixie ;;
	*) fail "$package: its version, $version, ends with no release of Debian that is known here" ;;
	esac
	echo "$package" >>"$state/$release"
	dpkg-deb -f "$package" Architecture >>"$state/$release.processors"
done
releases=
for release in bookworm trixie; do
	[ ! -e "$state/$release" ] || releases="$releases $release"
done
[ -n "$releases" ] || fail "there are no packages in $*; make bookworm trixie builds them"

for release in $releases; do
	processors=$(sort -u "$state/$release.processors" | grep -vx all | tr '\n' ' ')
	printf '%s\n' 'Origin: lockbroker' 'Label: lockbroker' "Codename: $release" "Architectures: $processors" \
		'Components: main' "SignWith: $fingerprint" '' >>"$state/conf/distributions"
	{
		printf '%s\n' 'Types: deb' "URIs: $url" "Suites: $release" 'Components: main' 'Signed-By:'
		gpg --batch --armor --export "$fingerprint" | sed 's/^$/./; s/^/ /'
	} >"$new/$release.sources"
done
for release in $releases; do
	xargs reprepro --silent --basedir "$state" --outdir "$new" includedeb "$release" <"$state/$release"
	reprepro --basedir "$state" list "$release" | sed 's/^/make repo: /'
done
rm -rf "$folder.old"
[ ! -e "$folder" ] || mv "$folder" "$folder.old"
mv "$new" "$folder"
rm -rf "$folder.old"
echo "make repo: $folder, to be served as $url, signed by $fingerprint"
