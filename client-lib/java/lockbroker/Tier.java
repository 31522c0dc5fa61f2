// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;

/** The queue of the JVM for one lock: those who want it exclusively and hold nothing else, in the order of asking. */
final class Tier {
    private final Io io;
    private final String name;
    /** Asks the broker, or holds what it was granted. */
    private Ask active;
    private final Set<Ask> queue = new LinkedHashSet<>();

    Tier(Io io, String name) {
        this.io = io;
        this.name = name;
    }

    void enter(Ask ask) {
        if (active == null) {
            ask.tier = this;
            active = ask;
            io.start(ask);
        } else if (!ask.tries()) {
            ask.tier = this;
            ask.state = Ask.State.QUEUED;
            queue.add(ask);
        } else if (isHeld()) {
            ask.failed(null);
        } else {
            io.start(ask);
        }
    }

    /** A thread of the JVM holds it. */
    boolean isHeld() {
        Grant grant = active == null ? null : active.grant();
        return grant != null && grant.remaining() > 0;
    }

    /**
     * That request, or what it was granted, is over. If it was the active one, the next one asks, on that connection,
     * which may be null. True: the connection is used.
     */
    static boolean leave(Ask ask, Connection connection) {
        Tier tier = ask.tier;
        if (tier == null)
            return false;
        tier.queue.remove(ask);
        return tier.active == ask && tier.next(connection);
    }

    private boolean next(Connection connection) {
        Iterator<Ask> first = queue.iterator();
        active = null;
        if (!first.hasNext()) {
            io.forget(name);
            return false;
        }
        Ask next = first.next();
        first.remove();
        active = next;
        if (connection == null || connection.isClosed()) {
            next.state = Ask.State.CONNECTING;
            io.post(() -> io.start(next)); // those that fail one after the other must not do so within each other
            return false;
        }
        next.on(connection);
        return true;
    }

    void close(LockBrokerException why) {
        for (Ask ask : Set.copyOf(queue))
            ask.failed(why);
    }
}
