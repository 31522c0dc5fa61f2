// SPDX-License-Identifier: Apache-2.0 OR MIT

// Package lockbroker has locks among the processes of a host and among hosts, through the lockbrokerd of this host:
//
//	client, err := lockbroker.Open()
//	...
//	held, err := client.Lock(ctx, "orders/42", lockbroker.Wait(5*time.Second))
//	if err != nil {
//		return err
//	}
//	defer held.Close()                              // whatever happens
//	settle(held.Context(), held.Token())            // the resource refuses smaller tokens than it has seen
//	if err := held.Check(); err != nil {            // before a step that cannot be undone
//		return err
//	}
//	return held.Unlock()                            // ErrLost: it was not held all the time
//
// Each call that locks connects to the broker, and what it returns is held by that connection: goroutines exclude each
// other as processes and hosts do. A Client and a Held may be shared by goroutines.
package lockbroker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	socketDefault   = "/run/lockbroker/lockbroker.sock"
	patienceDefault = 10 * time.Second
	pauseFirst      = 10 * time.Millisecond
	pauseMax        = 250 * time.Millisecond
	// If more than this part of a lease may have passed when the grant is known, the lease is restarted.
	leaseSlackPart = 16
)

// Client finds the broker, and knows the connections that were made to it. It has none itself.
type Client struct {
	path     string
	patience time.Duration

	mu      sync.Mutex
	conns   map[*conn]struct{}
	closed  chan struct{}
	reached bool  // a broker has answered
	page    *page // the latest that one has told of
}

// OpenOption is an option of Open.
type OpenOption func(*Client)

// Socket names the broker's socket. "user" stands for that of the user's own broker,
// $XDG_RUNTIME_DIR/lockbroker/lockbroker.sock; "@NAME" for that of lockbrokerd@NAME.service. Without:
// $LOCKBROKER_SOCKET, or /run/lockbroker/lockbroker.sock if that is unset or empty.
func Socket(path string) OpenOption { return func(c *Client) { c.path = path } }

// Patience is the time for an answer that should come at once, and for a broker that is away. Without: 10 seconds.
func Patience(limit time.Duration) OpenOption { return func(c *Client) { c.patience = limit } }

// Open returns a client if a broker serves the socket. One that is just being started again is waited for, at most for
// the patience, or as many milliseconds as $LOCKBROKER_OPEN_MS says. Otherwise it returns ErrNotAvailable or
// ErrDenied.
func Open(options ...OpenOption) (*Client, error) {
	c := &Client{path: os.Getenv("LOCKBROKER_SOCKET"), patience: patienceDefault, conns: map[*conn]struct{}{},
		closed: make(chan struct{})}
	for _, option := range options {
		option(c)
	}
	if c.patience <= 0 {
		return nil, failed(ErrRefused, "the patience is %v: it has to be more than 0", c.patience)
	}
	path, err := socketPath(c.path)
	if err != nil {
		return nil, err
	}
	c.path = path
	if _, err := c.ask(context.Background(), "PING"); err != nil {
		return nil, err
	}
	return c, nil
}

// socketPath returns where the broker listens that is called so.
func socketPath(name string) (string, error) {
	switch {
	case name == "":
		return socketDefault, nil
	case name == "user":
		folder := os.Getenv("XDG_RUNTIME_DIR")
		if folder == "" {
			folder = fmt.Sprintf("/run/user/%d", os.Geteuid())
		}
		if !isOwn(folder) {
			return "", failed(ErrNotAvailable, "the broker of this user cannot be found: XDG_RUNTIME_DIR, %s, is not a "+
				"directory that only this user (%d) may write to", folder, os.Geteuid())
		}
		return filepath.Join(folder, "lockbroker", "lockbroker.sock"), nil
	case len(name) > 1 && name[0] == '@' && !strings.Contains(name, "/"):
		return "/run/lockbroker" + name + "/lockbroker.sock", nil
	}
	return name, nil
}

// isOwn reports that nobody else can put a socket there.
func isOwn(folder string) bool {
	found, err := os.Stat(folder)
	if err != nil || !filepath.IsAbs(folder) || !found.IsDir() || found.Mode().Perm()&0o022 != 0 {
		return false
	}
	stat, isStat := found.Sys().(*syscall.Stat_t)
	return isStat && int(stat.Uid) == os.Geteuid()
}

// Close ends all connections of this client, which releases all that was locked through it. Calls that wait return
// ErrClosed.
func (c *Client) Close() error {
	c.mu.Lock()
	if !c.isClosed() {
		close(c.closed)
	}
	conns := make([]*conn, 0, len(c.conns))
	for conn := range c.conns {
		conns = append(conns, conn)
	}
	c.mu.Unlock()
	for _, conn := range conns {
		conn.close()
	}
	return nil
}

// Lock waits for its turn and takes the lock. If the context ends first, the request is withdrawn, a grant that is on
// its way is released, and the error is the context's. While the broker is away, as when it restarts, it is waited
// for, at most for the patience; the request is then made again. Errors: ErrTaken, ErrNotAvailable, ErrDeadlock,
// ErrDenied, ErrBadName, ErrLimit, ErrMismatch, ErrRefused, ErrProtocol, ErrClosed, and ErrLost for a lock that was
// lost as soon as it was granted.
func (c *Client) Lock(ctx context.Context, name string, options ...LockOption) (*Held, error) {
	return c.acquire(ctx, aLock, []string{name}, 0, options, (*conn).acquire)
}

// TryLock is Lock with Wait(0): if the lock is not free now, the error is ErrTaken.
func (c *Client) TryLock(ctx context.Context, name string, options ...LockOption) (*Held, error) {
	return c.Lock(ctx, name, append(append([]LockOption{}, options...), Wait(0))...)
}

// LockAll takes up to 64 locks, all or none. Two that name the same locks, in whatever order, never wait for each
// other. The loss of one is the loss of all; Held.Tokens has the token of each.
func (c *Client) LockAll(ctx context.Context, names []string, options ...LockOption) (*Held, error) {
	return c.acquire(ctx, someLocks, append([]string{}, names...), 0, options, (*conn).acquire)
}

// Acquire takes a permit of a semaphore, or Count of them, on whose limit all its users agree (else ErrMismatch).
// Permits have no token.
func (c *Client) Acquire(ctx context.Context, name string, limit int, options ...LockOption) (*Held, error) {
	return c.acquire(ctx, permits, []string{name}, limit, options, (*conn).acquire)
}

// Campaign waits for the leadership of an election, and takes it. Everybody may read the leader's data, a text of
// 1..512 bytes, by Leader and Observe. Unlock resigns.
func (c *Client) Campaign(ctx context.Context, name, data string, options ...LockOption) (*Held, error) {
	return c.acquire(ctx, leadership, []string{name}, 0, append([]LockOption{Data(data)}, options...), (*conn).acquire)
}

// Do sends a command of PROTOCOL.md that is answered at once, such as Do(ctx, "HOLDERS", "orders"), on a connection of
// its own, and returns the answer: string, int64, nil, []any, or map[string]any. An error reply is an error. It is sent
// once: after ErrNotAvailable it may have been carried out.
func (c *Client) Do(ctx context.Context, command ...string) (any, error) {
	made, err := c.connect(ctx, questionOf(command))
	if err != nil {
		return nil, err
	}
	return made.askOnly(ctx, command)
}

// ask is Do for a command that may be carried out twice: if the broker is away, it is waited for.
func (c *Client) ask(ctx context.Context, command ...string) (answer any, err error) {
	what := questionOf(command)
	err = c.try(ctx, what, func(made *conn) (err error) {
		answer, err = made.askOnly(ctx, command)
		return err
	})
	return answer, err
}

func questionOf(command words) *request {
	return &request{kind: question, names: []string{strings.Join(command, " ")}}
}

func (c *conn) askOnly(ctx context.Context, command words) (any, error) {
	defer c.close()
	take, answer := place()
	if err := c.begin(ctx, command, take); err != nil {
		return nil, err
	}
	return c.wait(ctx, answer, c.client.patience)
}

// acquire is what all calls that lock have in common: on one connection after the other, until one has not ended
// meanwhile.
func (c *Client) acquire(ctx context.Context, kind kind, names []string, limit int, options []LockOption,
	on func(*conn, context.Context, time.Time) error) (*Held, error) {
	what, err := newRequest(kind, names, options)
	if err != nil {
		return nil, err
	}
	what.limit = limit
	end := time.Now().Add(what.wait)
	var held *Held
	err = c.try(ctx, what, func(made *conn) error {
		err := on(made, ctx, end)
		if c.isClosed() { // also if it was granted: what it waited for was held through the same client
			err = ErrClosed
		}
		if err != nil {
			made.close()
			return err
		}
		held = newHeld(ctx, made)
		return nil
	})
	return held, err
}

// acquire, on one connection.
func (c *conn) acquire(ctx context.Context, end time.Time) error {
	answered, answer := place()
	sent := clock()
	take := func(value any) {
		if tokens, err := c.what.tokens(value); err == nil {
			c.granted(c.what.names, tokens, leaseEnd(sent, c.what.lease))
		} else if _, isList := value.([]any); isList {
			value = err
		}
		answered(value)
	}
	left := time.Until(end)
	if err := c.begin(ctx, c.what.acquire(left), take); err != nil {
		return err
	}
	value, err := c.wait(ctx, answer, c.limit(left))
	if err != nil {
		return err
	}
	if value == nil {
		return c.what.taken()
	}
	return c.settle(ctx, sent)
}

// limit is for how long an answer is waited for that may take what is left of the time; below 0: for ever.
func (c *conn) limit(left time.Duration) time.Duration {
	if c.what.waits {
		return -1
	}
	if left < 0 {
		left = 0
	}
	return left + c.client.patience
}

// settle is what follows a grant: the lease counts from there, and the proof is known.
func (c *conn) settle(ctx context.Context, sent int64) error {
	lease := int64(c.what.lease)
	if lease > 0 && clock() >= sent+lease/leaseSlackPart {
		if err := c.renew(ctx, c.what.lease); err != nil {
			return err
		}
	}
	if err := c.prove(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.held && c.lostReason == "":
		return failed(ErrProtocol, "the broker's answer to a request for %s is no grant", c.what)
	case c.lostReason != "":
		return lostFor(c.what, c.lostReason)
	}
	return nil
}

func leaseEnd(sent int64, lease time.Duration) int64 {
	if lease == 0 {
		return forever
	}
	return sent + int64(lease)
}

func (r *request) taken() error {
	if r.wait == 0 {
		return failed(ErrTaken, "%s is held by somebody else", r)
	}
	return failed(ErrTaken, "%s is held by somebody else, and was held for %v", r, r.wait)
}

// try does something on a connection, and does it again on another one if that one ended meanwhile: the broker may be
// away for as long as the patience allows. One that was never reached is tried again only if its socket is there.
func (c *Client) try(ctx context.Context, what *request, do func(*conn) error) error {
	var last, giveUp time.Time
	pause := pauseFirst
	for {
		if ctx.Err() != nil {
			return givenUp(ctx, what)
		}
		made, err := c.connect(ctx, what)
		if err == nil {
			err = do(made)
		}
		var e *Error
		if !errors.As(err, &e) || e.again == never {
			return err
		}
		now := time.Now()
		if last.IsZero() || now.Sub(last) > c.patience {
			giveUp, pause = now.Add(c.away()), pauseFirst
		}
		last = now
		if e.again == ifItWas && !c.wasReached() || !now.Add(pause).Before(giveUp) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		case <-c.closed:
			return ErrClosed
		}
		if pause *= 2; pause > pauseMax {
			pause = pauseMax
		}
	}
}

// away is for how long a broker may be away.
func (c *Client) away() time.Duration {
	ms, err := strconv.ParseUint(os.Getenv("LOCKBROKER_OPEN_MS"), 10, 31)
	if limit := time.Duration(ms) * time.Millisecond; err == nil && !c.wasReached() && limit < c.patience {
		return limit
	}
	return c.patience
}

// dial returns a connected socket, which no program inherits that this one starts. The kernel refuses at once if the
// queue of the listener is full: then it tries again.
func (c *Client) dial(ctx context.Context) (*net.UnixConn, error) {
	var dialer net.Dialer
	end := time.Now().Add(c.patience)
	for {
		made, err := dialer.DialContext(ctx, "unix", c.path)
		if err == nil {
			return made.(*net.UnixConn), nil
		}
		if ctx.Err() == nil && errors.Is(err, syscall.EAGAIN) && time.Now().Before(end) {
			select {
			case <-time.After(pauseFirst):
			case <-ctx.Done():
			}
			continue
		}
		return nil, c.undialled(ctx, err)
	}
}

func (c *Client) undialled(ctx context.Context, err error) *Error {
	e := failed(ErrNotAvailable, "no lockbrokerd is serving %s: %v; start it, or set LOCKBROKER_SOCKET to the socket that "+
		"it serves", c.path, errors.Unwrap(err))
	e.cause = err
	switch {
	case ctx.Err() != nil:
		e.kind, e.text = ctx.Err(), fmt.Sprintf("the request was given up: %v", ctx.Err())
	case errors.Is(err, syscall.ENOENT):
		e.again = ifItWas
	case errors.Is(err, syscall.ECONNREFUSED):
		e.again = whenItIsBack
	case errors.Is(err, syscall.EAGAIN):
		e.text, e.silent = fmt.Sprintf("the lockbrokerd at %s does not accept connections", c.path), true
	case errors.Is(err, fs.ErrPermission):
		e.kind, e.text = ErrDenied, c.mayNot()
	}
	return e
}

// mayNot says what to do for the permission to connect.
func (c *Client) mayNot() string {
	what := fmt.Sprintf("this user may not use lockbrokerd at %s: ", c.path)
	found, err := os.Stat(c.path)
	if err != nil {
		return what + "a directory of the path cannot be searched; see its mode, or daemon.socket in lockbroker.conf"
	}
	stat, isStat := found.Sys().(*syscall.Stat_t)
	if !isStat || found.Mode().Perm()&0o020 == 0 || stat.Gid == 0 {
		return what + fmt.Sprintf("the mode of the socket is %04o; set daemon.socket_mode or daemon.socket_group in "+
			"lockbroker.conf to admit more users", found.Mode().Perm())
	}
	group := strconv.Itoa(int(stat.Gid))
	if known, err := user.LookupGroupId(group); err == nil {
		group = known.Name
	}
	return what + fmt.Sprintf("only the group %[1]s may; become a member (usermod -aG %[1]s USER, then log in again)", group)
}

func (c *Client) silence() *Error {
	e := failed(ErrNotAvailable, "the lockbrokerd at %s did not answer in time", c.path)
	e.silent = true
	return e
}

func isSilent(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.silent
}

// ending is the error of a connection that ends now.
func (c *Client) ending() *Error {
	if c.isClosed() {
		return failed(ErrClosed, "the client of %s was closed", c.path)
	}
	e := failed(ErrNotAvailable, "the connection to lockbrokerd at %s ended", c.path)
	e.again = whenItIsBack
	return e
}

// wordless: a broker that refuses says why, unless too many others have not read why they were refused.
func (c *Client) wordless() *Error {
	e := failed(ErrNotAvailable, "lockbrokerd has closed the connection without a word: it starts again, or this user has "+
		"too many connections, of which many have not read that they were refused (\"lockbroker accounts\" shows who has "+
		"them); close some, and try again")
	e.again = whenItIsBack
	return e
}

func (c *Client) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

func (c *Client) wasReached() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reached
}

func (c *Client) remember(made *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return false
	}
	c.conns[made] = struct{}{}
	return true
}

func (c *Client) forget(conn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

// greeted returns the page that a broker tells of.
func (c *Client) greeted(path, id string) *page {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reached = true
	if id == "" {
		return nil
	}
	if c.page == nil || c.page.id != id {
		found := findPage(path, id)
		if found == nil {
			return nil
		}
		c.page = found
	}
	return c.page
}
