/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which basic blocks of a program were executed: gcc's -fsanitize-coverage=trace-pc calls at the beginning of each. A byte
 * for each address is set in a file that is mapped, so that what was executed is known however the process ends. The file
 * stands in the folder that LOCKBROKER_MARKS names, and is named after the image; its first page has the image's path. Each
 * program and each library has a copy of this.
 */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 4096, MARKS_BYTES = 8 << 20 };

/* The linker's: where this image begins. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static unsigned char *marks;

__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
	uintptr_t at = (uintptr_t)__builtin_return_address(0) - (uintptr_t)&__ehdr_start;

	if (marks && at < MARKS_BYTES && !marks[at])
		marks[at] = 1;
}

/* The linker's number of the image, which copies of it share: 20 bytes in a note. */
static const unsigned char *build_id(void)
{
	const unsigned char *image = (const unsigned char *)&__ehdr_start;
	const ElfW(Phdr) *p = (const void *)(image + __ehdr_start.e_phoff);

	for (int i = 0; i < __ehdr_start.e_phnum; i++) {
		const unsigned char *at = image + p[i].p_vaddr, *end = at + p[i].p_memsz;

		while (p[i].p_type == PT_NOTE && at < end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const unsigned char *name = at + sizeof(*note), *data = name + ((note->n_namesz + 3U) & ~3U);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz >= 20 && memcmp(name, "GNU", 4) == 0)
				return data;
			at = data + ((note->n_descsz + 3U) & ~3U);
		}
	}
	return NULL;
}

/* The path of the image that has `address`, as /proc/self/maps says it; an empty one if that cannot be read. */
static void image_path(uintptr_t address, char *path, size_t size)
{
	char line[1024];
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long begin, end;
	char *name;

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &begin, &end) == 2 && address >= begin && address < end) {
			name = strchr(line, '/');
			snprintf(path, size, "%.*s", name ? (int)strcspn(name, "\n") : 0, name ? name : "");
		}
	if (maps)
		fclose(maps);
}

__attribute__((constructor(101))) static void begin(void)
{
	const char *folder = getenv("LOCKBROKER_MARKS");
	const unsigned char *id = build_id();
	char path[1024], image[HEAD_BYTES] = "";
	void *map;
	int fd, len;

	if (!folder || !id)
		return;
	len = snprintf(path, sizeof(path), "%s/", folder);
	for (int i = 0; i < 20; i++)
		len += snprintf(path + len, sizeof(path) - (size_t)len, "%02x", id[i]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (fd < 0)
			return;
		fchmod(fd, 0666);
	}
	image_path((uintptr_t)&__ehdr_start, image, sizeof(image));
	if (lseek(fd, 0, SEEK_END) >= HEAD_BYTES + MARKS_BYTES ||
	    (pwrite(fd, image, sizeof(image), 0) == (ssize_t)sizeof(image) && ftruncate(fd, HEAD_BYTES + MARKS_BYTES) == 0)) {
		map = mmap(NULL, HEAD_BYTES + MARKS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map != MAP_FAILED)
			marks = (unsigned char *)map + HEAD_BYTES;
	}
	close(fd);
}
