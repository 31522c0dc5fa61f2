// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"context"
	"errors"
	"time"
)

// LockAny takes one of several locks: of ports, devices or accounts that are as good as each other. It first tries
// each, from one on that chance chooses, and then queues for all; the first grant counts, and Held.Name says which.
// Otherwise as Lock.
func (c *Client) LockAny(ctx context.Context, names []string, options ...LockOption) (*Held, error) {
	return c.acquire(ctx, aLock, append([]string{}, names...), 0, options, (*conn).acquireAny)
}

func (c *conn) acquireAny(ctx context.Context, end time.Time) error {
	begin := int(clock() / 1000 % int64(len(c.what.names)))
	names := append(append([]string{}, c.what.names[begin:]...), c.what.names[:begin]...)
	var unknown error
	for i, name := range names {
		won, err := c.tryOne(ctx, name, i == 0)
		var e *Error
		switch {
		case errors.As(err, &e) && e.Code == "UNAVAILABLE":
			unknown = err
		case won || err != nil:
			return err
		}
	}
	left := time.Until(end)
	switch {
	case c.what.waits || left > 0:
		return c.queueForAll(ctx, names, left)
	case unknown != nil:
		return unknown
	}
	return c.what.taken()
}

// of is the request for one of the names.
func (r *request) of(name string) *request {
	one := *r
	one.names = []string{name}
	return &one
}

func (c *conn) grantedOne(name string, value any, sent int64) {
	if token, isNumber := value.(int64); isNumber {
		c.granted([]string{name}, map[string]int64{name: token}, leaseEnd(sent, c.what.lease))
	}
}

func (c *conn) tryOne(ctx context.Context, name string, isFirst bool) (bool, error) {
	one := c.what.of(name)
	one.waits, one.wait = false, 0
	answered, answer := place()
	sent := clock()
	take := func(value any) {
		c.grantedOne(name, value, sent)
		answered(value)
	}
	var err error
	if isFirst {
		err = c.begin(ctx, one.acquire(0), take)
	} else {
		err = c.send([]words{one.acquire(0)}, []func(any){take})
	}
	if err != nil {
		return false, err
	}
	value, err := c.wait(ctx, answer, c.client.patience)
	if err != nil || value == nil {
		return false, err
	}
	return true, c.won(ctx, sent)
}

// won: what is held is all that was asked for.
func (c *conn) won(ctx context.Context, sent int64) error {
	c.mu.Lock()
	c.event = nil
	if len(c.names) == 1 {
		c.what = c.what.of(c.names[0])
	}
	c.mu.Unlock()
	return c.settle(ctx, sent)
}

// queue is what came of the requests that are queued for. The mutex of the connection guards it.
type queue struct {
	waiting map[string]bool
	surplus []string
	wrong   error
	over    func(any)
}

func (q *queue) tell() {
	if q.over != nil {
		q.over("over")
		q.over = nil
	}
}

func (c *conn) queueForAll(ctx context.Context, names []string, left time.Duration) error {
	over, isOver := place()
	q := &queue{waiting: map[string]bool{}, over: over}
	requests := make([]words, len(names))
	for i, name := range names {
		q.waiting[name] = true
		requests[i] = c.what.of(name).withOptions(words{"ENQUEUE", name}, left)
	}
	sent := clock()
	c.mu.Lock()
	c.event = func(event push) { c.queued(q, event, sent) }
	c.mu.Unlock()
	if _, err := c.ask(ctx, requests...); err != nil {
		return err
	}
	if _, err := c.wait(ctx, isOver, c.limit(left)); err != nil {
		return err
	}
	c.mu.Lock()
	isHeld, why := c.held, c.why
	c.mu.Unlock()
	switch {
	case !isHeld && why != nil:
		return why
	case !isHeld && q.wrong != nil:
		return q.wrong
	case !isHeld:
		return c.what.taken()
	}
	if err := c.withdraw(ctx, q); err != nil {
		return err
	}
	return c.won(ctx, sent)
}

// queued heeds the event of one request, or the end of the connection.
func (c *conn) queued(q *queue, event push, sent int64) {
	if len(event) < 2 {
		q.tell()
		return
	}
	name, _ := event[1].(string)
	if !q.waiting[name] {
		return
	}
	switch event[0] {
	case "granted":
		if c.held {
			q.surplus = append(q.surplus, name)
		} else if len(event) > 2 {
			c.grantedOne(name, event[2], sent)
			q.tell()
		}
	case "failed":
		if len(event) > 3 && q.wrong == nil {
			code, _ := event[2].(string)
			sentence, _ := event[3].(string)
			q.wrong = refusal(errorReply(code + " " + sentence))
		}
	case "timeout":
	default:
		return
	}
	if delete(q.waiting, name); len(q.waiting) == 0 {
		q.tell()
	}
}

// withdraw ends all other requests, and releases what was granted beside the first.
func (c *conn) withdraw(ctx context.Context, q *queue) error {
	var requests []words
	c.mu.Lock()
	for name := range q.waiting {
		requests = append(requests, words{"CANCEL", name})
	}
	c.mu.Unlock()
	if _, err := c.ask(ctx, requests...); err != nil {
		return err
	}
	requests = nil
	c.mu.Lock()
	for _, name := range q.surplus {
		requests = append(requests, words{"UNLOCK", name})
	}
	c.mu.Unlock()
	if _, err := c.ask(ctx, requests...); err != nil && !isAny(err, ErrLost, ErrNotHeld) {
		return err
	}
	return nil
}
