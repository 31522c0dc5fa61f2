// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/**
 * What is held by an object, on a connection of its own: several locks at once, permits, or a lock of no thread. Each
 * acquire() is another holder, and any thread may close what it returns.
 */
public final class Acquirable {
    private final LockBroker broker;
    /** One of them, if there are several. */
    private final List<Request> requests;
    private final boolean grouped;

    Acquirable(LockBroker broker, List<Request> requests, boolean grouped) {
        this.broker = broker;
        this.requests = requests;
        this.grouped = grouped;
    }

    Acquirable(LockBroker broker, Request request, boolean grouped) {
        this(broker, List.of(request), grouped);
    }

    /** The same; the broker takes what is acquired by the object that is returned back after that time. */
    public Acquirable withLease(Duration lease) {
        return new Acquirable(broker, requests.stream().map(request -> request.withLease(lease)).toList(), grouped);
    }

    /**
     * The same, as of no thread. Otherwise what a thread has acquired counts as the thread's until it is closed, where
     * the broker looks for deadlocks: with this, one thread may acquire it and another one release it.
     */
    public Acquirable detached() {
        return new Acquirable(broker, requests, false);
    }

    /**
     * Waits without a limit. An interrupt withdraws the request. Throws what the methods of {@link BrokerLock} throw.
     */
    public Held acquire() throws InterruptedException {
        return acquire(Wish.ENDLESS);
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
        Grant grant = requests.size() == 1 ? broker.ask(requests.get(0), grouped, waitNs, true) : any(waitNs);
        return grant == null ? null : held(broker, grant, grouped ? Thread.currentThread() : null);
    }

    /** First each of them without waiting, from any of them on, so that not all begin with the same. */
    private Grant any(long waitNs) throws InterruptedException {
        List<Request> those = new ArrayList<>(requests);
        Collections.rotate(those, ThreadLocalRandom.current().nextInt(those.size()));
        LockBrokerException unknown = null;
        for (Request request : those) {
            try {
                Grant grant = broker.ask(request, false, 0, true);
                if (grant != null)
                    return grant;
            } catch (NotAvailable e) {
                if (!e.code().equals("UNAVAILABLE") && !e.code().equals("DRAINING"))
                    throw e; // it concerns all the names, and each of them would wait for the whole patience
                unknown = e;
            }
        }
        if (waitNs == 0 && unknown != null)
            throw unknown;
        return waitNs == 0 ? null : new AnyOf(broker.io, those, waitNs).await(true);
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
