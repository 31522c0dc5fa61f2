// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;

/** The I/O thread of one LockBroker, and all that only it may touch. Other threads call post(), and nothing else. */
final class Io implements Runnable {
    private static final int READ_BYTES = 64 * 1024;
    // Where there is one processor, whoever answers waits for this thread. To yield would forfeit a whole time slice.
    private static final long SPIN_MAX_NS = Runtime.getRuntime().availableProcessors() > 1 ? 64_000 : 0;
    private static final int TASKS_A_TURN = 1024;
    private static final long LOOK_SOON_NS = 10 * Clock.NS_PER_MS;
    private static final System.Logger LOG = System.getLogger("lockbroker");

    record Timer(long at, Runnable task) implements Comparable<Timer> {
        @Override
        public int compareTo(Timer other) {
            return Long.compare(at - other.at, 0);
        }
    }

    final String path;
    /** For an answer that should come at once, and for a broker that is away. */
    volatile long patienceNs;
    final Pool pool;

    private final Selector selector;
    private final Thread thread;
    private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
    private final AtomicBoolean woken = new AtomicBoolean();
    private final ReentrantLock after = new ReentrantLock();
    private volatile boolean ended;

    final PriorityQueue<Timer> timers = new PriorityQueue<>();
    private final Set<Connection> connections = new LinkedHashSet<>();
    private final List<Connection> toFlush = new ArrayList<>();
    private final List<Call> toComplete = new ArrayList<>();
    private final Set<Grant> holders = new LinkedHashSet<>();
    private final Map<String, Tier> tiers = new HashMap<>();
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(READ_BYTES);
    private Page page;
    private boolean closing;
    private long spinNs;
    private boolean looks;
    private long lookAt;

    Io(String path, long patienceNs, long openNs) {
        this.path = path;
        this.patienceNs = patienceNs;
        pool = new Pool(this, openNs);
        try {
            selector = Selector.open();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        thread = new Thread(this, "lockbroker-io");
        thread.setDaemon(true);
        thread.start();
    }

    // ---- for any thread ----

    /** Has the I/O thread do that; after its end, whoever comes, one after the other. */
    void post(Runnable task) {
        tasks.add(task);
        if (ended)
            runLeft();
        else if (Thread.currentThread() != thread && !woken.get() && woken.compareAndSet(false, true))
            selector.wakeup();
    }

    private void runLeft() {
        after.lock();
        try {
            for (Runnable task = tasks.poll(); task != null; task = tasks.poll())
                guarded(task);
        } finally {
            after.unlock();
        }
    }

    /** Releases everything. */
    void shutDown() {
        Call call = new Call();
        post(() -> {
            close();
            call.complete();
        });
        if (Thread.currentThread() != thread)
            call.await(patienceNs);
    }

    static void guarded(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException e) {
            complain(e);
        }
    }

    static void complain(Throwable e) {
        LOG.log(System.Logger.Level.WARNING, "lockbroker: " + e, e);
    }

    static void close(Closeable what) {
        try {
            if (what != null)
                what.close();
        } catch (IOException e) {
            complain(e);
        }
    }

    static LockBrokerException closed() {
        return new NotAvailable("CLOSED", "This LockBroker was closed.");
    }

    // ---- the loop ----

    @Override
    public void run() {
        try {
            while (!closing || !connections.isEmpty())
                turn();
        } catch (IOException | RuntimeException | Error e) {
            complain(e);
        } finally {
            close();
            toComplete.forEach(Call::complete);
            close(selector);
            ended = true;
            runLeft();
        }
    }

    private void turn() throws IOException {
        await();
        woken.set(false);
        Runnable task;
        for (int i = 0; i < TASKS_A_TURN && (task = tasks.poll()) != null; i++)
            guarded(task);
        long now = System.nanoTime();
        while (!timers.isEmpty() && timers.peek().at - now <= 0)
            guarded(timers.poll().task);
        if (looks && lookAt - now <= 0)
            look(now);
        for (int i = 0; i < toFlush.size(); i++)
            toFlush.get(i).flush();
        toFlush.clear();
        for (int i = 0; i < toComplete.size(); i++)
            toComplete.get(i).complete();
        toComplete.clear();
    }

    /**
     * Until something comes. To be woken takes longer than most answers do: so this looks for a moment before it
     * sleeps, if that was worth it the last times.
     */
    private void await() throws IOException {
        Thread.interrupted(); // as by who interrupts all threads of a group: it would not sleep any longer
        long wait = tasks.isEmpty() ? millisecondsToWait() : 0;
        if (wait == 0) {
            selector.selectNow(this::ready);
            return;
        }
        long began = System.nanoTime();
        woken.set(true); // nobody has to wake it
        while (System.nanoTime() - began < spinNs) {
            if (!tasks.isEmpty() || selector.selectNow(this::ready) > 0)
                return;
            Thread.onSpinWait();
        }
        woken.set(false);
        if (tasks.isEmpty())
            selector.select(this::ready, wait);
        spinNs = System.nanoTime() - began < SPIN_MAX_NS ? SPIN_MAX_NS : spinNs / 2;
    }

    /** A thread that others do not wait for goes on when those have been told. */
    void completeLater(Call call) {
        toComplete.add(call);
    }

    private long millisecondsToWait() {
        long now = System.nanoTime(), least = Long.MAX_VALUE;
        if (!timers.isEmpty())
            least = timers.peek().at - now;
        if (looks)
            least = Math.min(least, lookAt - now);
        return least <= 0 ? 0 : Math.min(60_000, least / Clock.NS_PER_MS + 1);
    }

    private void ready(SelectionKey key) {
        Connection connection = (Connection) key.attachment();
        if (key.isValid() && key.isWritable())
            connection.flush();
        if (key.isValid() && key.isReadable())
            guarded(() -> connection.readable(buffer));
    }

    // ---- for the I/O thread ----

    Timer after(long nanos, Runnable task) {
        Timer timer = new Timer(System.nanoTime() + nanos, task);
        timers.add(timer);
        return timer;
    }

    void notAfter(Timer timer) {
        timers.remove(timer);
    }

    void toFlush(Connection connection) {
        toFlush.add(connection);
    }

    boolean isClosing() {
        return closing;
    }

    Connection made(SocketChannel channel) throws IOException {
        SelectionKey key = channel.register(selector, SelectionKey.OP_READ);
        Connection connection = new Connection(this, channel, key);
        key.attach(connection);
        connections.add(connection);
        return connection;
    }

    void forget(Connection connection) {
        connections.remove(connection);
        pool.forget(connection);
    }

    /** The page that a greeting names, or null. Where there is no clock for it, it is of no use. */
    Page page(Map<?, ?> hello) {
        String id = String.valueOf(hello.get("session_page_id"));
        if (!Clock.isOfBoot())
            return null;
        if (page == null || !page.id.equals(id))
            page = Page.find(String.valueOf(hello.get("session_page")), id);
        return page;
    }

    void begin(Ask ask) {
        if (closing)
            ask.failed(closed());
        else if (ask.direct || ask.request.kind() != Request.Kind.LOCK || ask.request.shared())
            start(ask);
        else
            tiers.computeIfAbsent(ask.request.name(), name -> new Tier(this, name)).enter(ask);
    }

    void start(Ask ask) {
        if (ask.isOver())
            return;
        ask.state = Ask.State.CONNECTING;
        pool.give(ask);
    }

    void forget(String name) {
        tiers.remove(name);
    }

    void holds(Grant grant) {
        pool.granted();
        holders.add(grant);
        long soon = System.nanoTime() + LOOK_SOON_NS;
        if (!looks || lookAt - soon > 0)
            lookAt = soon;
        looks = true;
    }

    void holdsNoLonger(Grant grant) {
        holders.remove(grant);
    }

    /** Sees proofs that run out, and asks for those that only the broker knows. */
    private void look(long now) {
        long least = Clock.FOREVER;
        for (Grant grant : List.copyOf(holders)) {
            least = Math.min(least, grant.look());
            if (grant.mustAsk() && !grant.isAsked())
                grant.connection.question(grant, new Call());
        }
        looks = least != Clock.FOREVER;
        lookAt = now + Math.min(least, 60_000 * Clock.NS_PER_MS);
    }

    private void close() {
        if (closing)
            return;
        closing = true;
        for (Grant grant : List.copyOf(holders))
            grant.lose("closed");
        for (Tier tier : List.copyOf(tiers.values()))
            tier.close(closed());
        pool.close();
        for (Connection connection : List.copyOf(connections))
            connection.close();
    }
}
