// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// TestMain leaves the examples out where no broker is named: they need a real one.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("LOCKBROKER_SOCKET") == "" {
		flag.Set("test.run", "^Test")
	}
	os.Exit(m.Run())
}

// hang is longer than anything takes on a busy machine.
const hang = time.Minute

// broker grants whatever is asked for, and tells of the page that it is told to tell of.
type broker struct {
	t        *testing.T
	path     string
	listener net.Listener
	page     *pageFile
	ended    chan struct{} // says that a connection has ended

	mu      sync.Mutex
	answers map[string]string // instead of those below, by command
	pause   time.Duration     // before each
	silent  bool
	asked   []string
	peers   []net.Conn
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{t: t, path: filepath.Join(t.TempDir(), "socket"), answers: map[string]string{}, page: newPage(t)}
	b.ended = make(chan struct{}, 100)
	listener, err := net.Listen("unix", b.path)
	if err != nil {
		t.Fatal(err)
	}
	b.listener = listener
	t.Cleanup(func() { listener.Close() })
	go b.accept(listener)
	return b
}

func (b *broker) accept(listener net.Listener) {
	for {
		peer, err := listener.Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		b.peers = append(b.peers, peer)
		b.mu.Unlock()
		go b.serve(peer)
	}
}

func (b *broker) serve(peer net.Conn) {
	defer func() { b.ended <- struct{}{} }()
	defer peer.Close()
	in := bufio.NewReader(peer)
	for {
		request, err := readRequest(in)
		if err != nil {
			return
		}
		answer, pause := b.answer(request)
		time.Sleep(pause)
		if answer != "" {
			if _, err := io.WriteString(peer, answer); err != nil {
				return
			}
		}
	}
}

func readRequest(in *bufio.Reader) (words, error) {
	line := func() (int, error) {
		text, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(text[1 : len(text)-2])
	}
	count, err := line()
	var request words
	for i := 0; i < count && err == nil; i++ {
		var length int
		if length, err = line(); err == nil {
			word := make([]byte, length+2)
			_, err = io.ReadFull(in, word)
			request = append(request, string(word[:length]))
		}
	}
	return request, err
}

func (b *broker) answer(request words) (string, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, request[0])
	if b.silent {
		return "", 0
	}
	if answer, isSet := b.answers[request[0]+" "+request[1%len(request)]]; isSet {
		return answer, b.pause
	}
	if answer, isSet := b.answers[request[0]]; isSet {
		return answer, b.pause
	}
	return b.usual(request[0]), b.pause
}

func (b *broker) usual(command string) string {
	return map[string]string{"HELLO": b.hello(), "LOCK": ":7\r\n", "VALID": ":5000\r\n", "UNLOCK": ":0\r\n",
		"CLIENT": "+OK\r\n", "RENEW": ":1\r\n", "MLOCK": "*2\r\n:7\r\n:8\r\n", "MUNLOCK": "*2\r\n:0\r\n:0\r\n",
		"PING": "+PONG\r\n", "CANCEL": ":1\r\n"}[command]
}

func (b *broker) hello() string {
	text := "%2\r\n"
	for _, word := range []string{"session_page", b.page.path, "session_page_id", b.page.idText()} {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	return text
}

// set sets the answer to a command, or to one with that first word.
func (b *broker) set(command, answer string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[command] = answer
}

func (b *broker) delay(pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pause = pause
}

func (b *broker) beSilent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent = true
}

// last is the peer that connected last.
func (b *broker) last() net.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peers[len(b.peers)-1]
}

func (b *broker) send(text string) {
	b.t.Helper()
	if _, err := io.WriteString(b.last(), text); err != nil {
		b.t.Fatal(err)
	}
}

// count is how often a command was asked for.
func (b *broker) count(command string) (count int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.asked {
		if one == command {
			count++
		}
	}
	return count
}

func (b *broker) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = nil
}

// awaitAsked waits until a command was asked for.
func (b *broker) awaitAsked(command string) {
	b.t.Helper()
	eventually(b.t, command, func() bool { return b.count(command) > 0 })
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(hang); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}

func (b *broker) client(options ...OpenOption) *Client {
	b.t.Helper()
	client, err := Open(append([]OpenOption{Socket(b.path)}, options...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { client.Close() })
	<-b.ended
	b.forget()
	return client
}

func (b *broker) lock(options ...LockOption) *Held {
	b.t.Helper()
	held, err := b.client().Lock(context.Background(), "a", options...)
	if err != nil {
		b.t.Fatal(err)
	}
	return held
}

// pageFile is a session page that the test writes.
type pageFile struct {
	t        *testing.T
	path     string
	id       [16]byte
	sequence uint64
}

func newPage(t *testing.T) *pageFile {
	p := &pageFile{t: t, path: filepath.Join(t.TempDir(), "page")}
	_, _ = rand.Read(p.id[:])
	p.write(0, pageSafe, time.Hour)
	return p
}

func (p *pageFile) idText() string { return hex.EncodeToString(p.id[:]) }

func (p *pageFile) write(epoch, state uint64, left time.Duration) {
	p.writeAs(pageMagic, 1, epoch, state, left, false)
}

func (p *pageFile) writeAs(magic, version uint32, epoch, state uint64, left time.Duration, odd bool) {
	p.t.Helper()
	if p.sequence |= 1; !odd {
		p.sequence++
	}
	until := int64(left)
	if left != 0 && left != forever {
		until += clock()
	}
	data := make([]byte, 64)
	order := hostOrder()
	order.PutUint32(data, magic)
	order.PutUint32(data[4:], version)
	order.PutUint64(data[8:], p.sequence)
	order.PutUint64(data[16:], epoch)
	order.PutUint64(data[24:], state)
	order.PutUint64(data[32:], uint64(until))
	copy(data[40:], p.id[:])
	file, err := os.OpenFile(p.path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err == nil {
		_, err = file.WriteAt(data, 0)
		file.Close()
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func hostOrder() binary.ByteOrder {
	one := uint16(1)
	if *(*byte)(unsafe.Pointer(&one)) == 1 {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

func isBetween(t *testing.T, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Fatalf("%v is not between %v and %v", got, least, most)
	}
}

func is(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("%v is not %v", err, kind)
	}
}

func isLost(t *testing.T, held *Held, reason string) {
	t.Helper()
	select {
	case <-held.Lost():
	case <-time.After(hang):
		t.Fatal("nobody says that it was lost")
	}
	<-held.Context().Done()
	err := held.Check()
	is(t, err, ErrLost)
	var e *Error
	if errors.As(err, &e); e.Reason != reason {
		t.Fatalf("lost because of %q, not %q", e.Reason, reason)
	}
	if left := held.ValidFor(); left != 0 {
		t.Fatalf("what was lost is valid for %v", left)
	}
}

func notLost(t *testing.T, held *Held) {
	t.Helper()
	select {
	case <-held.Lost():
		t.Fatal(held.Check())
	default:
	}
}
