// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"errors"
	"fmt"
	"strings"
)

// What can go wrong, for errors.Is. The text of each error says what happened, to which name, and what to do.
var (
	// ErrTaken: somebody else holds it, or waits for it. Nothing stays queued.
	ErrTaken = errors.New("lockbroker: it is taken")
	// ErrLost: the grant is void, and others may hold the lock. What was done under it since Lost was closed is in
	// doubt.
	ErrLost = errors.New("lockbroker: it was lost")
	// ErrNotAvailable is every outage: no broker serves the socket, it does not answer, it is draining, or it cannot
	// ask ZooKeeper. Whether the lock is taken is not known.
	ErrNotAvailable = errors.New("lockbroker: it is not available")
	// ErrNotHeld: it was released already.
	ErrNotHeld = errors.New("lockbroker: it is not held")
	// ErrDeadlock: waiting would never end. Release what is held, and start again.
	ErrDeadlock = errors.New("lockbroker: it would be a deadlock")
	// ErrDenied: this user may not do that.
	ErrDenied = errors.New("lockbroker: it is denied")
	// ErrBadName: not a lock name, which is 1..512 bytes of UTF-8 without control characters, and not "." or "..".
	ErrBadName = errors.New("lockbroker: it is no lock name")
	// ErrLimit: a limit of the broker is reached; the text names it.
	ErrLimit = errors.New("lockbroker: a limit is reached")
	// ErrMismatch: the name is of another kind, or the semaphore has another limit.
	ErrMismatch = errors.New("lockbroker: the name is of another kind")
	// ErrRefused: the request is not valid, or the broker did not accept it for another reason.
	ErrRefused = errors.New("lockbroker: it is refused")
	// ErrProtocol: the peer does not speak the protocol of lockbrokerd.
	ErrProtocol = errors.New("lockbroker: the peer is no lockbrokerd")
	// ErrClosed: the Client was closed.
	ErrClosed = errors.New("lockbroker: the client is closed")
)

// Error is each error of this package but ErrClosed. errors.Is compares it with the kinds above, and with the
// context's error if a context ended the call.
type Error struct {
	// Code is the broker's, as PROTOCOL.md lists them, such as "DEADLOCK". Empty: the error does not come from the
	// broker.
	Code string
	// Reason says why a grant was lost: "session" (the proof of the session ran out), "deleted" (somebody deleted its
	// znode), "lease", "limit", "forced" (an operator took it), "connection" (the broker ended), or "unanswered" (the
	// broker is silent, and nothing proves the grant any longer).
	Reason string

	text   string
	kind   error
	cause  error
	again  again
	silent bool // the broker is there, and does not answer: it hangs, or is stopped
}

// again says whether another connection may have what this one could not get.
type again int

const (
	never        again = iota
	whenItIsBack       // the connection ended, or nobody listens: the broker may be back in a moment
	ifItWas            // there is not even a socket: the broker may be back if it was there
)

func (e *Error) Error() string { return e.text }

// Is reports whether the error is of that kind.
func (e *Error) Is(target error) bool { return target == e.kind }

// Unwrap returns what the system said, if that is the cause.
func (e *Error) Unwrap() error { return e.cause }

func failed(kind error, format string, values ...any) *Error {
	return &Error{kind: kind, text: fmt.Sprintf(format, values...)}
}

var kinds = map[string]error{
	"ERR": ErrRefused, "BADNAME": ErrBadName, "HELD": ErrRefused, "NOTHELD": ErrNotHeld, "LOST": ErrLost,
	"DEADLOCK": ErrDeadlock, "LIMIT": ErrLimit, "DENIED": ErrDenied, "MISMATCH": ErrMismatch,
	"UNAVAILABLE": ErrNotAvailable, "DRAINING": ErrNotAvailable, "NOPROTO": ErrRefused, "NOSCRIPT": ErrRefused,
}

// refusal is the error of an error reply. A code of a newer broker is ErrRefused.
func refusal(reply errorReply) *Error {
	code, sentence, _ := strings.Cut(string(reply), " ")
	kind, known := kinds[code]
	if !known {
		kind = ErrRefused
	}
	if sentence == "" || !known {
		sentence = string(reply)
	}
	return &Error{Code: code, kind: kind, text: sentence}
}

func lostFor(what *request, reason string) *Error {
	e := failed(ErrLost, "the grant of %s is void (%s): others may hold it", what, reason)
	e.Reason = reason
	return e
}

// isAny reports whether the error is of one of the kinds.
func isAny(err error, kinds ...error) bool {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
