// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	lockbroker "lockbroker.invalid/go"
)

func settle(context.Context, int64) {}

func Example() {
	client, err := lockbroker.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	fmt.Println(settleOrder(context.Background(), client))
	// Output: <nil>
}

func settleOrder(ctx context.Context, client *lockbroker.Client) error {
	held, err := client.Lock(ctx, "orders/42", lockbroker.Wait(5*time.Second))
	if err != nil {
		return err
	}
	defer held.Close()                   // whatever happens
	settle(held.Context(), held.Token()) // the resource refuses smaller tokens than it has seen
	if err := held.Check(); err != nil { // before a step that cannot be undone
		return err
	}
	return held.Unlock() // ErrLost: it was not held all the time
}

func ExampleClient_TryLock() {
	client, err := lockbroker.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	held, err := client.TryLock(ctx, "nightly")
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.TryLock(ctx, "nightly")
	fmt.Println(errors.Is(err, lockbroker.ErrTaken), held.Unlock())
	// Output: true <nil>
}

func ExampleClient_LockAll() {
	client, err := lockbroker.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	held, err := client.LockAll(ctx, []string{"accounts/7", "accounts/9"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(held.Tokens()["accounts/7"] > 0, held.Tokens()["accounts/9"] > 0, held.Unlock())
	// Output: true true <nil>
}

func ExampleClient_LockAny() {
	client, err := lockbroker.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	first, err := client.LockAny(ctx, []string{"ports/8001", "ports/8002"})
	if err != nil {
		log.Fatal(err)
	}
	second, err := client.LockAny(ctx, []string{"ports/8001", "ports/8002"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.Name() != second.Name())
	// Output: true
}

func ExampleClient_Acquire() {
	client, err := lockbroker.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	held, err := client.Acquire(context.Background(), "encoder", 4, lockbroker.Count(2))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(held.Unlock())
	// Output: <nil>
}

func ExampleClient_Campaign() {
	client, err := lockbroker.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	held, err := client.Campaign(ctx, "scheduler", "http://web-1:8080")
	if err != nil {
		log.Fatal(err)
	}
	found := errors.New("found")
	err = client.Observe(ctx, "scheduler", func(leader *lockbroker.Leader) error {
		if leader == nil {
			return nil // nobody leads
		}
		fmt.Println(leader.Data)
		return found
	})
	fmt.Println(errors.Is(err, found), held.Unlock())
	// Output:
	// http://web-1:8080
	// true <nil>
}

func ExampleNewGroup() {
	client, err := lockbroker.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	work := lockbroker.NewGroup()
	held, err := client.Lock(ctx, "a", work)
	if err != nil {
		log.Fatal(err)
	}
	defer held.Close()
	_, err = client.Lock(ctx, "a", work)
	fmt.Println(errors.Is(err, lockbroker.ErrDeadlock))
	// Output: true
}

// What gocron (v2) declares; a program imports it instead.
type (
	gocronLocker interface {
		Lock(ctx context.Context, key string) (gocronLock, error)
	}
	gocronLock interface {
		Unlock(ctx context.Context) error
	}
)

// Locker is for gocron.WithDistributedLocker: of the schedulers of all hosts, one runs the job.
type Locker struct {
	Client  *lockbroker.Client
	AtLeast time.Duration // longer than the clocks of the hosts differ: else one whose clock is late runs a short job again
}

func (l Locker) Lock(ctx context.Context, key string) (gocronLock, error) {
	held, err := l.Client.TryLock(ctx, "jobs/"+key)
	if err != nil {
		return nil, err
	}
	return jobLock{held, time.Now().Add(l.AtLeast)}, nil
}

type jobLock struct {
	held  *lockbroker.Held
	until time.Time
}

func (l jobLock) Unlock(context.Context) error {
	err := l.held.Check() // ErrLost: another host may have run the job, too
	time.AfterFunc(time.Until(l.until), func() { l.held.Close() })
	return err
}

func ExampleClient_TryLock_scheduler() {
	client, err := lockbroker.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	var one, two gocronLocker = Locker{client, time.Minute}, Locker{client, time.Minute}
	lock, err := one.Lock(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lock.Unlock(ctx))
	_, err = two.Lock(ctx, "report")
	fmt.Println("the other host, a moment later:", errors.Is(err, lockbroker.ErrTaken))
	// Output:
	// <nil>
	// the other host, a moment later: true
}

// What golang-migrate declares as database.Driver, as far as locks go, and database.ErrLocked.
type migrateDriver interface {
	Lock() error
	Unlock() error
}

var errLocked = errors.New("can't acquire lock")

// Driver is a driver of golang-migrate that locks by the broker. It stands in front of that of the database.
type Driver struct {
	migrateDriver
	Client *lockbroker.Client
	held   *lockbroker.Held
}

func (d *Driver) Lock() (err error) {
	d.held, err = d.Client.TryLock(context.Background(), "migrations")
	if errors.Is(err, lockbroker.ErrTaken) {
		return errLocked
	}
	return err
}

func (d *Driver) Unlock() error {
	return d.held.Unlock()
}

func ExampleClient_TryLock_migrate() {
	client, err := lockbroker.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	var one, two migrateDriver = &Driver{Client: client}, &Driver{Client: client}
	fmt.Println(one.Lock(), two.Lock(), one.Unlock())
	fmt.Println(two.Lock(), two.Unlock())
	// Output:
	// <nil> can't acquire lock <nil>
	// <nil> <nil>
}

// What goose declares as lock.SessionLocker.
type gooseLocker interface {
	SessionLock(ctx context.Context, conn *sql.Conn) error
	SessionUnlock(ctx context.Context, conn *sql.Conn) error
}

// SessionLocker is for goose.WithSessionLocker: who comes second waits, and finds nothing to be done.
type SessionLocker struct {
	Client *lockbroker.Client
	held   *lockbroker.Held
}

func (s *SessionLocker) SessionLock(ctx context.Context, _ *sql.Conn) (err error) {
	s.held, err = s.Client.Lock(ctx, "migrations")
	return err
}

func (s *SessionLocker) SessionUnlock(context.Context, *sql.Conn) error {
	return s.held.Unlock()
}

func ExampleClient_Lock_goose() {
	client, err := lockbroker.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	var locker gooseLocker = &SessionLocker{Client: client}
	fmt.Println(locker.SessionLock(ctx, nil), locker.SessionUnlock(ctx, nil))
	// Output: <nil> <nil>
}
