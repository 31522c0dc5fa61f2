// SPDX-License-Identifier: Apache-2.0
package lockbroker;

import java.io.Closeable;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.junit.After;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.Timeout;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

/** What a broker does only by order: silence, refusals, answers that cross. */
public class FakeBrokerTest {
    private static final long SHORT_NS = 300 * Clock.NS_PER_MS;

    @Rule public final Timeout limit = Timeout.seconds(2 * Fixture.PATIENCE_S);

    private FakeBroker fake;
    private LockBroker broker;

    @Before
    public void start() throws IOException {
        fake = new FakeBroker();
        broker = LockBroker.open(fake.path);
    }

    @After
    public void end() throws IOException {
        broker.close();
        fake.close();
    }

    /** From now on: what should succeed has all the time that it needs. */
    private void impatient() {
        broker.io.patienceNs = SHORT_NS;
    }

    @Test
    public void unlockAndTheNextLockGoInOneWrite() throws Exception {
        broker.lock("a").lock();
        Fixture.Running<Void> next = Fixture.start(() -> broker.lock("a").hold().close());
        Fixture.waitParked(next.thread);
        fake.answers = (peer, words) -> {
            if (words.get(0).equals("LOCK")) // UNLOCK is answered only when LOCK has come
                return ":0\r\n+OK\r\n:77\r\n";
            long asked = fake.heard.stream().filter(w -> w.startsWith("LOCK")).count();
            return words.get(0).equals("UNLOCK") && asked < 2 || words.get(0).equals("CLIENT") ? "" : null;
        };
        broker.lock("a").unlock();
        next.get();
        String chunk = fake.chunks.stream().filter(text -> text.contains("UNLOCK")).findFirst().orElseThrow();
        assertTrue(chunk, chunk.contains("OWNER") && chunk.indexOf("\r\nLOCK\r\n") > chunk.indexOf("UNLOCK"));
    }

    @Test
    public void aConnectionIsUsedAgain() {
        for (int i = 0; i < 10; i++)
            broker.lock("a").hold().close();
        assertEquals("one for PING, one for the lock", 2, fake.heard.stream().filter("HELLO 3"::equals).count());
    }

    @Test
    public void aBrokerThatIsSilentIsNotAskedForEachOfSeveral() {
        fake.answers = (peer, words) -> words.get(0).equals("LOCK") ? "" : null;
        impatient();
        assertThrows(NotAvailable.class, () -> broker.lockAny("a", "b", "c").tryAcquire());
        assertEquals(1, fake.heard.stream().filter(words -> words.startsWith("LOCK ")).count());
    }

    @Test
    public void whatIsNoEventOrNoLeaderDisturbsNothing() throws Exception {
        fake.answers = (peer, words) -> switch (words.get(0)) {
            case "RENEW" -> ">4\r\n+lost\r\n+a\r\n_\r\n+x\r\n+OK\r\n";
            case "OBSERVE" -> "+OK\r\n>5\r\n+leader\r\n+e\r\n_\r\n+h\r\n+d\r\n>5\r\n+leader\r\n+e\r\n:7\r\n+h\r\n+d\r\n";
            case "LEADER" -> "%1\r\n+host\r\n:1\r\n";
            default -> null;
        };
        try (Held held = broker.lock("a").withLease(Duration.ofHours(1)).hold()) {
            held.renew(Duration.ofHours(1));
        }
        BlockingQueue<Object> told = new LinkedBlockingQueue<>();
        Closeable observation = broker.election("e").observe(told::add, told::add, Runnable::run);
        assertEquals(Optional.of(new Leader("h", "d", 7)), told.poll(Fixture.PATIENCE_S, TimeUnit.SECONDS));
        observation.close();
        assertThrows(LockBrokerException.class, () -> broker.election("e").leader());
    }

    @Test
    public void nothingIsKeptOfAConnectionThatHasEnded() {
        for (int i = 0; i < 10; i++)
            broker.ask("PING");
        Call call = new Call();
        int[] left = {-1};
        broker.io.post(() -> {
            left[0] = broker.io.timers.size();
            call.complete();
        });
        assertTrue(call.await(Fixture.PATIENCE_S * 1000 * Clock.NS_PER_MS));
        assertEquals(0, left[0]);
    }

    @Test
    public void itIsNeverProvenForLongerThanTheAnswerLessTheTimeSince() throws Exception {
        Held held = broker.lock("a").hold();
        Grant grant = broker.held("a").grant;
        fake.answers = (peer, words) -> {
            if (words.get(0).equals("VALID")) {
                Thread.sleep(100); // the way of the answer, which counts
                return ":60000\r\n";
            }
            return null;
        };
        assertTrue(held.validFor().toMillis() <= 59_900);
        Fixture.waitUntil(() -> grant.remaining() <= 59_700 * Clock.NS_PER_MS, "the time to pass");
        held.close();
    }

    @Test
    public void aBrokerThatSaysNothingProvesNothing() throws Exception {
        BlockingQueue<Lost> told = new LinkedBlockingQueue<>();
        fake.answers = (peer, words) -> words.get(0).equals("VALID") ? ":300\r\n" : null;
        Held held = broker.lock("a").hold();
        fake.answers = (peer, words) -> "";
        held.onLost(told::add, Runnable::run);
        assertEquals("unanswered", told.poll(Fixture.PATIENCE_S, TimeUnit.SECONDS).reason());
        assertThrows(Lost.class, held::close);
    }

    @Test
    public void whenOnlyTheProofRanOutItIsLostAsWell() throws Exception {
        fake.answers = (peer, words) -> words.get(0).equals("VALID") ? ":1000\r\n" : null;
        BrokerLock lock = broker.lock("a");
        lock.lock();
        fake.answers = (peer, words) -> "";
        impatient();
        Fixture.waitUntil(() -> !lock.isHeldByCurrentThread(), "the end of the proof");
        assertThrows(Lost.class, lock::lock);
        assertThrows(Lost.class, lock::unlock);
    }

    @Test
    public void anUnlockThatIsNotAnsweredReleasesWhatWasProven() throws Exception {
        BrokerLock lock = broker.lock("a");
        lock.lock();
        BlockingQueue<Lost> told = new LinkedBlockingQueue<>();
        lock.held().onLost(told::add, Runnable::run);
        Grant grant = broker.held("a").grant;
        fake.answers = (peer, words) -> "";
        impatient();
        lock.unlock();
        Fixture.waitUntil(() -> fake.connections() == 0, "the end of the connection");
        Fixture.waitUntil(grant::isReleased, "the release");
        assertTrue(told.isEmpty());
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
    }

    @Test
    public void aGrantThatCrossesTheWithdrawalIsReleased() throws Exception {
        fake.answers = (peer, words) -> words.get(0).equals("LOCK") ? "" : null;
        fake.onHalfClose = ":7\r\n";
        Fixture.Running<Void> waits = Fixture.start(() -> broker.lock("a").lockInterruptibly());
        Fixture.waitUntil(() -> fake.heard.stream().anyMatch(w -> w.startsWith("LOCK")), "the request");
        waits.thread.interrupt();
        assertThrows(InterruptedException.class, waits::get);
        assertEquals("the connection that had the grant has ended", 0, fake.connections());
        fake.answers = (peer, words) -> null;
        broker.lock("a").hold().close();
    }

    @Test
    public void anInterruptIsNotHeldUpByABrokerThatIsSilent() throws Exception {
        fake.answers = (peer, words) -> {
            if (words.get(0).equals("LOCK"))
                Thread.sleep(100 * Fixture.PATIENCE_S * 1000); // it is silent
            return null;
        };
        Fixture.Running<Void> waits = Fixture.start(() -> broker.lock("a").lockInterruptibly());
        Fixture.waitUntil(() -> fake.heard.stream().anyMatch(w -> w.startsWith("LOCK")), "the request");
        waits.thread.interrupt();
        assertThrows(InterruptedException.class, waits::get);
    }

    @Test
    public void lockWaitsThroughARestartAndWhatWasHeldIsLost() throws Exception {
        BrokerLock held = broker.lock("held");
        held.lock();
        fake.answers = (peer, words) -> words.get(0).equals("LOCK") ? "" : null;
        Fixture.Running<Void> waits = Fixture.start(() -> broker.lock("a").hold().close());
        Fixture.waitUntil(() -> fake.heard.contains("LOCK a"), "the request");
        fake.stop();
        Fixture.waitUntil(() -> !held.isHeldByCurrentThread(), "the loss");
        assertEquals("connection", assertThrows(Lost.class, held::unlock).reason());
        assertFalse(waits.ends(50));
        fake.answers = (peer, words) -> null;
        fake.start();
        waits.get();
        held.hold().close();
    }

    @Test
    public void anOutageIsNotAvailableAndNeverFalse() throws Exception {
        fake.stop();
        impatient();
        assertThrows(NotAvailable.class, () -> broker.lock("a").tryLock());
        assertThrows(NotAvailable.class, () -> broker.lock("a").tryLock(1, TimeUnit.SECONDS));
        assertThrows(NotAvailable.class, () -> broker.lock("a").lock());
        assertThrows(NotAvailable.class, () -> broker.ask("PING"));
        assertThrows(NotAvailable.class, () -> LockBroker.open(fake.path, Duration.ofMillis(300)));
        assertThrows(NotAvailable.class, () -> LockBroker.open(fake.path + ".none"));
        broker.io.patienceNs = Fixture.PATIENCE_S * 1000 * Clock.NS_PER_MS;
        fake.start();
        broker.lock("a").hold().close();
        fake.answers = (peer, words) -> words.get(0).equals("LOCK") ? "-UNAVAILABLE no connection to ZooKeeper\r\n" : null;
        assertEquals("UNAVAILABLE", assertThrows(NotAvailable.class, () -> broker.lock("a").tryLock()).code());
    }

    @Test
    public void theQueueOfTheJvmSaysFalseOnlyIfAThreadOfTheJvmHoldsTheLock() throws Exception {
        AtomicInteger asked = new AtomicInteger();
        fake.answers = (peer, words) -> !words.get(0).equals("LOCK") ? null
                : asked.getAndIncrement() == 0 ? "" : "-UNAVAILABLE no connection to ZooKeeper\r\n";
        Fixture.Running<Void> active = Fixture.start(() -> broker.lock("a").lock());
        Fixture.waitUntil(() -> asked.get() == 1, "the active one to ask");
        assertThrows(NotAvailable.class, () -> broker.lock("a").tryLock());
        assertThrows(NotAvailable.class, () -> broker.lock("a").tryLock(10, TimeUnit.MILLISECONDS));
        broker.close();
        assertThrows(NotAvailable.class, active::get);
    }

    @Test
    public void allWhoWaitForABrokerThatIsAwayHaveThePatienceOfOne() throws Exception {
        fake.stop();
        impatient();
        // One after the other, they would have more patience than this test.
        Fixture.join(Fixture.start(1000, () -> assertThrows(NotAvailable.class, () -> broker.lock("a").lock())));
    }

    @Test
    public void aLeaseOfOneWhoWaitedBeginsWithTheGrant() throws Exception {
        fake.answers = (peer, words) -> {
            if (words.get(0).equals("LOCK"))
                Thread.sleep(2100); // it waits for the lock
            return words.get(0).equals("RENEW") ? ":1\r\n" : null;
        };
        try (Held held = broker.lock("a").withLease(Duration.ofSeconds(30)).hold()) {
            assertTrue(held.validFor().toMillis() <= 30_000);
        }
        assertEquals(List.of("LOCK a LEASE 30000", "RENEW a 30000"), fake.heard.stream()
                .filter(w -> w.startsWith("LOCK") || w.startsWith("RENEW")).toList());
    }

    @Test
    public void aBrokerThatDrainsIsWaitedForWithinThePatience() throws Exception {
        AtomicInteger refused = new AtomicInteger();
        fake.answers = (peer, words) -> words.get(0).equals("LOCK") && refused.incrementAndGet() < 3
                ? "-DRAINING operators drain it\r\n" : null;
        broker.lock("a").hold().close();
        assertEquals(3, refused.get());
        fake.answers = (peer, words) -> words.get(0).equals("LOCK") ? "-DRAINING operators drain it\r\n" : null;
        assertEquals("DRAINING", assertThrows(NotAvailable.class, () -> broker.lock("a").tryLock()).code());
        broker.io.patienceNs = 3000 * Clock.NS_PER_MS;
        assertEquals("DRAINING", assertThrows(NotAvailable.class, () -> broker.lock("a").lock()).code());
    }

    @Test
    public void aRequestThatIsNotAnsweredInTimeIsNotAvailable() throws Exception {
        fake.answers = (peer, words) -> words.get(0).equals("LOCK") ? "" : null;
        impatient();
        assertThrows(NotAvailable.class, () -> broker.lock("a").tryLock(10, TimeUnit.MILLISECONDS));
        Fixture.waitUntil(() -> fake.connections() == 0, "the end of the connection");
        fake.answers = (peer, words) -> "";
        assertThrows(NotAvailable.class, () -> broker.lock("a").lock());
    }

    @Test
    public void aGreetingThatRefusesIsTheReason() throws Exception {
        fake.answers = (peer, words) -> {
            peer.say("-LIMIT too many clients\r\n");
            peer.channel.close();
            return "";
        };
        fake.stop();
        fake.start();
        assertEquals("LIMIT", assertThrows(LockBrokerException.class, () -> broker.lock("a").lock()).code());
        fake.answers = (peer, words) -> "HTTP/1.1 400 Bad Request\r\n";
        assertEquals("ERR", assertThrows(LockBrokerException.class, () -> broker.lock("a").lock()).code());
        fake.answers = (peer, words) -> "+OK\r\n";
        assertEquals("ERR", assertThrows(LockBrokerException.class, () -> broker.lock("a").lock()).code());
    }

    @Test
    public void anAnswerThatIsNoTokenIsNoGrant() throws Exception {
        fake.answers = (peer, words) -> words.get(0).equals("LOCK") ? "+OK\r\n" : null;
        assertEquals("ERR", assertThrows(LockBrokerException.class, () -> broker.lock("a").lock()).code());
        fake.answers = (peer, words) -> words.get(0).equals("MLOCK") ? "*1\r\n:1\r\n" : null;
        assertEquals("ERR", assertThrows(LockBrokerException.class, () -> broker.lockAll("a", "b").acquire()).code());
    }

    @Test
    public void anInterruptOfTheIoThreadDoesNotDisturbIt() throws Exception {
        Held held = broker.lock("a").hold();
        for (Thread thread : Thread.getAllStackTraces().keySet())
            if (thread.getName().equals("lockbroker-io")) {
                thread.interrupt();
                Fixture.waitUntil(() -> !thread.isInterrupted(), "it to sleep again, as one that is interrupted could not");
            }
        broker.lock("b").hold().close();
        held.check();
        held.close();
    }

    @Test
    public void aWaitThatAnOperatorEndsIsNoGrant() throws Exception {
        fake.answers = (peer, words) -> words.get(0).equals("LOCK") ? "_\r\n" : null;
        assertEquals("UNBLOCKED", assertThrows(LockBrokerException.class, () -> broker.lock("a").lock()).code());
    }

    @Test
    public void aLossOfAnEarlierGrantIsNotOfThisOne() throws Exception {
        BrokerLock lock = broker.lock("a");
        lock.hold().close();
        AtomicInteger asked = new AtomicInteger();
        fake.answers = (peer, words) -> {
            if (words.get(0).equals("LOCK") && asked.getAndIncrement() == 0)
                return "-LOST of before\r\n";
            return words.get(0).equals("LOCK") ? ":9\r\n>4\r\n$4\r\nlost\r\n$1\r\na\r\n:1\r\n$7\r\ndeleted\r\n" : null;
        };
        lock.lock();
        assertEquals(9, lock.held().token());
        assertTrue(lock.isHeldByCurrentThread());
        lock.unlock();
        assertEquals(2, asked.get());
    }

    @Test
    public void anUnlockThatFindsALossThrows() throws Exception {
        fake.answers = (peer, words) -> words.get(0).equals("UNLOCK") ? "-LOST the session was lost\r\n" : null;
        BrokerLock lock = broker.lock("a");
        lock.lock();
        assertThrows(Lost.class, lock::unlock);
        fake.answers = (peer, words) -> null;
        lock.hold().close();
    }
}
