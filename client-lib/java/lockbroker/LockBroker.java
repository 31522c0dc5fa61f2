// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The lockbrokerd of this host, as this program uses it: usually one object for all of it.
 *
 * <pre>{@code
 * try (LockBroker broker = LockBroker.open()) {
 *     try (Held held = broker.lock("orders/42").hold()) {
 *         work(held.token());     // the resource refuses smaller tokens than it has seen
 *         held.check();           // before a step that cannot be undone: throws Lost
 *     }                           // throws Lost if the lock was not held all the time
 * }
 * }</pre>
 *
 * All of it may be used by any thread. A thread that ends without unlock() keeps what it holds until close(), or until
 * the process ends. What the broker refuses is a {@link LockBrokerException}; an outage is a {@link NotAvailable}.
 */
public final class LockBroker implements AutoCloseable {
    private static final String SOCKET = "/run/lockbroker/lockbroker.sock";
    private static final Duration PATIENCE = Duration.ofSeconds(10);
    private static final String PROCESS = Long.toHexString(new SecureRandom().nextLong());

    /** What a thread holds. Others change only the count. */
    private static final class Owner {
        int count;
        final Map<String, Hold> holds = new HashMap<>(4);
    }

    final Io io;
    /** Of which the threads are, to the broker. */
    String process = PROCESS;
    private final Map<Thread, Owner> owners = new ConcurrentHashMap<>();

    private LockBroker(String socket, Duration patience) {
        String path = path(socket);
        long patienceNs = Math.max(1, Request.milliseconds(patience)) * Clock.NS_PER_MS;
        io = new Io(path, patienceNs, Math.min(patienceNs, openNs(patienceNs)));
        try {
            new Question(io, List.of("PING")).ask();
        } catch (LockBrokerException e) {
            io.shutDown();
            throw e;
        }
    }

    /** By $LOCKBROKER_SOCKET, or the socket of the machine, /run/lockbroker/lockbroker.sock. Throws NotAvailable. */
    public static LockBroker open() {
        return open(null);
    }

    /**
     * By that socket; "user" is the one of this user's own broker, "@NAME" that of lockbrokerd@NAME.service. A broker
     * that is being started again is waited for, at most as many milliseconds as $LOCKBROKER_OPEN_MS says (without: for
     * the patience).
     */
    public static LockBroker open(String socket) {
        return open(socket, PATIENCE);
    }

    /**
     * The patience, 10 seconds unless it is given: for an answer that should come at once, and for a broker that is
     * away.
     */
    public static LockBroker open(String socket, Duration patience) {
        return new LockBroker(socket, patience);
    }

    private static String path(String socket) {
        String path = socket == null || socket.isEmpty() ? System.getenv("LOCKBROKER_SOCKET") : socket;
        if (path == null || path.isEmpty())
            return SOCKET;
        if (path.startsWith("@") && path.length() > 1 && path.indexOf('/') < 0)
            return "/run/lockbroker" + path + "/lockbroker.sock";
        return path.equals("user") ? Path.of(ownFolder(), "lockbroker", "lockbroker.sock").toString() : path;
    }

    /** Where nobody but this user can put a socket. */
    private static String ownFolder() {
        String folder = System.getenv("XDG_RUNTIME_DIR");
        try {
            Object user = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
            if (folder == null || folder.isEmpty())
                folder = "/run/user/" + user;
            Map<String, Object> found = Files.readAttributes(Path.of(folder), "unix:uid,mode,isDirectory");
            if (Path.of(folder).isAbsolute() && found.get("isDirectory").equals(true) && found.get("uid").equals(user)
                    && ((Integer) found.get("mode") & 022) == 0)
                return folder;
        } catch (IOException | UnsupportedOperationException | IllegalArgumentException e) {
            // As if somebody else owned it.
        }
        throw new NotAvailable("CONNECTION", "The broker of this user cannot be found: XDG_RUNTIME_DIR, " + folder
                + ", is not a directory that only this user may write to.");
    }

    private static long openNs(long otherwise) {
        String text = System.getenv("LOCKBROKER_OPEN_MS");
        return text != null && text.matches("[0-9]{1,12}") ? Long.parseLong(text) * Clock.NS_PER_MS : otherwise;
    }

    /** A lock that one thread of one process on one host holds. Objects of the same name are the same lock. */
    public BrokerLock lock(String name) {
        return new BrokerLock(this, Request.lock(name));
    }

    /** The same lock for readers, who hold it together, and writers. Its writeLock() is lock(name). */
    public BrokerReadWriteLock readWriteLock(String name) {
        return new BrokerReadWriteLock(this, name);
    }

    /**
     * Up to 64 locks, all or none. Two callers that name the same locks, in any order, never deadlock. The loss
     * of one is the loss of all; {@link Held#tokens()} has the token of each.
     */
    public Acquirable lockAll(String... names) {
        return new Acquirable(this, Request.locks(names), true);
    }

    /**
     * One of several locks, such as those of the ports or devices that are free: {@link Held#name()} says which. It
     * waits for all of them, in the order of asking for each, and the first that is granted wins.
     */
    public Acquirable lockAny(String... names) {
        if (names.length == 0)
            throw new IllegalArgumentException("no name: say which locks");
        return new Acquirable(this, Arrays.stream(names).distinct().map(Request::lock).toList(), true);
    }

    /** A permit of a semaphore, on whose limit all its users agree. */
    public Acquirable semaphore(String name, int limit) {
        return semaphore(name, limit, 1);
    }

    /** So many permits of a semaphore, all of them or none. */
    public Acquirable semaphore(String name, int limit, int count) {
        return new Acquirable(this, Request.semaphore(name, limit, count), true);
    }

    /** An election: a lock whose holder's data everybody may read. */
    public Election election(String name) {
        return new Election(this, name);
    }

    /**
     * The answer to a command of PROTOCOL.md that is answered at once, such as ask("HOLDERS", "orders"), on a
     * connection of its own: as String, Long, null, List or Map.
     */
    public Object ask(String... words) {
        return new Question(io, List.of(words)).ask();
    }

    /** Releases everything, and ends all waits with NotAvailable. */
    @Override
    public void close() {
        io.shutDown();
    }

    // ---- what threads hold ----

    String group(Thread thread) {
        return "java-" + process + "-" + thread.getId();
    }

    /** Null: somebody else holds it. Who holds something asks the broker, so that it sees every deadlock cycle. */
    Grant ask(Request request, boolean grouped, long waitNs, boolean interruptible) throws InterruptedException {
        Thread thread = Thread.currentThread();
        return new Ask(io, request, grouped ? group(thread) : "", owners.containsKey(thread), waitNs).await(interruptible);
    }

    Hold held(String name) {
        Owner owner = owners.get(Thread.currentThread());
        return owner == null ? null : owner.holds.get(name);
    }

    void began(Hold hold) {
        began(Thread.currentThread()).holds.put(hold.grant.request.name(), hold);
    }

    Owner began(Thread thread) {
        return owners.compute(thread, (t, had) -> {
            Owner owner = had == null ? new Owner() : had;
            owner.count++;
            return owner;
        });
    }

    void ended(Hold hold) {
        Thread thread = Thread.currentThread();
        owners.get(thread).holds.remove(hold.grant.request.name());
        ended(thread);
    }

    void ended(Thread thread) {
        owners.computeIfPresent(thread, (t, owner) -> --owner.count == 0 ? null : owner);
    }

    /** Returns when it has been passed on. Throws Lost if it was not held to the end. */
    void release(Grant grant) {
        boolean proven = grant.proven() > 0;
        Call call = new Call();
        io.post(() -> grant.connection.release(grant, proven, call));
        if (!call.await(io.patienceNs)) {
            if (!proven)
                grant.lose("unanswered");
            io.post(grant.connection::cut);
        }
        if (grant.lostReason() != null)
            throw grant.lost();
    }

    void renew(Grant grant, Duration lease) {
        long ms = Request.milliseconds(lease);
        if (ms == 0)
            throw new IllegalArgumentException("a lease is longer than 0");
        ofHeld(grant, call -> grant.connection.renew(grant, ms, call));
    }

    void downgrade(Grant grant) {
        ofHeld(grant, call -> grant.connection.downgrade(grant, call));
    }

    private void ofHeld(Grant grant, java.util.function.Consumer<Call> what) {
        Call call = new Call();
        io.post(() -> what.accept(call));
        if (!call.await(io.patienceNs))
            grant.lose("unanswered");
        if (grant.lostReason() != null)
            throw grant.lost();
        if (call.failure() != null)
            throw call.failure().here();
    }
}
