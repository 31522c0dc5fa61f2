// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"runtime"
	"syscall"
	"unsafe"
)

const clockBoottime = 7

// clock returns nanoseconds of CLOCK_BOOTTIME, which counts while the machine is suspended: the clock of the page, and
// of leases. The time package has no such clock.
func clock() int64 {
	var now syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&now)), 0)
	if errno != 0 {
		panic("lockbroker: CLOCK_BOOTTIME: " + errno.Error()) // Linux has had it since 2.6.39
	}
	return now.Nano()
}

// mapPage returns the memory of the page at that path, or nil. The kernel maps whole pages of the machine, whatever
// their size; the file is one of 64 bytes.
func mapPage(path string) []byte {
	if path == "" {
		return nil
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	var stat syscall.Stat_t
	if syscall.Fstat(fd, &stat) != nil || stat.Mode&syscall.S_IFMT != syscall.S_IFREG || stat.Size != pageBytes {
		return nil
	}
	memory, err := syscall.Mmap(fd, 0, pageBytes, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	return memory
}

// ownPage makes the page that owns the memory.
func ownPage(id string, memory []byte) *page {
	p := &page{id: id, memory: memory}
	runtime.SetFinalizer(p, func(p *page) { _ = syscall.Munmap(p.memory) })
	return p
}
