// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"context"
	"strings"
	"sync"
	"time"
)

// Held is what was granted, and the connection that holds it. It ends with Unlock or Close, with Client.Close, or with
// the process. A Held that is dropped without any of these keeps the lock. Goroutines may share it.
type Held struct {
	conn      *conn
	releasing sync.Mutex
}

func newHeld(ctx context.Context, made *conn) *Held {
	made.mu.Lock()
	made.context, made.cancel = context.WithCancel(ctx)
	if !made.held || made.lostReason != "" {
		made.stop()
	}
	made.mu.Unlock()
	made.look()
	return &Held{conn: made}
}

// Name is the name; of several locks, all with commas between them.
func (h *Held) Name() string { return strings.Join(h.conn.what.names, ", ") }

// Token is the fencing token: larger than that of every earlier grant that conflicts. Pass it to what the lock
// protects, so that it can refuse smaller ones. Permits have none: 0. Of several locks, that of the first; see Tokens.
func (h *Held) Token() int64 { return h.Tokens()[h.conn.what.names[0]] }

// Tokens are the fencing tokens by the names of the locks.
func (h *Held) Tokens() map[string]int64 {
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	tokens := make(map[string]int64, len(h.conn.tokens))
	for name, token := range h.conn.tokens {
		tokens[name] = token
	}
	return tokens
}

// Lost is closed when the grant is void: stop the work. That happens also if the broker hangs for longer than it has
// proven the grant. It is closed by a goroutine, which may be late; ValidFor is not. It is not closed by Unlock.
func (h *Held) Lost() <-chan struct{} { return h.conn.lost }

// Context ends with the lock, by a loss or by Unlock, and with the context that the lock was asked for with. Pass it
// to the work. It has its values.
func (h *Held) Context() context.Context { return h.conn.context }

// Revoked is closed when somebody asks for the lock back, or the broker is stopping: unlock it when you can. Nothing
// is taken away.
func (h *Held) Revoked() <-chan struct{} { return h.conn.revoked }

// RevokeReason is what the one said who asked for it back; "" while nobody did.
func (h *Held) RevokeReason() string {
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	return h.conn.revokeReason
}

// ValidFor returns for how long from now the grant is proven to be safe, or the rest of its lease if that is less. 0:
// it is void, was released, or is not proven any longer; of several locks, one of them is. The longest Duration there
// is: it cannot run out (standalone, no lease).
//
// It reads what has been received, and the page of memory in which the broker keeps its proof. So it does not wait,
// and is right also while the broker hangs, and after the process was stopped or the machine was suspended. Only where
// there is no such page, or the broker was killed and all that it had proven has run out since, it asks the broker,
// and waits at most for the patience.
func (h *Held) ValidFor() time.Duration {
	c := h.conn
	c.catchUp()
	c.mu.Lock()
	inBackground := c.page != nil && c.remaining() > 0
	c.mu.Unlock()
	if inBackground {
		c.askUnlessAsked()
	} else {
		_ = c.prove(context.Background())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.remaining())
}

// Check returns nil if ValidFor is above 0; ErrLost, or ErrNotHeld if it was released.
func (h *Held) Check() error {
	if h.ValidFor() > 0 {
		return nil
	}
	return h.conn.fault()
}

// fault is why it is not proven.
func (c *conn) fault() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.lostReason != "":
		return lostFor(c.what, c.lostReason)
	case !c.held:
		return failed(ErrNotHeld, "it was released already: %s", c.what)
	}
	return lostFor(c.what, "session")
}

// Renew restarts the lease: it ends that long from now. Errors: ErrLost, ErrNotHeld.
func (h *Held) Renew(lease time.Duration) error {
	if err := leaseFault(lease); err != nil {
		return err
	}
	err := h.conn.renew(context.Background(), atMost(lease))
	h.conn.look()
	return err
}

func (c *conn) renew(ctx context.Context, lease time.Duration) error {
	sent := clock()
	if err := c.askHeld(ctx, c.what.each("RENEW", milliseconds(lease))); err != nil {
		return err
	}
	c.mu.Lock()
	c.leaseUntil = leaseEnd(sent, lease)
	c.mu.Unlock()
	return nil
}

// Downgrade shares the lock from now on. It is not free in between, and the token stays. Errors: ErrLost, ErrNotHeld.
func (h *Held) Downgrade() error {
	return h.conn.askHeld(context.Background(), h.conn.what.each("DOWNGRADE"))
}

// askHeld makes requests about what is held. What is not held any longer is lost for good.
func (c *conn) askHeld(ctx context.Context, requests []words) error {
	c.catchUp()
	if err := c.unlessHeld(); err != nil {
		return err
	}
	_, err := c.ask(ctx, requests...)
	if ctx.Err() != nil {
		return givenUp(ctx, c.what)
	}
	return c.answeredHeld(err)
}

// answeredHeld heeds the answer to a request about what is held.
func (c *conn) answeredHeld(err error) error {
	switch {
	case isSilent(err):
		c.loseAndClose("unanswered")
	case isAny(err, ErrNotAvailable, ErrLost, ErrNotHeld, ErrProtocol):
		c.mu.Lock()
		c.lose("session")
		c.mu.Unlock()
	case err != nil:
		return err
	}
	return c.unlessHeld()
}

func (c *conn) unlessHeld() error {
	c.mu.Lock()
	isHeld := c.held && c.lostReason == ""
	c.mu.Unlock()
	if isHeld {
		return nil
	}
	return c.fault()
}

// Unlock returns when the lock has been passed on. ErrLost: it was not held all the time, and what was done under it
// is in doubt. ErrNotHeld: it was released already. Nothing is held any longer, whatever it returns.
func (h *Held) Unlock() error {
	h.releasing.Lock()
	defer h.releasing.Unlock()
	c := h.conn
	c.catchUp()
	defer c.close()
	if err := c.unlessHeld(); err != nil {
		return err
	}
	c.mu.Lock()
	isProven := c.remaining() > 0
	c.mu.Unlock()
	_, err := c.ask(context.Background(), c.what.release())
	if isSilent(err) && isProven {
		// The end of the connection releases it, too, and it was held until the request was sent.
		return nil
	}
	return c.answeredHeld(err)
}

// Close releases it without waiting for the broker. It never fails, and may be called again, or after Unlock: so it
// can be deferred.
func (h *Held) Close() error {
	h.conn.close()
	return nil
}
