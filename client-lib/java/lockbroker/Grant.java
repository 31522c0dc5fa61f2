// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * What one connection holds, and for how long that is proven. A loss is final: once any thread has seen it, remaining()
 * is 0, whatever is read later.
 */
final class Grant {
    private static final long LOOK_NS = 200 * Clock.NS_PER_MS, LOOK_MIN_NS = 10 * Clock.NS_PER_MS;
    // Without a proof, a broker that does not answer for so long proves nothing.
    private static final long SILENT_NS = 1000 * Clock.NS_PER_MS;
    // By the clock of the broker a lease may have ended a moment ago.
    private static final long LEASE_GRAIN_NS = 50 * Clock.NS_PER_MS;
    private static final long UNKNOWN = -1;

    final Request request;
    final Map<String, Long> tokens;
    final Connection connection;
    final Ask ask;

    private final AtomicReference<String> lost = new AtomicReference<>();
    private final ReentrantLock listening = new ReentrantLock();
    private final List<Runnable> onLost = new ArrayList<>(0), onRevoke = new ArrayList<>(0);
    private volatile String revoked;
    private volatile boolean released;
    private volatile Page page;
    private volatile long epoch = UNKNOWN;
    private volatile long leaseUntil = Clock.FOREVER;
    // Without a page: what the broker said. An instant of Clock, and since when a question is not answered.
    private volatile long askedUntil;
    private volatile long askedAt;

    Grant(Ask ask, Map<String, Long> tokens, Connection connection) {
        this.ask = ask;
        request = ask.request;
        this.tokens = tokens;
        this.connection = connection;
        page = connection.page;
        Page.View view = page == null ? null : page.read();
        if (view != null && !view.moved())
            epoch = view.epoch();
    }

    // ---- loss ----

    String lostReason() {
        return lost.get();
    }

    Lost lost() {
        String reason = lost.get();
        return new Lost(reason, "The grant of " + request + " is void (" + reason + "): others may hold it.");
    }

    /** Any thread. */
    void lose(String reason) {
        if (released || !lost.compareAndSet(null, reason))
            return;
        connection.io.post(() -> connection.lost(this));
        tell(onLost);
    }

    /** It was released, and is lost no longer. */
    void released() {
        released = true;
    }

    boolean isReleased() {
        return released;
    }

    void revoke(String reason) {
        if (revoked == null) {
            revoked = reason;
            tell(onRevoke);
        }
    }

    void onLost(Consumer<Lost> listener, Executor executor) {
        listen(onLost, () -> executor.execute(() -> listener.accept(lost())), () -> lost.get() != null);
    }

    void onRevoke(Consumer<String> listener, Executor executor) {
        listen(onRevoke, () -> executor.execute(() -> listener.accept(revoked)), () -> revoked != null);
    }

    private void listen(List<Runnable> listeners, Runnable listener, java.util.function.BooleanSupplier happened) {
        listening.lock();
        try {
            listeners.add(listener);
        } finally {
            listening.unlock();
        }
        if (happened.getAsBoolean())
            tell(listeners);
    }

    /** Each once. */
    private void tell(List<Runnable> listeners) {
        List<Runnable> told;
        listening.lock();
        try {
            told = List.copyOf(listeners);
            listeners.clear();
        } finally {
            listening.unlock();
        }
        told.forEach(Io::guarded);
    }

    // ---- for how long it is proven ----

    void leased(long until) {
        leaseUntil = until;
    }

    /** Until when the session is proven; 0: it was lost. */
    private long provenUntil() {
        Page its = page;
        if (its == null)
            return askedUntil;
        Page.View view = its.read();
        if (epoch == UNKNOWN && !view.moved())
            epoch = view.epoch();
        return !view.proven() || epoch != UNKNOWN && epoch != view.epoch() ? 0 : view.safeUntil();
    }

    /** The page cannot tell, or will not for long: there is none, or it has moved. */
    boolean mustAsk() {
        Page its = page;
        if (released || lost.get() != null)
            return false;
        return its == null || its.read().proven() && (its.read().moved() || epoch == UNKNOWN);
    }

    /** Nanoseconds; 0: it is void, or not proven. What can only be void is lost from now on. */
    long remaining() {
        if (released || lost.get() != null)
            return 0;
        long proof = provenUntil();
        long now = Clock.now(); // after the page: a process that stands still in between must not believe what was then
        if (leaseUntil - now <= 0 && leaseUntil != Clock.FOREVER)
            lose("lease");
        else if (proof - now <= 0 && !mustAsk())
            lose("session");
        long until = Math.min(proof, leaseUntil);
        return lost.get() != null ? 0 : until == Clock.FOREVER ? Clock.FOREVER : Math.max(0, until - now);
    }

    /** remaining(), after the broker was asked if only it can know. What is still not proven then is lost. */
    long proven() {
        long left = remaining();
        return left > 0 || lost.get() != null || released ? left : ask();
    }

    /** For how long it is proven, as the broker says it now if the page cannot. */
    long valid() {
        if (!mustAsk())
            return remaining();
        if (page == null || remaining() == 0)
            return ask();
        connection.io.post(() -> connection.question(this, new Call()));
        return remaining();
    }

    private long ask() {
        Call call = new Call();
        connection.io.post(() -> connection.question(this, call));
        boolean answered = call.await(connection.io.patienceNs);
        long left = remaining();
        if (left == 0)
            lose(answered ? "session" : "unanswered");
        return left;
    }

    // ---- by the I/O thread ----

    boolean hasPage() {
        return page != null;
    }

    boolean isAsked() {
        return askedAt != 0;
    }

    void asked() {
        if (askedAt == 0)
            askedAt = System.nanoTime() | 1;
    }

    void takePage(Page found) {
        askedAt = 0;
        page = found;
    }

    /** The broker's answer to a question of that instant of Clock. */
    void takeProof(long sent, long ms) {
        askedAt = 0;
        if (ms == 0)
            lose(leaseUntil != Clock.FOREVER && leaseUntil - Clock.now() < LEASE_GRAIN_NS ? "lease" : "session");
        else
            askedUntil = ms >= Clock.FOREVER / Clock.NS_PER_MS ? Clock.FOREVER : sent + ms * Clock.NS_PER_MS;
    }

    /**
     * Sees what ran out; nanoseconds until the next look. A broker that was asked and is silent until the proof has run
     * out can prove nothing: that is a loss.
     */
    long look() {
        long left = remaining();
        if (left == 0 && askedAt != 0 && System.nanoTime() - askedAt >= SILENT_NS)
            lose("unanswered");
        if (released || lost.get() != null || left == Clock.FOREVER)
            return Clock.FOREVER;
        return Math.max(left > LOOK_NS ? left / 2 : left, LOOK_MIN_NS);
    }
}
