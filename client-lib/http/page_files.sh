# SPDX-License-Identifier: Apache-2.0 OR MIT
# The files of the page as C, for page_files.h: the same bytes from the same files. Usage: page_files.sh FILE...
set -eu

type_of()
{
	case $1 in
	*.html) echo 'text/html; charset=utf-8' ;;
	*.css) echo 'text/css; charset=utf-8' ;;
	*.js) echo 'text/javascript; charset=utf-8' ;;
	*.svg) echo 'image/svg+xml' ;;
	*) echo "page_files.sh: $1 is of no known type" >&2 && exit 1 ;;
	esac
}

echo '#include "client-lib/http/page_files.h"'
number=0
for file; do
	echo "static const unsigned char data_$number[] = {"
	od -An -v -tx1 "$file" | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
	echo '};'
	number=$((number + 1))
done
echo 'const struct page_file page_files[] = {'
number=0
for file; do
	type=$(type_of "$file")
	echo "	{ \"/${file##*/}\", \"$type\", data_$number, sizeof(data_$number) },"
	number=$((number + 1))
done
echo '	{ 0 },'
echo '};'
echo "const size_t page_file_count = $number;"
