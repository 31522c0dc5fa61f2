// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.io.IOException;
import java.net.BindException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** Connections that are idle, and those that wait for one while the broker is away. Only the I/O thread uses it. */
final class Pool {
    private static final int IDLE_MAX = 64;
    private static final long IDLE_NS = 5_000 * Clock.NS_PER_MS;
    private static final long PAUSE_NS = 10 * Clock.NS_PER_MS, PAUSE_MAX_NS = 250 * Clock.NS_PER_MS;

    /** Since when the broker is away: all who ask meanwhile have the same patience. */
    private static final class Outage {
        boolean is;
        long failedAt, giveUpAt, pauseNs;

        /** After a failure: how long to wait before the next try, or -1. */
        long pause(long patienceNs, long forgetNs) {
            long now = System.nanoTime();
            if (!is || now - failedAt > forgetNs) {
                is = true;
                giveUpAt = now + patienceNs;
                pauseNs = PAUSE_NS;
            }
            failedAt = now;
            return now + pauseNs - giveUpAt >= 0 ? -1 : pauseNs;
        }
    }

    private record Idle(Connection connection, long since) {
    }

    private final Io io;
    private final long openNs;
    private final Deque<Idle> idle = new ArrayDeque<>();
    private final Set<Task> waiting = new LinkedHashSet<>();
    private final Outage away = new Outage(), draining = new Outage();
    private boolean reached, pausing, expiring;

    Pool(Io io, long openNs) {
        this.io = io;
        this.openNs = openNs;
    }

    void give(Task task) {
        Idle latest = idle.pollLast();
        if (latest != null)
            task.on(latest.connection);
        else
            connect(task);
    }

    void connect(Task task) {
        SocketChannel channel = null;
        try {
            channel = SocketChannel.open(StandardProtocolFamily.UNIX);
            channel.configureBlocking(false);
            if (channel.connect(UnixDomainSocketAddress.of(io.path))) {
                task.on(io.made(channel));
                return;
            }
            channel.close(); // the queue of the listening socket is full
            again(task, new NotAvailable("CONNECTION",
                    "The lockbrokerd at " + io.path + " does not accept connections."), false);
        } catch (IOException e) {
            Io.close(channel);
            unreached(task, e);
        }
    }

    private void unreached(Task task, IOException e) {
        if (e instanceof BindException) { // what the JDK makes of EACCES
            task.failed(new LockBrokerException("DENIED", "This user may not use lockbrokerd at " + io.path + ": "
                    + e.getMessage() + ". See the mode and the group of the socket, and daemon.socket_group in "
                    + "lockbroker.conf."));
            return;
        }
        NotAvailable why = new NotAvailable("CONNECTION", "No lockbrokerd is serving " + io.path + ": " + e.getMessage()
                + ". Start it, or set LOCKBROKER_SOCKET to the socket that it serves.");
        if (!reached && !Files.exists(java.nio.file.Path.of(io.path)))
            task.failed(why);
        else
            again(task, why, false);
    }

    void reached() {
        reached = true;
        away.is = false;
    }

    void granted() {
        draining.is = false;
    }

    /** After a failure that may pass. */
    void again(Task task, LockBrokerException why, boolean drains) {
        long patience = reached ? io.patienceNs : openNs;
        Outage outage = drains ? draining : away;
        long pause = why instanceof NotAvailable && !why.code().equals(Connection.SILENT) && !io.isClosing()
                ? outage.pause(patience, io.patienceNs) : -1;
        if (pause < 0) {
            task.failed(io.isClosing() ? Io.closed() : why);
            return;
        }
        waiting.add(task);
        if (pausing)
            return;
        pausing = true;
        outage.pauseNs = Math.min(2 * outage.pauseNs, PAUSE_MAX_NS);
        io.after(pause, this::retry);
    }

    private void retry() {
        List<Task> those = List.copyOf(waiting);
        waiting.clear();
        pausing = false;
        for (Task task : those)
            if (!task.isOver())
                give(task);
    }

    void forget(Task task) {
        waiting.remove(task);
    }

    void idle(Connection connection) {
        if (idle.size() >= IDLE_MAX) {
            connection.close();
            return;
        }
        idle.addLast(new Idle(connection, System.nanoTime()));
        if (!expiring) {
            expiring = true;
            io.after(IDLE_NS, this::expire);
        }
    }

    private void expire() {
        long now = System.nanoTime();
        while (!idle.isEmpty() && now - idle.peekFirst().since >= IDLE_NS)
            idle.pollFirst().connection.close();
        expiring = !idle.isEmpty();
        if (expiring)
            io.after(IDLE_NS - (now - idle.peekFirst().since), this::expire);
    }

    void forget(Connection connection) {
        idle.removeIf(i -> i.connection == connection);
    }

    void close() {
        List<Task> those = List.copyOf(waiting);
        waiting.clear();
        for (Task task : those)
            task.failed(Io.closed());
    }
}
