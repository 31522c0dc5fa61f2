// SPDX-License-Identifier: Apache-2.0

// Carries out what the test says line by line on the standard input, through the Go module, and prints what came of
// it. A line is a key, a verb and its words; each is carried out in a goroutine of its own, and its answer begins with
// the key, which names a grant from then on. Built and driven by test_go_library.py.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	lockbroker "lockbroker.invalid/go"
)

var kinds = []struct {
	err  error
	name string
}{
	{lockbroker.ErrTaken, "taken"}, {lockbroker.ErrLost, "lost"}, {lockbroker.ErrNotAvailable, "not available"},
	{lockbroker.ErrNotHeld, "not held"}, {lockbroker.ErrDeadlock, "deadlock"}, {lockbroker.ErrDenied, "denied"},
	{lockbroker.ErrBadName, "bad name"}, {lockbroker.ErrLimit, "limit"}, {lockbroker.ErrMismatch, "mismatch"},
	{lockbroker.ErrRefused, "refused"}, {lockbroker.ErrProtocol, "protocol"}, {lockbroker.ErrClosed, "closed"},
	{context.Canceled, "canceled"}, {context.DeadlineExceeded, "deadline"},
}

// said is the answer for an error: its kinds, of which it has to have one, and its text.
func said(err error) string {
	if err == nil {
		return "ok"
	}
	var found []string
	for _, kind := range kinds {
		if errors.Is(err, kind.err) {
			found = append(found, kind.name)
		}
	}
	reason := ""
	var e *lockbroker.Error
	if errors.As(err, &e) && e.Reason != "" {
		reason = " " + e.Reason
	}
	return fmt.Sprintf("%s%s: %v", strings.Join(found, "+"), reason, err)
}

// pending is a call, and what it has got.
type pending struct {
	cancel context.CancelFunc
	held   *lockbroker.Held
}

var (
	client *lockbroker.Client
	mu     sync.Mutex // of calls, and of the output
	calls  = map[string]*pending{}
	group  = lockbroker.NewGroup()
)

func say(format string, values ...any) {
	mu.Lock()
	defer mu.Unlock()
	fmt.Printf(format+"\n", values...)
}

func ms(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return time.Duration(n) * time.Millisecond
}

func number(text string) int { return int(ms(text) / time.Millisecond) }

func options(all []string) (made []lockbroker.LockOption) {
	for _, one := range all {
		key, value, _ := strings.Cut(one, "=")
		switch key {
		case "shared":
			made = append(made, lockbroker.Shared())
		case "wait":
			made = append(made, lockbroker.Wait(ms(value)))
		case "lease":
			made = append(made, lockbroker.Lease(ms(value)))
		case "data":
			made = append(made, lockbroker.Data(value))
		case "count":
			made = append(made, lockbroker.Count(number(value)))
		case "group":
			made = append(made, group)
		default:
			panic(one)
		}
	}
	return made
}

// acquire is a call that locks: its words are the verb, its arguments and its options.
func acquire(ctx context.Context, words []string) (*lockbroker.Held, error) {
	name, more := words[1], words[2:]
	switch words[0] {
	case "lock":
		return client.Lock(ctx, name, options(more)...)
	case "try":
		return client.TryLock(ctx, name, options(more)...)
	case "all":
		return client.LockAll(ctx, strings.Split(name, ","), options(more)...)
	case "any":
		return client.LockAny(ctx, strings.Split(name, ","), options(more)...)
	case "semaphore":
		return client.Acquire(ctx, name, number(more[0]), options(more[1:])...)
	case "campaign":
		return client.Campaign(ctx, name, more[0], options(more[1:])...)
	}
	panic(words[0])
}

func begin(key string) (context.Context, *pending) {
	ctx, cancel := context.WithCancel(context.Background())
	call := &pending{cancel: cancel}
	mu.Lock()
	calls[key] = call
	mu.Unlock()
	return ctx, call
}

func of(key string) *pending {
	mu.Lock()
	defer mu.Unlock()
	return calls[key]
}

func ask(key string, words []string) string {
	held := of(key).held
	switch words[0] {
	case "unlock":
		return said(held.Unlock())
	case "close":
		return said(held.Close())
	case "check":
		return said(held.Check())
	case "valid":
		return fmt.Sprint(held.ValidFor().Milliseconds())
	case "token":
		return fmt.Sprint(held.Token())
	case "tokens":
		return fmt.Sprint(held.Tokens())
	case "name":
		return held.Name()
	case "lost":
		<-held.Lost()
		return said(held.Check())
	case "context":
		<-held.Context().Done()
		return said(held.Context().Err())
	case "is":
		return fmt.Sprintf("lost=%v ended=%v revoked=%v", isClosed(held.Lost()), held.Context().Err() != nil, isClosed(held.Revoked()))
	case "revoked":
		<-held.Revoked()
		return held.RevokeReason()
	case "renew":
		return said(held.Renew(ms(words[1])))
	case "downgrade":
		return said(held.Downgrade())
	}
	panic(words[0])
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

func shown(leader *lockbroker.Leader) string {
	if leader == nil {
		return "nobody"
	}
	return fmt.Sprintf("%s on %s with %d", leader.Data, leader.Host, leader.Token)
}

// carryOut returns the answer to a line.
func carryOut(key string, words []string) string {
	switch words[0] {
	case "open":
		opened, err := lockbroker.Open(lockbroker.Socket(words[1]), lockbroker.Patience(time.Second))
		if err == nil {
			opened.Close()
		}
		return said(err)
	case "cancel":
		of(words[1]).cancel()
		return "ok"
	case "stop":
		over.Store(true)
		return "ok"
	case "end":
		return said(client.Close())
	case "lock", "try", "all", "any", "semaphore", "campaign":
		ctx, call := begin(key)
		held, err := acquire(ctx, words)
		if err != nil {
			return said(err)
		}
		call.held = held
		return fmt.Sprintf("held %d", held.Token())
	case "leader":
		leader, err := client.Leader(context.Background(), words[1])
		if err != nil {
			return said(err)
		}
		return shown(leader)
	case "observe":
		ctx, _ := begin(key)
		return said(client.Observe(ctx, words[1], func(leader *lockbroker.Leader) error {
			say("%s sees %s", key, shown(leader))
			return nil
		}))
	case "do":
		answer, err := client.Do(context.Background(), words[1:]...)
		if err != nil {
			return said(err)
		}
		return fmt.Sprint(answer)
	case "run":
		out, err := exec.Command(words[1], words[2:]...).CombinedOutput()
		return fmt.Sprintf("%s %q", said(err), out)
	case "race":
		return race(words[1], words[2], number(words[3]))
	}
	return ask(key, words)
}

func main() {
	patience := 10 * time.Second
	if text := os.Getenv("PATIENCE_MS"); text != "" {
		patience = ms(text)
	}
	var err error
	client, err = lockbroker.Open(lockbroker.Patience(patience))
	say("main %s", said(err))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		go func() { say("%s %s", words[0], carryOut(words[0], words[1:])) }()
	}
}
