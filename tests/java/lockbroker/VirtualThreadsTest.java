// SPDX-License-Identifier: Apache-2.0
package lockbroker;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

import org.junit.Test;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

/** With a JDK that has virtual threads, from 21 on, and -Djdk.virtualThreadScheduler.maxPoolSize=1: one carrier for all. */
public class VirtualThreadsTest {
    private static final int THREADS = 10_000;

    @Test
    public void thoseThatWaitLeaveTheirCarrier() throws Exception {
        assertEquals("1", System.getProperty("jdk.virtualThreadScheduler.maxPoolSize"));
        Object made = Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        ExecutorService virtual = (ExecutorService) made;
        int[] count = {0};
        CountDownLatch others = new CountDownLatch(1);
        try (LockBroker broker = LockBroker.open()) {
            broker.lock("virtual").lock();
            for (int i = 0; i < THREADS; i++)
                virtual.execute(() -> {
                    broker.lock("virtual").lock();
                    count[0]++;
                    broker.readWriteLock("virtual/readers").readLock().hold().close();
                    broker.lock("virtual").unlock();
                });
            virtual.execute(others::countDown);
            assertTrue("another one runs while all wait", others.await(Fixture.PATIENCE_S, TimeUnit.SECONDS));
            broker.lock("virtual").unlock();
            virtual.shutdown();
            assertTrue(virtual.awaitTermination(2 * Fixture.PATIENCE_S, TimeUnit.SECONDS));
            assertEquals(THREADS, count[0]);
        }
    }
}
