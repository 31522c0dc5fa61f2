// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"encoding/hex"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"
)

// The session page of PROTOCOL.md: what the broker has proven, in memory that it shares. Reading it makes no system
// call, and it stays true while the broker hangs.

const (
	pageBytes   = 64
	pageMagic   = 0x4c425350
	pageVersion = 1
	pageTries   = 1000
	pageIDAt    = 40

	forever = math.MaxInt64
)

const (
	pageSafe     = 1
	pageJeopardy = 2
	pageMoved    = 4
)

type view struct {
	epoch, state uint64
	safeUntil    int64
}

// moved: the broker was killed, and has another page. This one counts until its safeUntil, and is never written again.
func (v view) moved() bool { return v.state == pageMoved }

func (v view) proven() bool {
	return v.state == pageSafe || v.state == pageJeopardy || v.state == pageMoved
}

// page is one mapped page. Connections share it; the memory is unmapped when nobody has it any longer.
type page struct {
	id     string
	memory []byte

	mu   sync.Mutex
	seen view
}

// read returns what the page says, or said last: a writer that is stopped or killed while it writes leaves it
// unreadable.
func (p *page) read() view {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, ok := readPage(p.memory); ok {
		p.seen = v
	}
	return p.seen
}

func readPage(memory []byte) (view, bool) {
	for try := 0; try < pageTries; try++ {
		before := word(memory, 8)
		magic, version := half(memory, 0), half(memory, 4)
		v := view{word(memory, 16), word(memory, 24), int64(word(memory, 32))}
		if before%2 == 1 || word(memory, 8) != before {
			continue
		}
		return v, magic == pageMagic && version == pageVersion && v.state <= pageMoved
	}
	return view{}, false
}

// Each word is read once, in this order: Go's atomic loads are sequentially consistent, also for memory that is not
// Go's.
func word(memory []byte, at int) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&memory[at])))
}

func half(memory []byte, at int) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&memory[at])))
}

// findPage returns the page of that id, or nil: there is none, or what stands at the path is another broker's, as it
// may be in another mount namespace. Then the broker has to be asked.
func findPage(path, id string) *page {
	memory := mapPage(path)
	if memory == nil {
		return nil
	}
	p := ownPage(id, memory)
	seen, ok := readPage(memory)
	if !ok || hex.EncodeToString(memory[pageIDAt:pageIDAt+16]) != id {
		return nil
	}
	p.seen = seen
	return p
}
