// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAContextThatEndsEndsTheConnectionSoThatAGrantThatCrossesIsReleased(t *testing.T) {
	b := newBroker(t)
	b.set("LOCK", "")
	client := b.client()
	ctx, cancel := context.WithCancel(context.Background())
	wrong := make(chan error)
	go func() {
		_, err := client.Lock(ctx, "a")
		wrong <- err
	}()
	b.awaitAsked("LOCK")
	cancel()
	err := <-wrong
	is(t, err, context.Canceled)
	if isAny(err, ErrNotAvailable, ErrTaken) {
		t.Fatal(err)
	}
	<-b.ended
}

func TestAContextThatHasEndedAsksForNothing(t *testing.T) {
	b := newBroker(t)
	client := b.client()
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	_, err := client.Lock(ctx, "a")
	is(t, err, context.DeadlineExceeded)
	if b.count("HELLO") != 0 {
		t.Fatal("it connected")
	}
}

func TestWhatEndsIsWaitedForAndAskedAgain(t *testing.T) {
	b := newBroker(t)
	b.set("LOCK", "")
	client := b.client()
	got := make(chan *Held)
	go func() {
		held, _ := client.Lock(context.Background(), "a", Wait(time.Hour))
		got <- held
	}()
	b.awaitAsked("LOCK")
	b.set("LOCK", ":9\r\n")
	b.last().Close()
	if held := <-got; held == nil || held.Token() != 9 {
		t.Fatalf("%v", held)
	}
}

func TestABrokerThatIsAwayForLongerThanThePatienceIsNotAvailable(t *testing.T) {
	b := newBroker(t)
	client := b.client(Patience(100 * time.Millisecond))
	b.listener.Close()
	_, err := client.Lock(context.Background(), "a")
	is(t, err, ErrNotAvailable)
	if !strings.Contains(err.Error(), b.path) {
		t.Fatal(err)
	}
}

func TestEachOutageIsNotAvailable(t *testing.T) {
	b := newBroker(t)
	client := b.client(Patience(200 * time.Millisecond))
	for _, answer := range []string{"-UNAVAILABLE it cannot ask\r\n", "-DRAINING it drains\r\n"} {
		b.set("LOCK", answer)
		_, err := client.Lock(context.Background(), "a")
		is(t, err, ErrNotAvailable)
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(answer[1:], e.Code+" "+e.Error()) {
			t.Fatalf("%v, %v", err, e)
		}
	}
	b.beSilent()
	_, err := client.TryLock(context.Background(), "a")
	is(t, err, ErrNotAvailable)
	_, err = Open(Socket(filepath.Join(t.TempDir(), "none")), Patience(time.Hour)) // at once: no broker was there
	is(t, err, ErrNotAvailable)
	is(t, err, os.ErrNotExist)
}

func TestABrokerThatWasStoppedIsWaitedFor(t *testing.T) {
	b := newBroker(t)
	client := b.client()
	b.listener.Close() // its socket goes, too
	if _, err := os.Stat(b.path); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	locked := make(chan error)
	go func() {
		_, err := client.Lock(context.Background(), "a")
		locked <- err
	}()
	time.Sleep(50 * time.Millisecond) // so that it has tried, unless the machine is very busy
	next := newBroker(t)
	if err := os.Rename(next.path, b.path); err != nil {
		t.Fatal(err)
	}
	is(t, <-locked, nil)
}

func TestALeaseBeginsWithTheGrant(t *testing.T) {
	b := newBroker(t)
	b.delay(200 * time.Millisecond)
	held := b.lock(Lease(2 * time.Second))
	if b.count("RENEW") != 1 {
		t.Fatal("it is counted from the question")
	}
	is(t, held.Unlock(), nil)
	b.delay(0)
	held = b.lock(Lease(time.Hour))
	if b.count("RENEW") != 0 {
		t.Fatal("it was renewed for nothing")
	}
	is(t, held.Unlock(), nil)
}

func TestABrokerThatDrainsWhenItGreetsIsAboutToStartAgain(t *testing.T) {
	b := newBroker(t)
	client := b.client()
	b.set("HELLO", "-DRAINING it stops\r\n")
	locked := make(chan error)
	go func() {
		_, err := client.Lock(context.Background(), "a")
		locked <- err
	}()
	eventually(t, "another try", func() bool { return b.count("HELLO") > 1 })
	b.set("HELLO", b.hello())
	is(t, <-locked, nil)
}

func TestABrokerWhoseQueueIsFullIsWaitedFor(t *testing.T) {
	b := newBroker(t)
	path := filepath.Join(t.TempDir(), "socket")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	is(t, err, nil)
	is(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), nil)
	is(t, syscall.Listen(fd, 0), nil)
	for err == nil {
		var waiting net.Conn
		if waiting, err = net.Dial("unix", path); err == nil {
			defer waiting.Close()
		}
	}
	is(t, err, syscall.EAGAIN)
	_, err = Open(Socket(path), Patience(50*time.Millisecond))
	is(t, err, ErrNotAvailable)
	opened := make(chan error)
	go func() {
		_, err := Open(Socket(path), Patience(hang))
		opened <- err
	}()
	time.Sleep(50 * time.Millisecond) // so that it has tried, unless the machine is very busy
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	listener, err := net.FileListener(file)
	is(t, err, nil)
	defer listener.Close()
	go b.accept(listener)
	is(t, <-opened, nil)
}

func TestABrokerThatDoesNotReadIsNotWaitedForForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	listener, err := net.Listen("unix", path)
	is(t, err, nil)
	defer listener.Close()
	b := newBroker(t)
	c := b.client(Patience(100 * time.Millisecond))
	is(t, os.Rename(path, b.path), nil)
	_, err = c.Do(context.Background(), "ECHO", strings.Repeat("x", 16<<20))
	is(t, err, ErrNotAvailable)
}

func TestABrokerThatIsStillStartingIsWaitedFor(t *testing.T) {
	b := newBroker(t)
	b.listener.(*net.UnixListener).SetUnlinkOnClose(false)
	b.listener.Close()
	t.Setenv("LOCKBROKER_OPEN_MS", "0")
	_, err := Open(Socket(b.path), Patience(time.Hour))
	is(t, err, ErrNotAvailable)
	t.Setenv("LOCKBROKER_OPEN_MS", "")
	opened := make(chan error)
	go func() {
		_, err := Open(Socket(b.path))
		opened <- err
	}()
	next := newBroker(t)
	if err := os.Rename(next.path, b.path); err != nil {
		t.Fatal(err)
	}
	is(t, <-opened, nil)
}

func TestACommandIsSentOnce(t *testing.T) {
	b := newBroker(t)
	b.set("FORCEUNLOCK", "")
	client := b.client()
	wrong := make(chan error)
	go func() {
		_, err := client.Do(context.Background(), "FORCEUNLOCK", "a")
		wrong <- err
	}()
	b.awaitAsked("FORCEUNLOCK")
	b.last().Close()
	is(t, <-wrong, ErrNotAvailable)
	if b.count("FORCEUNLOCK") != 1 {
		t.Fatal("it was sent again")
	}
}

func TestTheErrorOfWhoObservesEndsTheObservation(t *testing.T) {
	b := newBroker(t)
	b.set("OBSERVE", "+OK\r\n>5\r\n+leader\r\n+e\r\n:9\r\n+web\r\n+me\r\n")
	mine := failed(ErrNotAvailable, "mine")
	mine.again = whenItIsBack
	var seen []Leader
	err := b.client().Observe(context.Background(), "e", func(leader *Leader) error {
		seen = append(seen, *leader)
		return mine
	})
	if err != mine || len(seen) != 1 || seen[0] != (Leader{"web", "me", 9}) {
		t.Fatal(err, seen)
	}
}

func TestEachCodeIsAKindOfError(t *testing.T) {
	for code, kind := range kinds {
		err := refusal(errorReply(code + " a sentence"))
		if err.Error() != "a sentence" || err.Code != code || !errors.Is(err, kind) {
			t.Errorf("%s: %v", code, err)
		}
	}
	is(t, refusal("NEW sentence"), ErrRefused)
}

func TestTheSocketIsNamedByTheOptionOrTheEnvironment(t *testing.T) {
	b := newBroker(t)
	t.Setenv("LOCKBROKER_SOCKET", b.path)
	_, err := Open()
	is(t, err, nil)
	folder := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", folder)
	t.Setenv("LOCKBROKER_SOCKET", "user")
	_, err = Open()
	if is(t, err, ErrNotAvailable); !strings.Contains(err.Error(), folder+"/lockbroker/lockbroker.sock") {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err = Open(Socket("user"))
	if is(t, err, ErrNotAvailable); !strings.Contains(err.Error(), "only this user") {
		t.Fatal(err)
	}
	_, err = Open(Socket("@none"))
	if is(t, err, ErrNotAvailable); !strings.Contains(err.Error(), "/run/lockbroker@none/lockbroker.sock") {
		t.Fatal(err)
	}
	t.Setenv("LOCKBROKER_SOCKET", "")
	c := &Client{}
	Socket("x")(c)
	if _, err = Open(Patience(0)); !errors.Is(err, ErrRefused) || c.path != "x" {
		t.Fatal(err)
	}
}

func TestALossThatComesWithTheGrantIsSeen(t *testing.T) {
	b := newBroker(t)
	b.set("LOCK", ":7\r\n>4\r\n$4\r\nlost\r\n$1\r\na\r\n:7\r\n$6\r\nforced\r\n")
	_, err := b.client().Lock(context.Background(), "a")
	var e *Error
	if is(t, err, ErrLost); !errors.As(err, &e) || e.Reason != "forced" {
		t.Fatal(err)
	}
	<-b.ended
}

func TestALossOfAnotherNameIsNone(t *testing.T) {
	b := newBroker(t)
	held := b.lock()
	b.send(">4\r\n$4\r\nlost\r\n$1\r\nb\r\n:7\r\n$6\r\nforced\r\n>4\r\n$6\r\nrevoke\r\n$1\r\na\r\n:7\r\n$2\r\nwe\r\n")
	<-held.Revoked()
	notLost(t, held)
	if held.RevokeReason() != "we" || held.Context().Err() != nil {
		t.Fatal(held.RevokeReason())
	}
}

func TestTheContextEndsWithTheLock(t *testing.T) {
	b := newBroker(t)
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
	client := b.client()
	held, err := client.Lock(ctx, "a")
	is(t, err, nil)
	if held.Context().Value(key{}) != "value" || held.Context().Err() != nil {
		t.Fatal("it is not a child")
	}
	is(t, held.Unlock(), nil)
	is(t, held.Context().Err(), context.Canceled)
	notLost(t, held)
	held, err = client.Lock(ctx, "a")
	is(t, err, nil)
	cancel()
	<-held.Context().Done()
	is(t, held.Check(), nil)
	is(t, held.Unlock(), nil)
}

func TestWhatWasReleasedIsNotHeld(t *testing.T) {
	b := newBroker(t)
	held := b.lock()
	is(t, held.Unlock(), nil)
	<-b.ended
	for _, err := range []error{held.Unlock(), held.Check(), held.Renew(time.Second), held.Downgrade()} {
		is(t, err, ErrNotHeld)
	}
	is(t, held.Close(), nil)
	if held.ValidFor() != 0 {
		t.Fatal("it is valid")
	}
}

func TestUnlockOfWhatIsLostIsErrLost(t *testing.T) {
	for _, answer := range []string{"-LOST it is gone\r\n", "-NOTHELD it is gone\r\n", "$x\r\n"} {
		b := newBroker(t)
		held := b.lock()
		b.set("UNLOCK", answer)
		is(t, held.Unlock(), ErrLost)
		<-b.ended
	}
	b := newBroker(t)
	held := b.lock()
	b.last().Close()
	isLost(t, held, "connection")
	is(t, held.Unlock(), ErrLost)
}

func TestAnUnlockThatIsNotAnsweredIsOneIfItWasProven(t *testing.T) {
	b := newBroker(t)
	client := b.client(Patience(50 * time.Millisecond))
	held, err := client.Lock(context.Background(), "a")
	is(t, err, nil)
	b.beSilent()
	is(t, held.Unlock(), nil)
	<-b.ended
}

func TestCloseReleasesWithoutWaiting(t *testing.T) {
	b := newBroker(t)
	held := b.lock()
	b.beSilent()
	is(t, held.Close(), nil)
	<-b.ended
	is(t, held.Unlock(), ErrNotHeld)
	notLost(t, held)
}

func TestTheEndOfTheClientEndsAll(t *testing.T) {
	b := newBroker(t)
	client := b.client()
	held, err := client.Lock(context.Background(), "b")
	is(t, err, nil)
	b.set("LOCK", "")
	b.forget()
	wrong := make(chan error)
	go func() {
		_, err := client.Lock(context.Background(), "a")
		wrong <- err
	}()
	b.awaitAsked("LOCK")
	b.set("ECHO", "")
	go func() {
		_, err := client.Do(context.Background(), "ECHO", "a")
		wrong <- err
	}()
	b.awaitAsked("ECHO")
	is(t, client.Close(), nil)
	is(t, <-wrong, ErrClosed)
	is(t, <-wrong, ErrClosed)
	is(t, held.Unlock(), ErrNotHeld)
	_, err = client.Lock(context.Background(), "a")
	is(t, err, ErrClosed)
	is(t, client.Close(), nil)
}

// As when what it waits for was held through the same client.
func TestWhatIsGrantedWhileTheClientClosesIsNotReturned(t *testing.T) {
	b := newBroker(t)
	b.set("LOCK", "")
	client := b.client()
	wrong := make(chan error)
	go func() {
		_, err := client.Lock(context.Background(), "a")
		wrong <- err
	}()
	b.awaitAsked("LOCK")
	close(client.closed)
	b.send(":9\r\n")
	is(t, <-wrong, ErrClosed)
	<-b.ended
}

func TestOptionsAreWordsOfTheRequest(t *testing.T) {
	for _, one := range []struct {
		kind    kind
		options []LockOption
		want    string
	}{
		{aLock, nil, "LOCK a"},
		{aLock, []LockOption{Shared(), Wait(1500 * time.Microsecond), Lease(time.Nanosecond), Data("x y")},
			"LOCK a SHARED WAIT 2 LEASE 1 DATA x y"},
		{aLock, []LockOption{Wait(1 << 62), Lease(1 << 62)}, "LOCK a WAIT 31536000000 LEASE 31536000000"},
		{someLocks, []LockOption{Shared()}, "MLOCK 1 a SHARED"},
		{permits, []LockOption{Wait(0)}, "ACQUIRE a LIMIT 3 COUNT 1 WAIT 0"},
		{permits, []LockOption{Count(2)}, "ACQUIRE a LIMIT 3 COUNT 2"},
		{leadership, []LockOption{Data("me")}, "CAMPAIGN a DATA me"},
	} {
		r, err := newRequest(one.kind, []string{"a"}, one.options)
		is(t, err, nil)
		r.limit = 3
		if got := strings.Join(r.acquire(r.wait), " "); got != one.want {
			t.Errorf("%s is not %s", got, one.want)
		}
	}
	for _, option := range []LockOption{Wait(-1), Lease(0), Lease(-1)} {
		_, err := newRequest(aLock, []string{"a"}, []LockOption{option, Shared()})
		is(t, err, ErrRefused)
	}
	_, err := newRequest(someLocks, nil, nil)
	is(t, err, ErrRefused)
}

func TestOfSeveralTheFirstGrantCounts(t *testing.T) {
	b := newBroker(t)
	for _, name := range []string{"a", "b", "c"} {
		b.set("LOCK "+name, "_\r\n")
	}
	b.set("ENQUEUE", "+QUEUED\r\n")
	b.set("CANCEL a", ">3\r\n$7\r\ngranted\r\n$1\r\na\r\n:8\r\n:0\r\n")
	client := b.client()
	got := make(chan *Held)
	go func() {
		held, err := client.LockAny(context.Background(), []string{"a", "b", "c"})
		if err != nil {
			t.Error(err)
		}
		got <- held
	}()
	eventually(t, "all to be queued for", func() bool { return b.count("ENQUEUE") == 3 })
	b.send(">3\r\n$7\r\ngranted\r\n$1\r\nb\r\n:9\r\n")
	held := <-got
	if held == nil || held.Name() != "b" || held.Token() != 9 {
		t.Fatalf("%v", held)
	}
	if b.count("LOCK") != 3 || b.count("CANCEL") != 2 || b.count("UNLOCK") != 1 {
		t.Fatal("what was granted beside it is not released")
	}
	b.send(">4\r\n$4\r\nlost\r\n$1\r\na\r\n:8\r\n$6\r\nforced\r\n")
	isBetween(t, held.ValidFor(), 1, forever)
	is(t, held.Unlock(), nil)
}

func TestOfSeveralNoneInTime(t *testing.T) {
	b := newBroker(t)
	b.set("LOCK", "_\r\n")
	b.set("ENQUEUE a", "+QUEUED\r\n>2\r\n$7\r\ntimeout\r\n$1\r\na\r\n")
	b.set("ENQUEUE b", "+QUEUED\r\n>2\r\n$7\r\ntimeout\r\n$1\r\nb\r\n")
	client := b.client()
	names := []string{"a", "b"}
	_, err := client.LockAny(context.Background(), names, Wait(time.Hour))
	is(t, err, ErrTaken)
	b.set("ENQUEUE b", "+QUEUED\r\n>4\r\n$6\r\nfailed\r\n$1\r\nb\r\n$11\r\nUNAVAILABLE\r\n$1\r\nx\r\n")
	_, err = client.LockAny(context.Background(), names, Wait(time.Hour))
	is(t, err, ErrNotAvailable)
	b.forget()
	_, err = client.LockAny(context.Background(), names, Wait(0))
	is(t, err, ErrTaken)
	b.set("LOCK b", "-UNAVAILABLE x\r\n")
	_, err = client.LockAny(context.Background(), names, Wait(0))
	is(t, err, ErrNotAvailable)
	if b.count("ENQUEUE") != 0 {
		t.Fatal("a try has queued")
	}
}

func TestOfSeveralTheFirstTryIsByChance(t *testing.T) {
	b := newBroker(t)
	b.set("LOCK a", ":1\r\n")
	b.set("LOCK b", ":2\r\n")
	client := b.client()
	seen := map[string]bool{}
	for end := time.Now().Add(hang); len(seen) < 2 && time.Now().Before(end); {
		held, err := client.LockAny(context.Background(), []string{"a", "b"})
		is(t, err, nil)
		seen[held.Name()] = true
		is(t, held.Unlock(), nil)
	}
	if len(seen) < 2 {
		t.Fatal(seen)
	}
}

func TestNothingIsLeftOfManyLocks(t *testing.T) {
	b := newBroker(t)
	client := b.client()
	before := runtime.NumGoroutine()
	for i := 0; i < 50; i++ {
		held, err := client.Lock(context.Background(), "a")
		is(t, err, nil)
		if i%2 == 0 {
			is(t, held.Unlock(), nil)
		} else {
			held.Close()
		}
	}
	eventually(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
	client.mu.Lock()
	defer client.mu.Unlock()
	if len(client.conns) != 0 {
		t.Fatal("connections are remembered")
	}
}

// While the whole process is stopped, nobody reads what the broker sends. Whoever asks after that may come before the
// reader.
func TestWhatHasComeIsReadByWhoeverAsks(t *testing.T) {
	for name, ask := range map[string]func(*Held) error{"check": (*Held).Check, "unlock": (*Held).Unlock,
		"renew": func(h *Held) error { return h.Renew(time.Hour) }} {
		t.Run(name, func(t *testing.T) {
			b := newBroker(t)
			what, _ := newRequest(aLock, []string{"a"}, nil)
			made, err := b.client().connect(context.Background(), what)
			is(t, err, nil)
			made.reading = true // there is no reader
			begun := make(chan error)
			go func() { begun <- made.acquire(context.Background(), time.Time{}) }()
			for done := false; !done; made.catchUp() {
				select {
				case err := <-begun:
					is(t, err, nil)
					done = true
				default:
				}
			}
			held := newHeld(context.Background(), made)
			b.send(">4\r\n$4\r\nlost\r\n$1\r\na\r\n:7\r\n$6\r\nforced\r\n")
			is(t, ask(held), ErrLost)
			isLost(t, held, "forced")
			held.Close()
		})
	}
}
