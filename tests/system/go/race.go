// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	lockbroker "lockbroker.invalid/go"
)

// resource is a file with a number and the largest token that it has seen, as fenced.py has it: it refuses smaller
// ones. What is read and written in two steps is right only if nobody else comes in between.
type resource string

func (r resource) visit(do func(number, token int64) (int64, int64, bool)) bool {
	file, err := os.OpenFile(string(r), os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		panic(err)
	}
	var number, token int64
	if _, err := fmt.Fscan(io.NewSectionReader(file, 0, 100), &number, &token); err != nil {
		panic(err)
	}
	number, token, accepted := do(number, token)
	if accepted {
		if _, err := file.WriteAt([]byte(fmt.Sprintf("%20d %20d\n", number, token)), 0); err != nil {
			panic(err)
		}
	}
	return accepted
}

func (r resource) read(own int64) (n int64, accepted bool) {
	accepted = r.visit(func(number, token int64) (int64, int64, bool) {
		n = number
		return number, own, own > token
	})
	return n, accepted
}

func (r resource) write(own, n int64) bool {
	return r.visit(func(_, token int64) (int64, int64, bool) { return n, own, own == token })
}

// once adds 1 under the lock, and returns whether it did. It is wrong if the resource refused a holder that had not
// lost it.
func once(ctx context.Context, r resource, name string) (bool, error) {
	held, err := client.Lock(ctx, name)
	if err != nil {
		return false, err
	}
	defer held.Close()
	n, accepted := r.read(held.Token())
	if accepted {
		time.Sleep(time.Duration(rand.Intn(2000)) * time.Microsecond)
		accepted = r.write(held.Token(), n+1)
	}
	if rand.Intn(8) == 0 {
		held.ValidFor()
	}
	err = held.Unlock()
	if err == nil && !accepted {
		panic("a holder that lost nothing was refused")
	}
	return accepted, nil
}

var over atomic.Bool

// race has goroutines add 1 each, again and again until it is over. Every fourth context ends at a random moment.
func race(file, name string, goroutines int) string {
	var all sync.WaitGroup
	var added, given, away atomic.Int64
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for !over.Load() {
				ctx, cancel := context.Background(), context.CancelFunc(func() {})
				if rand.Intn(4) == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.Intn(20000))*time.Microsecond)
				}
				done, err := once(ctx, resource(file), name)
				cancel()
				switch {
				case done:
					added.Add(1)
				case errors.Is(err, context.DeadlineExceeded):
					given.Add(1)
				case errors.Is(err, lockbroker.ErrNotAvailable), errors.Is(err, lockbroker.ErrLost), err == nil:
					away.Add(1)
				default:
					panic(err)
				}
			}
		}()
	}
	all.Wait()
	return fmt.Sprintf("added %d given up %d away %d", added.Load(), given.Load(), away.Load())
}
