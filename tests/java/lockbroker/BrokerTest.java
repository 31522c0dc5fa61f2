// SPDX-License-Identifier: Apache-2.0
package lockbroker;

import java.io.Closeable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;

import org.junit.After;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TestName;
import org.junit.rules.Timeout;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

/** The library with the broker of $LOCKBROKER_SOCKET, whose operators' socket is $LOCKBROKER_OPERATOR_SOCKET. */
public class BrokerTest {
    private static final long SECONDS = 1_000;

    @Rule public final TestName test = new TestName();
    @Rule public final Timeout limit = Timeout.seconds(2 * Fixture.PATIENCE_S);

    private LockBroker broker, other, operator;
    private String name;

    @Before
    public void open() {
        broker = LockBroker.open();
        other = LockBroker.open();
        other.process = "other"; // as its threads are another process' to the broker
        operator = LockBroker.open(System.getenv("LOCKBROKER_OPERATOR_SOCKET"));
        name = "java/" + test.getMethodName();
    }

    @After
    public void close() {
        broker.close();
        other.close();
        operator.close();
    }

    private int queued(String of) {
        return ((List<?>) broker.ask("QUEUE", of)).size();
    }

    private void waitQueued(int count) throws InterruptedException {
        Fixture.waitUntil(() -> queued(name) == count, count + " requests to be queued");
    }

    private boolean isFree() {
        BrokerLock lock = other.lock(name);
        boolean free = lock.tryLock();
        if (free)
            lock.unlock();
        return free;
    }

    // ---- threads, levels and tokens ----

    @Test
    public void threadsOfOneJvmExcludeEachOtherAndEachHasATokenOfItsOwn() throws Exception {
        List<Long> tokens = Collections.synchronizedList(new ArrayList<>());
        AtomicInteger inside = new AtomicInteger();
        Fixture.join(Fixture.start(16, () -> {
            for (int i = 0; i < 20; i++) {
                try (Held held = broker.lock(name).hold()) {
                    assertEquals(1, inside.incrementAndGet());
                    tokens.add(held.token());
                    inside.decrementAndGet();
                }
            }
        }));
        assertEquals(320, tokens.size());
        for (int i = 1; i < tokens.size(); i++)
            assertTrue("tokens rise from thread to thread", tokens.get(i) > tokens.get(i - 1));
        assertTrue(isFree());
    }

    @Test
    public void threadsAreServedInTheOrderOfAsking() throws Exception {
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        List<Fixture.Running<Void>> all = new ArrayList<>();
        broker.lock(name).lock();
        for (int i = 0; i < 8; i++) {
            int number = i;
            all.add(Fixture.start(() -> {
                broker.lock(name).lock();
                order.add(number);
                broker.lock(name).unlock();
            }));
            Fixture.waitParked(all.get(i).thread);
        }
        assertEquals("they stand in the queue of the JVM", 0, queued(name));
        broker.lock(name).unlock();
        Fixture.join(all);
        assertEquals(List.of(0, 1, 2, 3, 4, 5, 6, 7), order);
    }

    @Test
    public void anotherProcessDoesNotWaitForTheQueueOfTheJvm() throws Exception {
        List<String> order = Collections.synchronizedList(new ArrayList<>());
        broker.lock(name).lock();
        List<Fixture.Running<Void>> here = Fixture.start(6, () -> {
            broker.lock(name).lock();
            order.add("here");
            broker.lock(name).unlock();
        });
        for (Fixture.Running<Void> one : here)
            Fixture.waitParked(one.thread);
        Fixture.Running<Void> there = Fixture.start(() -> {
            other.lock(name).lock();
            order.add("there");
            other.lock(name).unlock();
        });
        waitQueued(1);
        broker.lock(name).unlock();
        there.get();
        Fixture.join(here);
        assertEquals("there", order.get(0));
        assertEquals(7, order.size());
    }

    @Test
    public void aThreadEntersItAgainAndReleasesEachLevel() throws Exception {
        BrokerLock lock = broker.lock(name);
        lock.lock();
        long token = lock.held().token();
        assertTrue(broker.lock(name).tryLock());
        broker.lock(name).lockInterruptibly();
        assertTrue(lock.tryLock(1, TimeUnit.SECONDS));
        assertEquals(4, lock.getHoldCount());
        assertEquals(token, lock.held().token());
        for (int i = 3; i >= 0; i--) {
            assertTrue(lock.isHeldByCurrentThread());
            assertFalse(isFree());
            lock.unlock();
            assertEquals(i, lock.getHoldCount());
        }
        assertFalse(lock.isHeldByCurrentThread());
        assertTrue(isFree());
    }

    @Test
    public void onlyTheThreadThatHoldsItUnlocksIt() throws Exception {
        BrokerLock lock = broker.lock(name);
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
        assertThrows(IllegalMonitorStateException.class, lock::held);
        Held held = lock.hold();
        Fixture.start(() -> {
            assertThrows(IllegalMonitorStateException.class, lock::unlock);
            assertThrows(IllegalMonitorStateException.class, held::close);
            assertFalse(lock.isHeldByCurrentThread());
            assertEquals(0, lock.getHoldCount());
        }).get();
        assertTrue(lock.isHeldByCurrentThread());
        held.close();
        held.close();
        assertEquals(0, lock.getHoldCount());
    }

    @Test
    public void aThreadThatEndsKeepsItUntilTheBrokerIsClosed() throws Exception {
        Fixture.start(() -> broker.lock(name).lock()).get();
        assertFalse(isFree());
        assertFalse(broker.lock(name).tryLock());
        Fixture.Running<Void> waits = Fixture.start(() -> broker.lock(name).lock());
        Fixture.waitParked(waits.thread);
        broker.close();
        assertThrows(NotAvailable.class, waits::get);
        Fixture.waitUntil(this::isFree, "the lock to be free");
        assertThrows(NotAvailable.class, () -> broker.lock(name).lock());
        assertThrows(NotAvailable.class, () -> broker.ask("PING"));
    }

    // ---- time and interrupts ----

    @Test
    public void tryLockSaysFalseIfItIsHeldHereOrElsewhere() throws Exception {
        other.lock(name).lock();
        assertFalse(broker.lock(name).tryLock());
        assertFalse(broker.lock(name).tryLock(20, TimeUnit.MILLISECONDS));
        assertNull(broker.lock(name).tryHold());
        assertNull(broker.lock(name).tryHold(Duration.ofMillis(5)));
        other.lock(name).unlock();
        Fixture.start(() -> {
            assertTrue(broker.lock(name).tryLock());
            Fixture.start(() -> {
                assertFalse(broker.lock(name).tryLock());
                assertFalse(broker.lock(name).tryLock(20, TimeUnit.MILLISECONDS));
            }).get();
            broker.lock(name).unlock();
        }).get();
        assertEquals(0, queued(name));
        try (Held held = broker.lock(name).tryHold(Duration.ofMinutes(1))) {
            assertNotNull(held);
        }
        assertTrue(isFree());
    }

    @Test
    public void aTimeThatRunsOutInTheQueueOfTheJvmIsTheBrokersWord() throws Exception {
        other.lock(name).lock();
        Fixture.Running<Void> active = Fixture.start(() -> {
            broker.lock(name).lock();
            broker.lock(name).unlock();
        });
        waitQueued(1);
        assertFalse("held elsewhere, as the broker says", broker.lock(name).tryLock(20, TimeUnit.MILLISECONDS));
        assertFalse(broker.lock(name).tryLock());
        assertEquals(1, queued(name));
        other.lock(name).unlock();
        active.get();
    }

    @Test
    public void anInterruptWithdrawsTheRequest() throws Exception {
        other.lock(name).lock();
        Fixture.Running<Void> asks = Fixture.start(() -> broker.lock(name).lockInterruptibly());
        waitQueued(1);
        Fixture.Running<Void> queues = Fixture.start(() -> broker.lock(name).tryLock(1, TimeUnit.HOURS));
        Fixture.Running<Void> next = Fixture.start(() -> {
            broker.lock(name).lock();
            broker.lock(name).unlock();
        });
        Fixture.waitParked(queues.thread);
        Fixture.waitParked(next.thread);
        queues.thread.interrupt();
        assertThrows(InterruptedException.class, queues::get);
        asks.thread.interrupt();
        assertThrows(InterruptedException.class, asks::get);
        waitQueued(1); // of the next thread
        other.lock(name).unlock();
        next.get();
        assertTrue(isFree());
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, () -> broker.lock(name).lockInterruptibly());
        assertFalse(Thread.interrupted());
        assertTrue(isFree());
    }

    @Test
    public void lockKeepsTheInterruptAndWhatIsHeldSurvivesIt() throws Exception {
        other.lock(name).lock();
        Fixture.Running<Void> waits = Fixture.start(() -> {
            broker.lock(name).lock();
            assertTrue(Thread.currentThread().isInterrupted());
            assertTrue(broker.lock(name).isHeldByCurrentThread());
            assertFalse(broker.lock(name).held().validFor().isZero());
            broker.lock(name).unlock();
            assertTrue(Thread.interrupted());
        });
        waitQueued(1);
        waits.thread.interrupt();
        assertFalse(waits.ends(50));
        other.lock(name).unlock();
        waits.get();
    }

    @Test
    public void interruptsAtRandomLeaveNothingBehind() throws Exception {
        int[] count = {0};
        AtomicInteger done = new AtomicInteger(), interrupted = new AtomicInteger();
        List<Fixture.Running<Void>> all = Fixture.start(12, () -> {
            for (int i = 0; i < 60; i++) {
                try {
                    Lock lock = (i % 3 == 0 ? other : broker).lock(name);
                    if (i % 2 == 0)
                        lock.lockInterruptibly();
                    else if (!lock.tryLock(1, TimeUnit.MINUTES))
                        throw new AssertionError("a minute is enough");
                    count[0]++;
                    done.incrementAndGet();
                    lock.unlock();
                } catch (InterruptedException e) {
                    interrupted.incrementAndGet();
                }
            }
        });
        Random random = new Random();
        while (all.stream().anyMatch(one -> one.thread.isAlive())) {
            all.get(random.nextInt(all.size())).thread.interrupt();
            Thread.sleep(random.nextInt(3)); // no wait: at any moment
        }
        Fixture.join(all);
        assertEquals(done.get(), count[0]);
        assertEquals(720, done.get() + interrupted.get());
        assertTrue("some were interrupted", interrupted.get() > 0);
        assertEquals(0, queued(name));
        assertTrue(isFree());
    }

    // ---- loss ----

    @Test
    public void aLossIsSeenByEachCallAndThrownOnce() throws Exception {
        BlockingQueue<Lost> told = new LinkedBlockingQueue<>();
        BrokerLock lock = broker.lock(name);
        lock.lock();
        lock.lock();
        lock.lock();
        Held held = lock.held();
        held.onLost(told::add, Runnable::run);
        Fixture.Running<Long> next = new Fixture.Running<>(() -> {
            try (Held its = broker.lock(name).hold()) {
                return its.token();
            }
        });
        Fixture.waitParked(next.thread);
        assertEquals(1L, operator.ask("FORCEUNLOCK", name));
        assertEquals("forced", told.poll(Fixture.PATIENCE_S, TimeUnit.SECONDS).reason());
        assertTrue("the next thread goes on", next.get() > held.token());
        assertFalse(lock.isHeldByCurrentThread());
        assertEquals(Duration.ZERO, held.validFor());
        assertThrows(Lost.class, held::check);
        assertThrows(Lost.class, lock::lock);
        assertThrows(Lost.class, lock::tryLock);
        assertEquals(3, lock.getHoldCount());
        assertEquals("forced", assertThrows(Lost.class, lock::unlock).reason());
        lock.unlock();
        lock.unlock();
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
        held.onLost(told::add, Runnable::run);
        assertNotNull("who listens later is told at once", told.poll());
        lock.lock();
        lock.unlock();
    }

    @Test
    public void theExceptionOfABlockIsKept() throws Exception {
        Exception thrown = assertThrows(IllegalStateException.class, () -> {
            try (Held held = broker.lock(name).hold()) {
                operator.ask("FORCEUNLOCK", name);
                throw new IllegalStateException("of the block");
            }
        });
        assertEquals("of the block", thrown.getMessage());
        assertTrue(thrown.getSuppressed()[0] instanceof Lost);
        assertThrows(Lost.class, () -> {
            try (Held held = broker.lock(name).hold()) {
                operator.ask("FORCEUNLOCK", name);
            }
        });
    }

    @Test
    public void aLeaseEndsItAndIsRenewed() throws Exception {
        CountDownLatch lost = new CountDownLatch(1);
        BrokerLock lock = broker.lock(name).withLease(Duration.ofHours(1));
        lock.lock();
        Held held = lock.held();
        held.onLost(why -> lost.countDown(), Runnable::run);
        assertTrue(held.validFor().compareTo(Duration.ofHours(1)) <= 0);
        held.renew(Duration.ofMillis(50));
        assertTrue(held.validFor().compareTo(Duration.ofMillis(50)) <= 0);
        assertTrue(lost.await(Fixture.PATIENCE_S, TimeUnit.SECONDS));
        assertEquals("lease", assertThrows(Lost.class, lock::unlock).reason());
        assertThrows(Lost.class, () -> held.renew(Duration.ofHours(1)));
        assertThrows(IllegalArgumentException.class, () -> broker.lock(name).withLease(Duration.ZERO));
    }

    @Test
    public void whoHoldsItIsAskedForIt() throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        try (Held held = broker.lock(name).withData("a job").hold()) {
            held.onRevoke(told::add, Runnable::run);
            assertTrue(broker.ask("HOLDERS", name).toString().contains("a job"));
            operator.ask("REVOKE", name, "please");
            assertEquals("please", told.poll(Fixture.PATIENCE_S, TimeUnit.SECONDS));
            assertFalse(held.validFor().isZero());
        }
    }

    // ---- readers and writers ----

    @Test
    public void readersHoldItTogetherAndAWriterAlone() throws Exception {
        CountDownLatch all = new CountDownLatch(3);
        List<Fixture.Running<Void>> readers = Fixture.start(3, () -> {
            broker.readWriteLock(name).readLock().lock();
            all.countDown();
            all.await();
            assertFalse(broker.readWriteLock(name).writeLock().isHeldByCurrentThread());
            broker.readWriteLock(name).readLock().unlock();
        });
        Fixture.join(readers);
        broker.readWriteLock(name).readLock().lock();
        assertFalse(other.readWriteLock(name).writeLock().tryLock());
        assertTrue(other.readWriteLock(name).readLock().tryLock());
        other.readWriteLock(name).readLock().unlock();
        broker.readWriteLock(name).readLock().unlock();
        broker.lock(name).lock();
        assertFalse(other.readWriteLock(name).readLock().tryLock());
        broker.lock(name).unlock();
    }

    @Test
    public void readersOfOneJvmDoNotPassAWriterOfAnotherProcess() throws Exception {
        broker.readWriteLock(name).readLock().lock();
        Fixture.Running<Void> writer = Fixture.start(() -> other.lock(name).lock());
        waitQueued(1);
        Fixture.start(() -> assertFalse(broker.readWriteLock(name).readLock().tryLock())).get();
        broker.readWriteLock(name).readLock().unlock();
        writer.get();
    }

    @Test
    public void aReaderDoesNotBecomeAWriter() {
        BrokerReadWriteLock lock = broker.readWriteLock(name);
        lock.readLock().lock();
        assertThrows(Deadlock.class, () -> lock.writeLock().lock());
        assertThrows(Deadlock.class, () -> lock.writeLock().tryLock());
        assertThrows(IllegalMonitorStateException.class, () -> lock.writeLock().unlock());
        lock.readLock().unlock();
        assertTrue(isFree());
    }

    @Test
    public void aWriterBecomesAReaderAndTheTokenStays() {
        BrokerReadWriteLock lock = broker.readWriteLock(name);
        long token = lock.writeLock().hold().token();
        lock.readLock().lock();
        assertEquals(token, lock.readLock().held().token());
        assertFalse(other.readWriteLock(name).readLock().tryLock());
        lock.writeLock().unlock();
        assertFalse(lock.writeLock().isHeldByCurrentThread());
        assertTrue(lock.readLock().isHeldByCurrentThread());
        assertEquals(token, lock.readLock().held().token());
        assertTrue(other.readWriteLock(name).readLock().tryLock());
        assertFalse(other.readWriteLock(name).writeLock().isHeldByCurrentThread());
        assertThrows(Deadlock.class, () -> lock.writeLock().lock());
        lock.readLock().unlock();
        other.readWriteLock(name).readLock().unlock();
        assertTrue(isFree());
    }

    // ---- several, semaphores, elections ----

    @Test
    public void severalAtOnceAreAllOrNone() throws Exception {
        String a = name + "/a", b = name + "/b";
        try (Held held = broker.lockAll(b, a).acquire()) {
            assertEquals(List.of(a, b), held.tokens().keySet().stream().sorted().toList());
            assertThrows(IllegalStateException.class, held::token);
            assertFalse(other.lock(a).tryLock());
            assertFalse(other.lock(b).tryLock());
            assertNull(other.lockAll(a, b).tryAcquire());
        }
        other.lock(b).lock();
        assertNull(broker.lockAll(a, b).tryAcquire(Duration.ofMillis(20)));
        assertTrue(other.lock(a).tryLock());
        other.lock(a).unlock();
        other.lock(b).unlock();
        Fixture.join(Fixture.start(8, () -> {
            for (int i = 0; i < 10; i++)
                broker.lockAll(i % 2 == 0 ? a : b, i % 2 == 0 ? b : a).acquire().close();
        }));
    }

    @Test
    public void oneOfSeveralIsTheFirstThatIsFree() throws Exception {
        String[] names = {name + "/a", name + "/b", name + "/c"};
        List<Held> all = new ArrayList<>();
        for (int i = 0; i < 3; i++)
            all.add(broker.lockAny(names).tryAcquire());
        assertEquals(3, all.stream().map(Held::name).distinct().count());
        assertNull(other.lockAny(names).tryAcquire());
        assertNull(other.lockAny(names).tryAcquire(Duration.ofMillis(20)));
        Fixture.Running<Held> waits = new Fixture.Running<>(() -> other.lockAny(names).acquire());
        Fixture.Running<Held> interrupted = new Fixture.Running<>(() -> other.lockAny(names).acquire());
        for (String one : names)
            Fixture.waitUntil(() -> queued(one) == 2, "both to wait for each");
        interrupted.thread.interrupt();
        assertThrows(InterruptedException.class, interrupted::get);
        for (String one : names)
            assertEquals(1, queued(one));
        all.get(1).close();
        Held held = waits.get();
        assertEquals(all.get(1).name(), held.name());
        assertTrue(held.token() > all.get(1).token());
        for (String one : names)
            assertEquals("the others are withdrawn", 0, queued(one));
        held.close();
        assertThrows(IllegalArgumentException.class, () -> broker.lockAny());
        assertEquals("BADNAME", assertThrows(LockBrokerException.class, () -> other.lockAny("..", ".").acquire()).code());
    }

    @Test
    public void oneOfSeveralKeepsNoOtherThatIsGrantedAtTheSameTime() throws Exception {
        String[] names = {name + "/a", name + "/b"};
        for (int i = 0; i < 30; i++) {
            Held one = broker.lock(names[0]).detached().acquire(), two = broker.lock(names[1]).detached().acquire();
            Fixture.Running<Held> waits = new Fixture.Running<>(() -> other.lockAny(names).acquire());
            Fixture.waitUntil(() -> queued(names[0]) == 1 && queued(names[1]) == 1, "the request for both");
            Fixture.Running<Void> released = Fixture.start(one::close);
            two.close();
            released.get();
            Held held = waits.get();
            String left = held.name().equals(names[0]) ? names[1] : names[0];
            broker.lock(left).hold().close();
            held.close();
        }
    }

    @Test
    public void permitsAreShared() throws Exception {
        Held two = broker.semaphore(name, 3, 2).acquire();
        Held one = other.semaphore(name, 3).tryAcquire();
        assertEquals(0, one.token());
        assertNull(other.semaphore(name, 3).tryAcquire());
        LockBrokerException why = assertThrows(LockBrokerException.class, () -> other.semaphore(name, 4).tryAcquire());
        assertEquals("MISMATCH", why.code());
        Fixture.Running<Held> waits = new Fixture.Running<>(() -> other.semaphore(name, 3).detached().acquire());
        waitQueued(1);
        Fixture.start(two::close).get(); // by another thread
        waits.get().close();
        one.close();
    }

    @Test
    public void anObjectHoldsALockForWhicheverThread() throws Exception {
        Held held = broker.lock(name).detached().acquire();
        assertFalse("it is no thread's", broker.lock(name).isHeldByCurrentThread());
        assertFalse(broker.lock(name).tryLock());
        Fixture.start(held::close).get();
        assertTrue(isFree());
        assertThrows(IllegalStateException.class, held::check);
        assertTrue(held.validFor().isZero());
    }

    @Test
    public void everybodyReadsTheDataOfALeader() throws Exception {
        Election election = broker.election(name);
        assertEquals(Optional.empty(), election.leader());
        BlockingQueue<Optional<Leader>> seen = new LinkedBlockingQueue<>();
        try (Closeable watch = other.election(name).observe(seen::add, why -> { }, Runnable::run)) {
            assertEquals(Optional.empty(), seen.poll(Fixture.PATIENCE_S, TimeUnit.SECONDS));
            try (Held leads = election.campaign("http://a")) {
                assertEquals("http://a", seen.poll(Fixture.PATIENCE_S, TimeUnit.SECONDS).get().data());
                Leader leader = other.election(name).leader().get();
                assertEquals(leads.token(), leader.token());
                assertEquals("http://a", leader.data());
                assertNull(other.election(name).tryCampaign("http://b", Duration.ofMillis(5)));
            }
            assertEquals(Optional.empty(), seen.poll(Fixture.PATIENCE_S, TimeUnit.SECONDS));
        }
    }

    /** Notes what it is told. */
    private static final class Notes implements ElectionListener {
        final BlockingQueue<Object> told = new LinkedBlockingQueue<>();

        @Override
        public void elected(Held leadership) {
            told.add(leadership);
        }

        @Override
        public void lost(Lost why) {
            told.add(why.reason());
        }

        @Override
        public void failed(LockBrokerException why) {
            told.add(why);
        }

        Object next() throws InterruptedException {
            return told.poll(Fixture.PATIENCE_S, TimeUnit.SECONDS);
        }
    }

    @Test
    public void aCandidateIsToldAndCampaignsAgainAfterALoss() throws Exception {
        Notes one = new Notes(), two = new Notes();
        ExecutorService executor = java.util.concurrent.Executors.newCachedThreadPool();
        Closeable first = broker.election(name).campaign("one", one, executor);
        Held led = (Held) one.next();
        Closeable second = other.election(name).campaign("two", two, executor);
        waitQueued(1);
        operator.ask("FORCEUNLOCK", name);
        assertEquals("forced", one.next());
        assertTrue(((Held) two.next()).token() > led.token());
        waitQueued(1); // the first one again
        second.close();
        assertTrue(one.next() instanceof Held);
        first.close();
        assertEquals(Optional.empty(), broker.election(name).leader());
        assertTrue(one.told.isEmpty() && two.told.isEmpty());
        broker.lock(name + "/lock").lock();
        Notes three = new Notes();
        broker.election(name + "/lock").campaign("three", three, executor);
        assertEquals("MISMATCH", ((LockBrokerException) three.next()).code());
        executor.shutdown();
    }

    // ---- deadlocks ----

    @Test
    public void threadsThatWaitForEachOtherAreTold() throws Exception {
        CountDownLatch both = new CountDownLatch(2);
        AtomicInteger deadlocks = new AtomicInteger();
        List<Fixture.Running<Void>> all = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            String first = name + "/" + i, second = name + "/" + (1 - i);
            all.add(Fixture.start(() -> {
                try (Held held = broker.lock(first).hold()) {
                    both.countDown();
                    both.await();
                    try (Held inner = broker.lock(second).hold()) {
                        inner.check();
                    } catch (Deadlock e) {
                        deadlocks.incrementAndGet();
                    }
                }
            }));
        }
        Fixture.join(all);
        assertEquals(1, deadlocks.get());
        broker.lock(name + "/0").lock();
        assertThrows(Deadlock.class, () -> broker.lockAll(name + "/0", name + "/1").acquire());
        broker.lock(name + "/0").unlock();
    }

    @Test
    public void aCycleThroughAnotherProcessIsSeen() throws Exception {
        String x = name + "/x", y = name + "/y", z = name + "/z";
        CountDownLatch holds = new CountDownLatch(2);
        Fixture.Running<Void> one = Fixture.start(() -> {
            broker.lock(x).lock();
            holds.countDown();
            holds.await();
            broker.lock(y).lock();
            broker.lock(y).unlock();
            broker.lock(x).unlock();
        });
        broker.lock(z).lock();
        Fixture.Running<Void> two = Fixture.start(() -> {
            other.lock(y).lock();
            holds.countDown();
            other.lock(z).lock();
            other.lock(z).unlock();
            other.lock(y).unlock();
        });
        holds.await();
        Fixture.waitUntil(() -> queued(z) == 1 && queued(y) + (one.thread.isAlive() ? 0 : 1) == 1, "both to wait");
        // A thread of this JVM holds x, but this one may not only stand in the queue of the JVM: it holds z.
        assertThrows(Deadlock.class, () -> broker.lock(x).lock());
        broker.lock(z).unlock();
        one.get();
        two.get();
    }

    @Test
    public void threadsThatOnlyShareAJvmAreNoDeadlock() throws Exception {
        // One holds a and waits for b; the other one holds b and waits for what a third one holds, who waits for nothing.
        String a = name + "/a", b = name + "/b", c = name + "/c";
        broker.lock(c).lock();
        CountDownLatch holds = new CountDownLatch(2);
        Fixture.Running<Void> one = Fixture.start(() -> {
            try (Held held = broker.lock(a).hold()) {
                holds.countDown();
                holds.await();
                broker.lock(b).hold().close();
            }
        });
        Fixture.Running<Void> two = Fixture.start(() -> {
            try (Held held = broker.lock(b).hold()) {
                holds.countDown();
                holds.await();
                broker.lock(c).hold().close();
            }
        });
        Fixture.waitUntil(() -> queued(b) == 1 && queued(c) == 1, "both to wait");
        broker.lock(c).unlock();
        one.get();
        two.get();
    }

    // ---- the rest ----

    @Test
    public void aConditionIsRefused() {
        assertThrows(UnsupportedOperationException.class, () -> broker.lock(name).newCondition());
    }

    @Test
    public void whatTheBrokerRefusesIsItsSentence() {
        LockBrokerException why = assertThrows(LockBrokerException.class, () -> broker.lock("..").lock());
        assertEquals("BADNAME", why.code());
        assertTrue("its trace is this thread's", Arrays.stream(why.getStackTrace()).anyMatch(
                at -> at.getClassName().equals(BrokerTest.class.getName())));
        assertEquals("BADNAME", assertThrows(LockBrokerException.class, () -> broker.lock("").tryLock()).code());
        assertTrue(isFree());
    }

    @Test
    public void connectionsAreUsedAgain() throws Exception {
        for (int i = 0; i < 50; i++)
            broker.lock(name).hold().close();
        Fixture.join(Fixture.start(100, () -> broker.lock(name).hold().close()));
        String list = (String) operator.ask("CLIENT", "LIST");
        long mine = list.lines().filter(line -> line.contains(" owner=java-")).count();
        assertTrue("one lock is one connection, not " + mine, mine <= 3);
    }
}
