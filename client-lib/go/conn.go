// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

const receiveBytes = 4096

// conn is a connection, which owns what is granted on it. One goroutine waits for what the broker sends. Whoever has
// to know what has come until now reads it, too (catchUp): it may have come while the whole process was stopped.
type conn struct {
	client *Client
	what   *request
	socket *net.UnixConn
	raw    syscall.RawConn

	writing sync.Mutex // held until the request is sent that has got a place among the answers

	mu      sync.Mutex // of all below; no function that waits is called with it
	parser  parser
	buffer  [receiveBytes]byte
	answers []func(any) // one for each request that is not answered yet; called with mu
	reading bool
	ended   bool
	why     error      // what came of the connection, once it has ended
	event   func(push) // called with mu, for what is no loss and no revocation
	grant
}

// connect never sends anything.
func (c *Client) connect(ctx context.Context, what *request) (*conn, error) {
	socket, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		socket.Close()
		return nil, failed(ErrNotAvailable, "cannot use the connection to %s: %v", c.path, err)
	}
	made := &conn{client: c, what: what, socket: socket, raw: raw}
	made.grant.init()
	if !c.remember(made) {
		socket.Close()
		return nil, ErrClosed
	}
	return made, nil
}

// place is a place among the answers, and where the answer comes out.
func place() (func(any), <-chan any) {
	answer := make(chan any, 1)
	return func(value any) { answer <- value }, answer
}

// send sends requests in one write, at most for as long as the patience of the client. If the connection has ended,
// each answer is an error that says so.
func (c *conn) send(requests []words, answers []func(any)) error {
	var data []byte
	for _, request := range requests {
		data = appendRequest(data, request)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if !c.expect(answers) {
		return nil
	}
	_ = c.socket.SetWriteDeadline(time.Now().Add(c.client.patience))
	if _, err := c.socket.Write(data); errors.Is(err, os.ErrDeadlineExceeded) {
		return c.client.silence()
	}
	return nil // a broker that refuses a client says why before it closes: that is found by reading
}

func (c *conn) expect(answers []func(any)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		for _, answer := range answers {
			answer(c.why)
		}
		return false
	}
	c.answers = append(c.answers, answers...)
	if !c.reading {
		c.reading = true
		go c.read()
	}
	return true
}

// read receives until the end.
func (c *conn) read() {
	_ = c.raw.Read(c.pump)
	c.mu.Lock()
	c.end(c.client.ending())
	c.mu.Unlock()
	c.socket.Close()
	c.client.forget(c)
}

// catchUp receives what has come.
func (c *conn) catchUp() {
	_ = c.raw.Control(func(fd uintptr) { c.pump(fd) })
}

// pump receives what has come, and returns whether the connection has ended. What was received has been heeded when mu
// is free again.
func (c *conn) pump(fd uintptr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ended {
		n, err := syscall.Read(int(fd), c.buffer[:])
		switch {
		case err == syscall.EAGAIN:
			return false
		case err == syscall.EINTR:
		case err != nil || n <= 0:
			c.end(c.client.ending())
		default:
			c.feed(c.buffer[:n])
		}
	}
	return true
}

func (c *conn) feed(data []byte) {
	c.parser.feed(data)
	for !c.ended {
		value, err := c.parser.next()
		if err == errMore {
			return
		}
		if err != nil {
			c.end(err)
			return
		}
		c.take(value)
	}
}

func (c *conn) take(value any) {
	if event, isEvent := value.(push); isEvent {
		c.heed(event)
		return
	}
	if len(c.answers) == 0 {
		c.end(failed(ErrProtocol, "the broker sent an answer to no request"))
		return
	}
	answer := c.answers[0]
	c.answers = c.answers[1:]
	answer(value)
}

func (c *conn) heed(event push) {
	if len(event) < 1 {
		return
	}
	if len(event) >= 4 && (event[0] == "lost" || event[0] == "revoke") {
		name, _ := event[1].(string)
		reason, _ := event[3].(string)
		c.told(event[0] == "lost", name, reason)
		return
	}
	if c.event != nil {
		c.event(event)
	}
}

// end makes that the end of the connection, for all who wait for answers. The socket is closed by others.
func (c *conn) end(why error) {
	if c.ended {
		return
	}
	c.ended, c.why = true, why
	c.lose("connection")
	for len(c.answers) > 0 {
		answer := c.answers[0]
		c.answers = c.answers[1:]
		answer(why)
	}
	if c.event != nil {
		c.event(nil)
	}
}

// close releases what is held without waiting for the broker. It may be called again.
func (c *conn) close() {
	c.mu.Lock()
	c.released()
	c.end(c.client.ending())
	c.mu.Unlock()
	c.socket.Close()
	c.client.forget(c)
}

// wait returns an answer; an error reply is an error. A limit below 0 is none.
func (c *conn) wait(ctx context.Context, answer <-chan any, limit time.Duration) (any, error) {
	var late <-chan time.Time
	if limit >= 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case value := <-answer:
		return check(value)
	case <-ctx.Done():
		return nil, givenUp(ctx, c.what)
	case <-late:
		return nil, c.client.silence()
	}
}

func check(value any) (any, error) {
	switch value := value.(type) {
	case errorReply:
		return nil, refusal(value)
	case error:
		return nil, value
	}
	return value, nil
}

func givenUp(ctx context.Context, what *request) error {
	return failed(ctx.Err(), "the request for %s was given up: %v", what, ctx.Err())
}

// ask sends requests that are answered at once, and returns the answers. An error reply is an error, after all answers.
func (c *conn) ask(ctx context.Context, requests ...words) ([]any, error) {
	takes, answers := make([]func(any), len(requests)), make([]<-chan any, len(requests))
	for i := range requests {
		takes[i], answers[i] = place()
	}
	if err := c.send(requests, takes); err != nil {
		return nil, err
	}
	values := make([]any, len(requests))
	var wrong error
	for i, answer := range answers {
		value, err := c.wait(ctx, answer, c.client.patience)
		if err != nil && wrong == nil {
			wrong = err
		}
		if isSilent(err) || err != nil && ctx.Err() != nil {
			break
		}
		values[i] = value
	}
	return values, wrong
}

// begin greets, and sends the request in the same write. When the broker has greeted, the answer to the request goes to
// `take`, which is called with mu.
func (c *conn) begin(ctx context.Context, request words, take func(any)) error {
	takeHello, hello := place()
	requests := []words{{"HELLO", "3"}}
	takes := []func(any){func(value any) { c.greeted(value); takeHello(value) }}
	greetings := []<-chan any{hello}
	if c.what.group != "" {
		takeOwner, owner := place()
		requests, takes = append(requests, words{"CLIENT", "SETINFO", "OWNER", c.what.group}), append(takes, takeOwner)
		greetings = append(greetings, owner)
	}
	if err := c.send(append(requests, request), append(takes, take)); err != nil {
		return err
	}
	for i, greeting := range greetings {
		value, err := c.wait(ctx, greeting, c.client.patience)
		var e *Error
		if errors.As(err, &e) && e.Code == "DRAINING" {
			err = &Error{Code: e.Code, kind: e.kind, text: e.text, again: whenItIsBack}
		} else if i == 0 && errors.As(err, &e) && e.again == whenItIsBack {
			err = c.client.wordless()
		}
		if err != nil {
			return err
		}
		if _, isMap := value.(map[string]any); i == 0 && !isMap {
			return failed(ErrProtocol, "the program that serves %s does not greet as lockbrokerd does", c.client.path)
		}
	}
	return nil
}
