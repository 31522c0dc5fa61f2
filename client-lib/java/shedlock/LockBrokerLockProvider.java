// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker.shedlock;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.UUID;

import lockbroker.BrokerLock;
import lockbroker.Held;
import lockbroker.LockBroker;
import lockbroker.Lost;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;

/**
 * ShedLock's LockProvider over lockbrokerd, to be copied. A job's lock ends with the process that runs the job, and at
 * lockAtMostFor at the latest. lockAtLeastFor is a second lock, NAME/at-least, under a value: it lasts until its time
 * even if the process ends.
 */
public final class LockBrokerLockProvider implements ExtensibleLockProvider {
    private final LockBroker broker;
    private final String prefix;

    /** The prefix stands before the name of each job: "jobs/". */
    public LockBrokerLockProvider(LockBroker broker, String prefix) {
        this.broker = broker;
        this.prefix = prefix;
    }

    /**
     * Empty: another one runs the job, or has run it a moment ago. Throws NotAvailable: nobody knows, so the job does
     * not run.
     */
    @Override
    public Optional<SimpleLock> lock(LockConfiguration job) {
        String name = prefix + job.getName(), least = name + "/at-least", value = UUID.randomUUID().toString();
        BrokerLock lock = broker.lock(name).withLease(atLeastOneMs(job.getLockAtMostUntil()));
        Held held = null;
        try {
            held = lock.detached().tryAcquire();
            if (held == null || !last(least, value, job.getLockAtLeastUntil())) {
                close(held);
                return Optional.empty();
            }
            return Optional.of(new Job(held, least, value));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Optional.empty();
        } catch (RuntimeException e) {
            close(held);
            throw e;
        }
    }

    private static void close(Held held) {
        if (held != null)
            held.close();
    }

    private static Duration atLeastOneMs(Instant until) {
        Duration left = Duration.between(Instant.now(), until);
        return left.compareTo(Duration.ofMillis(1)) > 0 ? left : Duration.ofMillis(1);
    }

    /** False: an earlier run has not lasted for its lockAtLeastFor yet. */
    private boolean last(String least, String value, Instant until) {
        if (!until.isAfter(Instant.now()))
            return !broker.ask("EXISTS", least).equals(1L);
        return broker.ask("SET", least, value, "NX", "PX", Long.toString(atLeastOneMs(until).toMillis())) != null;
    }

    /** A run of a job. */
    private final class Job implements SimpleLock {
        private final Held held;
        private final String least, value;

        Job(Held held, String least, String value) {
            this.held = held;
            this.least = least;
            this.value = value;
        }

        /** Throws Lost if another one may have run the job meanwhile. */
        @Override
        public void unlock() {
            held.close();
        }

        @Override
        public Optional<SimpleLock> extend(Duration lockAtMostFor, Duration lockAtLeastFor) {
            try {
                held.renew(lockAtMostFor);
            } catch (Lost e) {
                return Optional.empty();
            }
            if (!lockAtLeastFor.isZero()) {
                String ms = Long.toString(Math.max(1, lockAtLeastFor.toMillis()));
                if (broker.ask("SET", least, value, "XX", "PX", ms) == null)
                    broker.ask("SET", least, value, "NX", "PX", ms);
            }
            return Optional.of(this);
        }
    }
}
