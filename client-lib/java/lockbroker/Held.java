// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.io.Closeable;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * A grant: what is held now. At the end of its try block it is released. That throws Lost if it was not held all the
 * time; what the block itself throws goes on, with the Lost among its suppressed exceptions.
 */
public final class Held implements Closeable {
    private final LockBroker broker;
    private final Grant grant;
    private final Runnable release;
    private final AtomicBoolean closed = new AtomicBoolean();

    Held(LockBroker broker, Grant grant, Runnable release) {
        this.broker = broker;
        this.grant = grant;
        this.release = release;
    }

    /** The name; of several locks, all with commas between them. */
    public String name() {
        return grant.request.name();
    }

    /**
     * The fencing token: larger than that of every earlier grant that conflicts. 0: permits have none. Of several
     * locks, see tokens().
     */
    public long token() {
        if (grant.tokens.size() > 1)
            throw new IllegalStateException("several locks have a token each, see tokens(): " + name());
        return grant.tokens.getOrDefault(name(), 0L);
    }

    /** The fencing tokens by the names of the locks; permits have none. */
    public Map<String, Long> tokens() {
        return Map.copyOf(grant.tokens);
    }

    /**
     * For how long from now it is proven to be safe, or the rest of its lease if that is less. Zero: it is void, was
     * released, or is not proven any longer. About 292 years: it cannot run out (standalone, no lease). Where the
     * broker's session page can be read this waits for nobody, and is right also while the broker hangs; elsewhere it
     * asks the broker, and waits at most for the patience.
     */
    public Duration validFor() {
        return Duration.ofNanos(grant.valid());
    }

    /** Throws Lost unless validFor() is above zero, and IllegalStateException if it was released. */
    public void check() {
        if (grant.valid() > 0)
            return;
        if (grant.lostReason() == null && grant.isReleased())
            throw new IllegalStateException("it was released already: " + name());
        grant.proven();
        if (grant.lostReason() != null)
            throw grant.lost();
    }

    /**
     * The executor runs it when the grant is lost, at once if it was lost before. What it runs has to stop the work.
     */
    public void onLost(Consumer<Lost> listener, Executor executor) {
        grant.onLost(listener, executor);
    }

    /**
     * The executor runs it, with the reason, when somebody asks for the lock back: release it when you can. Nothing is
     * taken.
     */
    public void onRevoke(Consumer<String> listener, Executor executor) {
        grant.onRevoke(listener, executor);
    }

    /** Restarts the lease: it ends that time from now. Throws Lost. */
    public void renew(Duration lease) {
        broker.renew(grant, lease);
    }

    /**
     * Releases it, and returns when it has been passed on. Throws Lost if it was not held all the time. The second
     * time, nothing.
     */
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true))
            return;
        try {
            release.run();
        } catch (IllegalMonitorStateException e) { // another thread's
            closed.set(false);
            throw e;
        }
    }

    @Override
    public String toString() {
        String state = grant.lostReason() != null ? "lost: " + grant.lostReason() : grant.isReleased() ? "released"
                : "tokens " + grant.tokens;
        return "Held of " + grant.request + ", " + state;
    }
}
