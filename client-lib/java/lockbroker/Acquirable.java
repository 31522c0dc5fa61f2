// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.time.Duration;

/**
 * What is held by an object, on a connection of its own: several locks at once, permits, or a lock of no thread. Each
 * acquire() is another holder, and any thread may close what it returns.
 */
public final class Acquirable {
    private final LockBroker broker;
    private final Request request;
    private final boolean grouped;

    Acquirable(LockBroker broker, Request request, boolean grouped) {
        this.broker = broker;
        this.request = request;
        this.grouped = grouped;
    }

    /** The same; the broker takes what is acquired by the object that is returned back after that time. */
    public Acquirable withLease(Duration lease) {
        return new Acquirable(broker, request.withLease(lease), grouped);
    }

    /**
     * The same, as of no thread. Otherwise what a thread has acquired counts as the thread's until it is closed, where
     * the broker looks for deadlocks: with this, one thread may acquire it and another one release it.
     */
    public Acquirable detached() {
        return new Acquirable(broker, request, false);
    }

    /**
     * Waits without a limit. An interrupt withdraws the request. Throws what the methods of {@link BrokerLock} throw.
     */
    public Held acquire() throws InterruptedException {
        return acquire(Ask.ENDLESS);
    }

    /** Null: somebody else holds it, or waits for it. */
    public Held tryAcquire() throws InterruptedException {
        return acquire(0);
    }

    /** Null: somebody else held it all that time. */
    public Held tryAcquire(Duration wait) throws InterruptedException {
        return acquire(Request.milliseconds(wait) * Clock.NS_PER_MS);
    }

    private Held acquire(long waitNs) throws InterruptedException {
        Grant grant = broker.ask(request, grouped, waitNs, true);
        return grant == null ? null : held(broker, grant, grouped ? Thread.currentThread() : null);
    }

    /** It counts as that thread's, which may be null, until it is closed. */
    static Held held(LockBroker broker, Grant grant, Thread owner) {
        if (owner != null)
            broker.began(owner);
        return new Held(broker, grant, () -> {
            if (owner != null)
                broker.ended(owner);
            broker.release(grant);
        });
    }
}
