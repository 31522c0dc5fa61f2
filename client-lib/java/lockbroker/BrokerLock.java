// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/**
 * A lock of the broker, as java.util.concurrent.locks has them: it belongs to the thread that holds it, who may enter
 * it again. Each time that a thread acquires it anew is one grant of the broker, with a token of its own.
 *
 * <p>Every method that acquires it throws {@link NotAvailable} if the broker is away for longer than the patience, or
 * cannot ask ZooKeeper; {@link Deadlock}; {@link Lost} if this thread holds it and has lost it; and {@link
 * LockBrokerException} for what the broker refuses.
 *
 * <p>A loss is not overlooked: from then on isHeldByCurrentThread() is false, lock() of an inner level throws Lost, and
 * the first unlock() throws Lost; the unlock() of the other levels say nothing, so that none hides that exception.
 */
public final class BrokerLock implements Lock {
    private final LockBroker broker;
    private final Request request;

    BrokerLock(LockBroker broker, Request request) {
        this.broker = broker;
        this.request = request;
    }

    /** The name. */
    public String name() {
        return request.name();
    }

    /** The same lock; acquired by the object that is returned, the broker takes it back after that time. */
    public BrokerLock withLease(Duration lease) {
        return new BrokerLock(broker, request.withLease(lease));
    }

    /** The same lock; the text, 1 to 512 bytes, is shown with the grants of the object that is returned. */
    public BrokerLock withData(String text) {
        return new BrokerLock(broker, request.withData(text));
    }

    /** The same lock, held by an object instead of a thread: any thread may close it, and no thread enters it again. */
    public Acquirable detached() {
        return new Acquirable(broker, request, false);
    }

    // ---- java.util.concurrent.locks.Lock ----

    /**
     * Waits for it without a limit, also through a restart of the broker. An interrupt does not end the wait; the flag
     * is set when this returns.
     */
    @Override
    public void lock() {
        try {
            acquire(Wish.ENDLESS, false);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** An interrupt withdraws the request: nothing stays queued, and nothing is held. */
    @Override
    public void lockInterruptibly() throws InterruptedException {
        acquire(Wish.ENDLESS, true);
    }

    /** False: somebody else holds it, or waits for it. */
    @Override
    public boolean tryLock() {
        try {
            return acquire(0, false);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** False: somebody else held it all that time. An interrupt withdraws the request. */
    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        return acquire(Math.max(0, unit.toNanos(time)), true);
    }

    /**
     * Releases one level; the last one releases the lock, and returns when it has been passed on. Throws Lost, once, if
     * it was not held all the time, and IllegalMonitorStateException if this thread does not hold it.
     */
    @Override
    public void unlock() {
        boolean shared = request.shared();
        Hold hold = mine();
        if (hold == null || hold.levels(shared) == 0)
            throw new IllegalMonitorStateException("this thread does not hold " + request);
        boolean lost = hold.grant.proven() == 0;
        hold.level(shared, -1);
        boolean last = hold.reads + hold.writes == 0;
        if (last)
            broker.ended(hold);
        if (lost) {
            if (hold.told)
                return;
            hold.told = true;
            throw hold.grant.lost();
        }
        if (last) {
            broker.release(hold.grant);
        } else if (hold.writes == 0 && !hold.shared) {
            hold.shared = true;
            downgrade(hold);
        }
    }

    private void downgrade(Hold hold) {
        try {
            broker.downgrade(hold.grant);
        } catch (Lost e) {
            hold.told = true;
            throw e;
        }
    }

    /** There is none: throws UnsupportedOperationException. */
    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException("a lock of the broker has no conditions: wait for data where the data is");
    }

    private boolean acquire(long waitNs, boolean interruptible) throws InterruptedException {
        Hold hold = mine();
        if (hold != null) {
            if (interruptible && Thread.interrupted())
                throw new InterruptedException();
            enterAgain(hold);
            return true;
        }
        Grant grant = broker.ask(request, true, waitNs, interruptible);
        if (grant != null)
            broker.began(new Hold(grant));
        return grant != null;
    }

    private void enterAgain(Hold hold) {
        if (hold.grant.proven() == 0)
            throw hold.grant.lost();
        if (hold.shared && !request.shared())
            throw new Deadlock("This thread holds " + request + " to read, and would wait for itself to write: release the "
                    + "read lock first.");
        hold.level(request.shared(), 1);
    }

    private Hold mine() {
        return broker.held(name());
    }

    // ---- what is held ----

    /** lock(), for try-with-resources: close() is unlock(), by the same thread. */
    public Held hold() {
        lock();
        return held();
    }

    /** tryLock(), for try-with-resources; null: somebody else holds it, or waits for it. */
    public Held tryHold() {
        return tryLock() ? held() : null;
    }

    /** tryLock() with a time, for try-with-resources; null: somebody else held it all that time. */
    public Held tryHold(Duration wait) throws InterruptedException {
        return acquire(Request.milliseconds(wait) * Clock.NS_PER_MS, true) ? held() : null;
    }

    /**
     * What this thread holds: its token, for how long it is proven, and who is told of its loss. close() is unlock().
     * Throws IllegalMonitorStateException if this thread does not hold it.
     */
    public Held held() {
        Hold hold = mine();
        if (hold == null || hold.levels(request.shared()) == 0)
            throw new IllegalMonitorStateException("this thread does not hold " + request);
        return new Held(broker, hold.grant, this::unlock);
    }

    /** Whether it is held now, and proven to be: false after a loss. */
    public boolean isHeldByCurrentThread() {
        Hold hold = mine();
        return hold != null && hold.levels(request.shared()) > 0 && hold.grant.proven() > 0;
    }

    /**
     * The number of levels; 0 if this thread does not hold it. A loss does not change it: each level has its unlock().
     */
    public int getHoldCount() {
        Hold hold = mine();
        return hold == null ? 0 : hold.levels(request.shared());
    }
}
