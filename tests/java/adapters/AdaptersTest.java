// SPDX-License-Identifier: Apache-2.0
package adapters;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.locks.Lock;

import lockbroker.LockBroker;
import lockbroker.Lost;
import lockbroker.shedlock.LockBrokerLockProvider;
import lockbroker.spring.LockBrokerLockRegistry;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

/** The adapters, with declarations in place of the originals, and the broker of $LOCKBROKER_SOCKET. */
public class AdaptersTest {
    private LockBroker broker, other;
    private LockProvider here, there;

    @Before
    public void open() {
        broker = LockBroker.open();
        other = LockBroker.open();
        here = new LockBrokerLockProvider(broker, "jobs/");
        there = new LockBrokerLockProvider(other, "jobs/");
    }

    @After
    public void close() {
        broker.close();
        other.close();
    }

    private static LockConfiguration job(String name, long mostMs, long leastMs) {
        return new LockConfiguration(Instant.now(), name, Duration.ofMillis(mostMs), Duration.ofMillis(leastMs));
    }

    private boolean runs(String name) {
        Optional<SimpleLock> lock = there.lock(job(name, 60_000, 0));
        lock.ifPresent(SimpleLock::unlock);
        return lock.isPresent();
    }

    private void waitUntilItRuns(String name) throws InterruptedException {
        for (int i = 0; i < 600 && !runs(name); i++)
            Thread.sleep(100); // a pace: who asks is told nothing when a job may run
        assertTrue(runs(name));
    }

    @Test
    public void aJobRunsOnceAtATime() throws Exception {
        SimpleLock lock = here.lock(job("once", 60_000, 0)).get();
        assertFalse(runs("once"));
        assertFalse("nor in the same thread", here.lock(job("once", 60_000, 0)).isPresent());
        Thread thread = new Thread(lock::unlock);
        thread.start();
        thread.join();
        assertTrue(runs("once"));
    }

    @Test
    public void theEndOfAProcessFreesTheJobAtOnce() throws Exception {
        here.lock(job("killed", 3_600_000, 0)).get();
        assertFalse(runs("killed"));
        broker.close();
        waitUntilItRuns("killed");
    }

    @Test
    public void atLeastSoLongItDoesNotRunAgainEvenIfItsProcessEnds() throws Exception {
        here.lock(job("least", 60_000, 1500)).get().unlock();
        assertFalse(runs("least"));
        broker.close();
        assertFalse(runs("least"));
        assertFalse(there.lock(job("least", 60_000, 100)).isPresent());
        waitUntilItRuns("least");
    }

    @Test
    public void atMostSoLongItIsHeldAndCanBeExtended() throws Exception {
        SimpleLock lock = here.lock(job("most", 60_000, 0)).get();
        lock = lock.extend(Duration.ofMillis(300), Duration.ofMillis(1)).get();
        waitUntilItRuns("most");
        assertFalse(lock.extend(Duration.ofMillis(300), Duration.ZERO).isPresent());
        assertThrows(Lost.class, lock::unlock);
        lock = here.lock(job("most", 60_000, 0)).get();
        lock.extend(Duration.ofMinutes(2), Duration.ofMinutes(1)).get().unlock();
        assertFalse(runs("most"));
        assertEquals(1L, other.ask("EXISTS", "jobs/most/at-least"));
    }

    @Test
    public void aRegistryHasALockForEachKey() {
        Lock lock = new LockBrokerLockRegistry(broker, "integration/").obtain(42);
        lock.lock();
        assertTrue(broker.lock("integration/42").isHeldByCurrentThread());
        assertTrue("it is the same lock", new LockBrokerLockRegistry(broker, "integration/").obtain(42).tryLock());
        lock.unlock();
        lock.unlock();
        assertFalse(broker.lock("integration/42").isHeldByCurrentThread());
    }
}
