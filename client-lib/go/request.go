// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	waitMax    = 365 * 24 * time.Hour // a year, as the broker has it
	namesShown = 4
)

type kind int

const (
	aLock kind = iota
	someLocks
	permits
	leadership
	question
)

var commands = map[kind]struct{ what, acquire, release string }{
	aLock:      {"the lock", "LOCK", "UNLOCK"},
	someLocks:  {"the locks", "MLOCK", "MUNLOCK"},
	permits:    {"the semaphore", "ACQUIRE", "RELEASE"},
	leadership: {"the election", "CAMPAIGN", "RESIGN"},
	question:   {"the command", "", ""},
}

// request is what is asked for: a lock, several of them, permits of a semaphore, or the leadership of an election.
type request struct {
	kind    kind
	names   []string // one, but for someLocks
	wait    time.Duration
	waits   bool // for ever, unless it says for how long
	lease   time.Duration
	shared  bool
	data    string
	hasData bool
	limit   int
	count   int
	group   string
	wrong   error
}

// LockOption is an option of a call that locks.
type LockOption func(*request)

// Shared locks together with all others that only read.
func Shared() LockOption { return func(r *request) { r.shared = true } }

// Wait limits the wait: after that time the call returns ErrTaken, or ErrNotAvailable if it is not known whether
// somebody else holds the lock. 0: only if it is free now, as TryLock. Without: until the context ends, which does not
// tell the two apart. At most a year.
func Wait(limit time.Duration) LockOption {
	return func(r *request) {
		if limit < 0 {
			r.wrong = failed(ErrRefused, "the time to wait is %v: it has to be 0 or more", limit)
		}
		r.waits, r.wait = false, atMost(limit)
	}
}

// Lease makes the broker take the lock back by itself, that long after it was granted; Held.Renew restarts that.
// Without: the lock is held while the connection lasts.
func Lease(length time.Duration) LockOption {
	return func(r *request) {
		r.wrong = leaseFault(length)
		r.lease = atMost(length)
	}
}

func leaseFault(length time.Duration) error {
	if length <= 0 {
		return failed(ErrRefused, "the lease is %v: it has to be more than 0", length)
	}
	return nil
}

// Data is a text of 1..512 bytes that "lockbroker who" shows with the holder.
func Data(text string) LockOption { return func(r *request) { r.data, r.hasData = text, true } }

// Count is the number of permits of a semaphore. Without: 1.
func Count(permits int) LockOption { return func(r *request) { r.count = permits } }

// Group puts what is locked into a lock group: locks of one piece of work, which keeps all of them until it is done.
// The broker then sees that a wait of one is a wait of all, and a call that would wait for its own group, or in a
// circle, gets ErrDeadlock. Go does not say which goroutine works for which other one, so without this option nothing
// is in a group. The text is printable ASCII without spaces, at most 64 bytes; programs that say the same text are one
// group.
func Group(text string) LockOption { return func(r *request) { r.group = text } }

// NewGroup is Group with a text that nobody else has.
func NewGroup() LockOption {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		panic("lockbroker: the system has no random numbers: " + err.Error())
	}
	return Group("go-" + hex.EncodeToString(random[:]))
}

func newRequest(kind kind, names []string, options []LockOption) (*request, error) {
	r := &request{kind: kind, names: names, waits: true}
	if kind == permits {
		r.count = 1
	}
	if len(names) == 0 {
		return nil, failed(ErrRefused, "no name: say which locks")
	}
	for _, option := range options {
		if option(r); r.wrong != nil {
			return nil, r.wrong
		}
	}
	return r, nil
}

func atMost(d time.Duration) time.Duration {
	if d > waitMax {
		return waitMax
	}
	return d
}

// milliseconds rounds up, so that nothing is shorter than it was asked to be.
func milliseconds(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}

func (r *request) String() string {
	shown := r.names
	if len(shown) > namesShown {
		shown = shown[:namesShown]
	}
	text := commands[r.kind].what + " " + strings.Join(shown, ", ")
	if more := len(r.names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// acquire is the request with what is left of the time to wait.
func (r *request) acquire(left time.Duration) words {
	command := r.begin(commands[r.kind].acquire)
	if r.kind == permits {
		command = append(command, "LIMIT", strconv.Itoa(r.limit))
	}
	if r.count != 0 || r.kind == permits {
		command = append(command, "COUNT", strconv.Itoa(r.count))
	}
	return r.withOptions(command, left)
}

func (r *request) withOptions(command words, left time.Duration) words {
	if r.shared {
		command = append(command, "SHARED")
	}
	if !r.waits {
		command = append(command, "WAIT", milliseconds(left))
	}
	if r.lease > 0 {
		command = append(command, "LEASE", milliseconds(r.lease))
	}
	if r.hasData {
		command = append(command, "DATA", r.data)
	}
	return command
}

// release is of all of it. It needs no token: the connection holds nothing else.
func (r *request) release() words {
	command := r.begin(commands[r.kind].release)
	if r.count != 0 {
		command = append(command, "COUNT", strconv.Itoa(r.count))
	}
	return command
}

// begin: where there can be several names, their number comes first.
func (r *request) begin(command string) words {
	begun := words{command}
	if r.kind == someLocks {
		begun = append(begun, strconv.Itoa(len(r.names)))
	}
	return append(begun, r.names...)
}

// each is a command for each of the names.
func (r *request) each(command string, more ...string) []words {
	all := make([]words, len(r.names))
	for i, name := range r.names {
		all[i] = append(words{command, name}, more...)
	}
	return all
}

// tokens are those of the answer, by name; permits have none.
func (r *request) tokens(answer any) (map[string]int64, error) {
	list, _ := answer.([]any)
	if r.kind != someLocks {
		list = []any{answer}
	}
	tokens := make(map[string]int64, len(list))
	for i, one := range list {
		token, isNumber := one.(int64)
		if !isNumber || i >= len(r.names) {
			break
		}
		tokens[r.names[i]] = token
	}
	if len(list) != len(r.names) || len(tokens) != len(list) {
		return nil, failed(ErrProtocol, "the broker's answer to a request for %s is not a number for each name", r)
	}
	if r.kind == permits {
		return nil, nil
	}
	return tokens, nil
}
