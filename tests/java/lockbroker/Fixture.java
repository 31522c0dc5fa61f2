// SPDX-License-Identifier: Apache-2.0
package lockbroker;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;

/** What the tests have in common: threads that end with their test, and waits that only a hang exceeds. */
final class Fixture {
    static final long PATIENCE_S = 60;

    /** A thread, and what came of it. */
    static final class Running<T> {
        final Thread thread;
        private final FutureTask<T> task;

        Running(Callable<T> work) {
            task = new FutureTask<>(work);
            thread = new Thread(task);
            thread.setDaemon(true);
            thread.start();
        }

        T get() throws Exception {
            try {
                return task.get(PATIENCE_S, TimeUnit.SECONDS);
            } catch (ExecutionException e) {
                if (e.getCause() instanceof Exception cause)
                    throw cause;
                throw e;
            } catch (TimeoutException e) {
                AssertionError hang = new AssertionError("a thread did not end");
                hang.setStackTrace(thread.getStackTrace());
                throw hang;
            }
        }

        boolean ends(long ms) throws InterruptedException {
            thread.join(ms);
            return !thread.isAlive();
        }
    }

    interface Work {
        void run() throws Exception;
    }

    static Running<Void> start(Work work) {
        return new Running<>(() -> {
            work.run();
            return null;
        });
    }

    static List<Running<Void>> start(int count, Work work) {
        List<Running<Void>> all = new ArrayList<>();
        for (int i = 0; i < count; i++)
            all.add(start(work));
        return all;
    }

    static void join(List<Running<Void>> all) throws Exception {
        for (Running<Void> one : all)
            one.get();
    }

    static void waitUntil(BooleanSupplier condition, String what) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - end > 0)
                throw new AssertionError("gave up waiting for " + what);
            Thread.sleep(2); // as in harness.wait_until(): nothing that is waited for can wake whoever waits
        }
    }

    static void waitParked(Thread thread) throws InterruptedException {
        waitUntil(() -> thread.getState() == Thread.State.TIMED_WAITING, "a thread to park");
    }

    private Fixture() {
    }
}
