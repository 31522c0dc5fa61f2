// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.io.Closeable;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * An election: a lock whose holder is the leader, and whose holder's data everybody may read. A name is a lock or an
 * election.
 */
public final class Election {
    private static final long PAUSE_NS = 250 * Clock.NS_PER_MS;

    private final LockBroker broker;
    private final String name;

    Election(LockBroker broker, String name) {
        this.broker = broker;
        this.name = name;
    }

    /** Waits until this leads. Others may read the data, 1 to 512 bytes of text. An interrupt withdraws the request. */
    public Held campaign(String data) throws InterruptedException {
        return campaign(data, Wish.ENDLESS);
    }

    /** Null: somebody else led all that time. */
    public Held tryCampaign(String data, Duration wait) throws InterruptedException {
        return campaign(data, Request.milliseconds(wait) * Clock.NS_PER_MS);
    }

    private Held campaign(String data, long waitNs) throws InterruptedException {
        Grant grant = broker.ask(Request.election(name, data), true, waitNs, true);
        return grant == null ? null : Acquirable.held(broker, grant, Thread.currentThread());
    }

    /**
     * Campaigns without a thread, again after each loss, and through outages, until what is returned is closed, which
     * also gives up the leadership. The executor runs the listener.
     */
    public Closeable campaign(String data, ElectionListener listener, Executor executor) {
        return new Candidacy(Request.election(name, data), listener, executor);
    }

    /** Who leads now, on whichever host; empty: nobody. */
    public Optional<Leader> leader() {
        if (!(broker.ask("LEADER", name) instanceof Map<?, ?> map))
            return Optional.empty();
        if (map.get("host") instanceof String host && map.get("data") instanceof String data
                && map.get("token") instanceof Long token)
            return Optional.of(new Leader(host, data, token));
        throw new LockBrokerException("ERR", "The broker's answer to LEADER is no leader.");
    }

    /**
     * The executor runs the listener with who leads now, and with each change, in order and one at a time, until what
     * is returned is closed. Empty: nobody leads. If the broker ends, it goes on with the next one. A
     * LockBrokerException that ends it, as MISMATCH does, is told to {@code failed}.
     */
    public Closeable observe(Consumer<Optional<Leader>> listener, Consumer<LockBrokerException> failed, Executor executor) {
        Observation observation = new Observation(listener, failed, new InOrder(executor));
        broker.io.post(observation::start);
        return () -> broker.io.post(observation::close);
    }

    /** Runs what it is given in that order, one at a time. */
    private static final class InOrder implements Executor {
        private final Executor executor;
        private final ReentrantLock lock = new ReentrantLock();
        private final Queue<Runnable> queue = new ArrayDeque<>();
        private boolean runs;

        InOrder(Executor executor) {
            this.executor = executor;
        }

        @Override
        public void execute(Runnable task) {
            lock.lock();
            try {
                queue.add(task);
                if (runs)
                    return;
                runs = true;
            } finally {
                lock.unlock();
            }
            executor.execute(this::runAll);
        }

        private void runAll() {
            for (Runnable task = next(); task != null; task = next())
                Io.guarded(task);
        }

        private Runnable next() {
            lock.lock();
            try {
                runs = !queue.isEmpty();
                return queue.poll();
            } finally {
                lock.unlock();
            }
        }
    }

    /** The I/O thread's, but for what the executor runs. */
    final class Observation implements Task {
        private final Consumer<Optional<Leader>> listener;
        private final Consumer<LockBrokerException> failed;
        private final Executor executor;
        private Connection connection;
        private Optional<Leader> told;
        private boolean over;

        Observation(Consumer<Optional<Leader>> listener, Consumer<LockBrokerException> failed, Executor executor) {
            this.listener = listener;
            this.failed = failed;
            this.executor = executor;
        }

        void start() {
            if (broker.io.isClosing())
                failed(Io.closed());
            else
                broker.io.pool.connect(this);
        }

        @Override
        public void on(Connection its) {
            connection = its;
            its.current = this;
            its.send(List.of("OBSERVE", name), answer -> {
                if (answer instanceof Resp.ErrorReply error)
                    failed(LockBrokerException.of(error));
            });
        }

        void heed(Resp.Push push) {
            if (push.is("leader", 5) && push.text(1).equals(name) && push.items().get(2) instanceof Long token) {
                Optional<Leader> leader = token == 0 ? Optional.empty()
                        : Optional.of(new Leader(push.text(3), push.text(4), token));
                if (!leader.equals(told)) // as after a reconnection
                    executor.execute(() -> listener.accept(leader));
                told = leader;
            } else if (push.is("unobserved", 4) && push.text(1).equals(name)) {
                failed(LockBrokerException.of(new Resp.ErrorReply(push.text(2) + " " + push.text(3))));
            }
        }

        void ended(LockBrokerException why) {
            connection = null;
            if (!over)
                broker.io.pool.again(this, why, false);
        }

        @Override
        public void failed(LockBrokerException why) {
            if (over)
                return;
            close();
            Io.guarded(() -> executor.execute(() -> failed.accept(why)));
        }

        @Override
        public boolean isOver() {
            return over;
        }

        void close() {
            over = true;
            if (connection != null)
                connection.close();
        }
    }

    /** One who campaigns again and again. */
    private final class Candidacy implements Closeable {
        private final Request request;
        private final ElectionListener listener;
        private final Executor executor;
        private final ReentrantLock lock = new ReentrantLock();
        private boolean closed;
        private Ask ask;
        private Held leadership;

        Candidacy(Request request, ElectionListener listener, Executor executor) {
            this.request = request;
            this.listener = listener;
            this.executor = executor;
            campaign();
        }

        private void campaign() {
            lock.lock();
            try {
                leadership = null;
                if (closed)
                    return;
                Ask next = new Ask(broker.io, request, "", true, Wish.ENDLESS) {
                    @Override
                    void complete() {
                        super.complete();
                        Io.guarded(() -> ended(this));
                    }
                };
                ask = next;
                broker.io.post(() -> broker.io.begin(next));
            } finally {
                lock.unlock();
            }
        }

        /** By the I/O thread. */
        private void ended(Ask its) {
            LockBrokerException why = its.failure();
            if (its.grant() != null)
                leads(its.grant());
            else if ((why instanceof NotAvailable || why instanceof Lost) && !broker.io.isClosing())
                broker.io.after(PAUSE_NS, this::campaign);
            else if (why != null)
                executor.execute(() -> listener.failed(why));
        }

        private void leads(Grant grant) {
            Held held = Acquirable.held(broker, grant, null);
            boolean late;
            lock.lock();
            try {
                late = closed;
                leadership = held;
            } finally {
                lock.unlock();
            }
            if (late) {
                grant.connection.release(grant, true, new Call());
                return;
            }
            executor.execute(() -> listener.elected(held));
            held.onLost(lost -> {
                listener.lost(lost);
                campaign();
            }, executor);
        }

        @Override
        public void close() {
            Ask its;
            Held held;
            lock.lock();
            try {
                closed = true;
                its = ask;
                held = leadership;
            } finally {
                lock.unlock();
            }
            broker.io.post(its::withdraw);
            try {
                if (held != null)
                    held.close();
            } catch (Lost e) {
                return; // the listener is told
            }
        }
    }
}
