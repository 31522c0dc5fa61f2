// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"context"
	"time"
)

const (
	// How soon a proof is looked at again: when half of it has passed, or all of what is shorter than that. At least
	// once a minute, because timers stand still while the machine is suspended, and the proof does not.
	lookHalfFrom = int64(200 * time.Millisecond)
	lookMin      = int64(10 * time.Millisecond)
	lookMax      = int64(time.Minute)
	// Without a proof, a broker that does not answer for so long proves nothing.
	silentAfter = int64(time.Second)
	// How often a broker that is asked for its page may have one more that has moved.
	pagesMax = 3
)

// grant is what one connection holds, and for how long that is proven; the mutex of its connection guards it. The
// connection holds nothing else, so no request has to name a token. A loss is final: whatever is read later, it stays
// lost.
type grant struct {
	held         bool
	names        []string
	tokens       map[string]int64
	lostReason   string
	revokeReason string

	page       *page
	epoch      uint64
	hasEpoch   bool // the one that the page had at the grant; else it is the one that is read next
	leaseUntil int64
	askedUntil int64 // what the broker said, where there is no page
	askedAt    int64 // when a question was sent that is not answered yet, or 0

	lost, revoked chan struct{}
	timer         *time.Timer
	context       context.Context
	cancel        context.CancelFunc
}

func (g *grant) init() {
	g.leaseUntil = forever
	g.lost, g.revoked = make(chan struct{}), make(chan struct{})
}

func (g *grant) granted(names []string, tokens map[string]int64, leaseUntil int64) {
	if g.page != nil {
		seen := g.page.read()
		g.epoch, g.hasEpoch = seen.epoch, !seen.moved()
	}
	g.held, g.names, g.tokens, g.leaseUntil = true, names, tokens, leaseUntil
}

func (g *grant) released() {
	g.held = false
	g.stop()
}

func (g *grant) stop() {
	if g.timer != nil {
		g.timer.Stop()
	}
	if g.cancel != nil {
		g.cancel()
	}
}

func (g *grant) lose(reason string) {
	if g.held && g.lostReason == "" {
		g.lostReason = reason
		close(g.lost)
		g.stop()
	}
}

// told is what the broker says of one of the names.
func (g *grant) told(lost bool, name, reason string) {
	for _, own := range g.names {
		switch {
		case own != name || !g.held:
		case lost:
			g.lose(reason)
		case g.revokeReason == "":
			g.revokeReason = reason
			close(g.revoked)
		}
	}
}

// proof says until when the session is proven, and whether the broker can know better. 0: the session was lost.
func (g *grant) proof() (until int64, mayAsk bool) {
	if g.page == nil {
		return g.askedUntil, true
	}
	seen := g.page.read()
	if !g.hasEpoch && !seen.moved() {
		g.epoch, g.hasEpoch = seen.epoch, true
	}
	if !seen.proven() || g.hasEpoch && g.epoch != seen.epoch {
		return 0, false
	}
	return seen.safeUntil, seen.moved() || !g.hasEpoch
}

// remaining is in nanoseconds. 0: it is void, or not proven. What can only be void is lost from now on.
func (g *grant) remaining() int64 {
	if !g.held || g.lostReason != "" {
		return 0
	}
	until, mayAsk := g.proof()
	now := clock() // after the page: a process that stands still in between must not believe what was then
	if g.leaseUntil <= now {
		g.lose("lease")
	} else if until <= now && !mayAsk {
		g.lose("session")
	}
	if g.leaseUntil < until {
		until = g.leaseUntil
	}
	switch {
	case g.lostReason != "" || until <= now:
		return 0
	case until == forever:
		return forever
	}
	return until - now
}

// mustAsk: the page cannot tell, or will not for long: there is none, or it has moved.
func (g *grant) mustAsk() bool {
	if !g.held || g.lostReason != "" {
		return false
	}
	_, mayAsk := g.proof()
	return mayAsk
}

func (c *conn) greeted(hello any) {
	fields, isMap := hello.(map[string]any)
	if !isMap {
		return
	}
	path, _ := fields["session_page"].(string)
	id, _ := fields["session_page_id"].(string)
	c.page = c.client.greeted(path, id)
}

// question is what has to be asked: for a page that has moved, where the new one is; without a page, for how long the
// grant is proven. It is called with mu, and what it returns is sent without.
func (c *conn) question() ([]words, []func(any)) {
	sent := clock()
	c.askedAt = sent
	if c.page != nil {
		return []words{{"HELLO"}}, []func(any){func(value any) {
			c.askedAt = 0
			if _, isMap := value.(map[string]any); isMap {
				c.greeted(value)
			}
		}}
	}
	least, proofs, answers := int64(forever), 0, 0
	take := func(value any) {
		if ms, isNumber := value.(int64); isNumber {
			proofs++
			if ms < least {
				least = ms
			}
		}
		if answers++; answers == len(c.what.names) {
			c.askedAt = 0
			if proofs == answers || least == 0 {
				c.proven(sent, least)
			}
		}
	}
	takes := make([]func(any), len(c.what.names))
	for i := range takes {
		takes[i] = take
	}
	return c.what.each("VALID"), takes
}

// proven: the broker said, for how many milliseconds from when it was asked.
func (c *conn) proven(sent, ms int64) {
	switch {
	case ms <= 0:
		c.lose("session")
	case ms >= (forever-sent)/int64(time.Millisecond):
		c.askedUntil = forever
	default:
		c.askedUntil = sent + ms*int64(time.Millisecond)
	}
}

// askUnlessAsked asks in the background, where the page cannot tell.
func (c *conn) askUnlessAsked() {
	c.mu.Lock()
	if c.askedAt != 0 || c.ended || !c.mustAsk() {
		c.mu.Unlock()
		return
	}
	requests, takes := c.question()
	c.mu.Unlock()
	if c.send(requests, takes) != nil {
		c.loseAndClose("unanswered") // half of a request was sent
	}
}

// prove asks for what the page does not say, and waits for the answer. A broker that does not answer proves nothing:
// that is a loss. It returns an error only if the context has ended.
func (c *conn) prove(ctx context.Context) error {
	for try := 0; try < pagesMax; try++ {
		c.mu.Lock()
		if c.ended || !c.mustAsk() {
			c.mu.Unlock()
			return nil
		}
		hadPage := c.page != nil
		requests, takes := c.question()
		c.mu.Unlock()
		last, answer := place()
		then := takes[len(takes)-1]
		takes[len(takes)-1] = func(value any) { then(value); last(value) }
		err := c.send(requests, takes)
		if err == nil {
			_, err = c.wait(ctx, answer, c.client.patience)
		}
		if isSilent(err) {
			c.loseAndClose("unanswered")
		} else if ctx.Err() != nil {
			return givenUp(ctx, c.what)
		}
		if !hadPage {
			return nil
		}
	}
	return nil
}

func (c *conn) loseAndClose(reason string) {
	c.mu.Lock()
	c.lose(reason)
	c.mu.Unlock()
	c.close()
}

// look sees what ran out, and looks again before that can happen the next time. A broker that was asked and is silent
// until the proof has run out can prove nothing: that is a loss.
func (c *conn) look() {
	c.catchUp()
	c.askUnlessAsked()
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.remaining()
	if left == 0 && c.askedAt != 0 && clock()-c.askedAt >= silentAfter {
		c.lose("unanswered")
	}
	if !c.held || c.lostReason != "" {
		return
	}
	if left > lookHalfFrom {
		left /= 2
	}
	if left < lookMin {
		left = lookMin
	} else if left > lookMax {
		left = lookMax
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.timer = time.AfterFunc(time.Duration(left), c.look)
}
