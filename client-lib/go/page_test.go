// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	pageNone = 0
	pageLost = 3
)

func TestThePageSaysForHowLong(t *testing.T) {
	b := newBroker(t)
	held := b.lock()
	isBetween(t, held.ValidFor(), 3590*time.Second, time.Hour)
	b.page.write(0, pageJeopardy, 100*time.Second)
	isBetween(t, held.ValidFor(), 90*time.Second, 100*time.Second)
	b.page.write(0, pageSafe, forever)
	isBetween(t, held.ValidFor(), forever, forever)
	if b.count("VALID") != 0 {
		t.Fatal("the broker was asked")
	}
	is(t, held.Unlock(), nil)
}

func TestWhatVoidsAGrantDoesSoForGood(t *testing.T) {
	for _, one := range []struct {
		name         string
		epoch, state uint64
		left         time.Duration
	}{{"epoch", 1, pageSafe, time.Hour}, {"lost", 0, pageLost, time.Hour}, {"none", 0, pageNone, 0},
		{"over", 0, pageSafe, 0}, {"moved epoch", 1, pageMoved, time.Hour}} {
		t.Run(one.name, func(t *testing.T) {
			b := newBroker(t)
			held := b.lock()
			isBetween(t, held.ValidFor(), 1, forever)
			b.page.write(one.epoch, one.state, one.left)
			if left := held.ValidFor(); left != 0 {
				t.Fatalf("it is valid for %v", left)
			}
			b.page.write(0, pageSafe, time.Hour)
			isLost(t, held, "session")
			is(t, held.Unlock(), ErrLost)
			is(t, held.Unlock(), ErrLost)
		})
	}
}

func TestAProofThatRunsOutIsALossThoughNobodyAsks(t *testing.T) {
	b := newBroker(t)
	b.page.write(0, pageSafe, 50*time.Millisecond)
	held, err := b.client().Lock(context.Background(), "a")
	if err != nil { // a busy machine: it had run out before the grant
		is(t, err, ErrLost)
		return
	}
	isLost(t, held, "session")
}

func TestAWriterThatWasKilledWhileItWrote(t *testing.T) {
	b := newBroker(t)
	held := b.lock()
	b.page.write(0, pageSafe, 100*time.Second)
	isBetween(t, held.ValidFor(), 90*time.Second, 100*time.Second)
	b.page.writeAs(pageMagic, 1, 5, pageLost, 0, true)
	isBetween(t, held.ValidFor(), 80*time.Second, 100*time.Second)
	b.page.write(0, pageSafe, 50*time.Second)
	isBetween(t, held.ValidFor(), 40*time.Second, 50*time.Second)
}

func TestWhatIsNotThePageIsNotBelieved(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *broker){
		"id":      func(t *testing.T, b *broker) { b.page.path = newPage(t).path },
		"magic":   func(t *testing.T, b *broker) { b.page.writeAs(1, 1, 0, pageSafe, time.Hour, false) },
		"version": func(t *testing.T, b *broker) { b.page.writeAs(pageMagic, 2, 0, pageSafe, time.Hour, false) },
		"odd":     func(t *testing.T, b *broker) { b.page.writeAs(pageMagic, 1, 0, pageSafe, time.Hour, true) },
		"missing": func(t *testing.T, b *broker) { os.Remove(b.page.path) },
		"size":    func(t *testing.T, b *broker) { os.Truncate(b.page.path, 65) },
		"folder":  func(t *testing.T, b *broker) { b.page.path = t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBroker(t)
			spoil(t, b)
			held := b.lock()
			isBetween(t, held.ValidFor(), 1, 5*time.Second)
			if b.count("VALID") == 0 {
				t.Fatal("the broker was not asked")
			}
			b.set("VALID", ":0\r\n")
			held.ValidFor()
			isLost(t, held, "session")
		})
	}
}

func noPage(t *testing.T) *broker {
	b := newBroker(t)
	os.Remove(b.page.path)
	return b
}

func TestWithoutAPageTheBrokersAnswerCountsLessTheTimeSince(t *testing.T) {
	b := noPage(t)
	b.set("VALID", ":100000\r\n")
	held := b.lock()
	b.delay(100 * time.Millisecond)
	isBetween(t, held.ValidFor(), 80*time.Second, 100*time.Second-100*time.Millisecond)
}

func TestWithoutAPageTheBrokerIsAskedAgainBeforeItsAnswerRunsOut(t *testing.T) {
	b := noPage(t)
	b.set("VALID", ":2000\r\n")
	held := b.lock()
	b.forget()
	b.awaitAsked("VALID")
	notLost(t, held)
	b.set("VALID", ":0\r\n")
	isLost(t, held, "session")
}

func TestWithoutAPageASilentBrokerProvesNothing(t *testing.T) {
	b := noPage(t)
	b.set("VALID", ":1500\r\n")
	client := b.client()
	held, err := client.Lock(context.Background(), "a")
	is(t, err, nil)
	b.beSilent()
	isLost(t, held, "unanswered")
	is(t, held.Unlock(), ErrLost)
}

func TestWithoutAPageWhatIsNoAnswerProvesNothing(t *testing.T) {
	b := noPage(t)
	b.set("VALID b", "-ERR no\r\n")
	held, err := b.client().LockAll(context.Background(), []string{"a", "b"})
	is(t, err, nil)
	if left := held.ValidFor(); left != 0 {
		t.Fatalf("half of it is proven, and it is valid for %v", left)
	}
	b.set("VALID b", ":3000\r\n")
	isBetween(t, held.ValidFor(), 1, 3*time.Second)
}

func TestAPageThatHasMovedIsFollowed(t *testing.T) {
	b := newBroker(t)
	held := b.lock()
	next := newPage(t)
	next.write(0, pageSafe, 2*time.Hour)
	before := b.page
	b.mu.Lock()
	b.page = next
	b.mu.Unlock()
	before.write(0, pageMoved, time.Minute)
	isBetween(t, held.ValidFor(), 1, 2*time.Hour)
	eventually(t, "the new page", func() bool { return held.ValidFor() > time.Hour })
	next.write(1, pageSafe, time.Hour)
	held.ValidFor()
	isLost(t, held, "session")
}

func TestAGrantUnderAPageThatHasMovedBelongsToTheNextOne(t *testing.T) {
	b := newBroker(t)
	b.page.write(7, pageMoved, time.Minute)
	held := b.lock()
	next := newPage(t)
	b.mu.Lock()
	b.page = next
	b.mu.Unlock()
	eventually(t, "the new page", func() bool { return held.ValidFor() > time.Minute })
	next.write(1, pageSafe, time.Hour)
	held.ValidFor()
	isLost(t, held, "session")
}

func TestAPageThatHasMovedAndRunOutIsNoLossIfTheBrokerKnowsBetter(t *testing.T) {
	b := newBroker(t)
	held := b.lock()
	next := newPage(t)
	before := b.page
	b.mu.Lock()
	b.page = next
	b.mu.Unlock()
	before.write(0, pageMoved, 0)
	isBetween(t, held.ValidFor(), 50*time.Minute, time.Hour)
}

func TestConnectionsShareAPage(t *testing.T) {
	b := newBroker(t)
	client := b.client()
	one, _ := client.Lock(context.Background(), "a")
	two, _ := client.Lock(context.Background(), "a")
	if one.conn.page == nil || one.conn.page != two.conn.page {
		t.Fatal("each has mapped one")
	}
}

func TestAPageThatNobodyHasAnyLongerIsUnmapped(t *testing.T) {
	var folder string
	for i := 0; i < 20; i++ {
		file := newPage(t)
		folder = filepath.Dir(filepath.Dir(file.path))
		if findPage(file.path, file.idText()) == nil {
			t.Fatal("it is not found")
		}
	}
	eventually(t, "the memory to be unmapped", func() bool {
		runtime.GC()
		maps, err := os.ReadFile("/proc/self/maps")
		return err == nil && !strings.Contains(string(maps), folder)
	})
}

func TestALeaseIsCountedFromTheQuestion(t *testing.T) {
	b := newBroker(t)
	held := b.lock(Lease(100 * time.Second))
	isBetween(t, held.ValidFor(), 90*time.Second, 100*time.Second)
	is(t, held.Renew(20*time.Second), nil)
	isBetween(t, held.ValidFor(), 10*time.Second, 20*time.Second)
	is(t, held.Renew(30*time.Millisecond), nil)
	isLost(t, held, "lease")
	is(t, held.Renew(time.Second), ErrLost)
}
