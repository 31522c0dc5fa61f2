// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.util.concurrent.locks.ReadWriteLock;

/**
 * A lock that readers of all processes and hosts hold together, and a writer alone. Each reader has a grant of its own:
 * readers of one JVM share only what the broker grants as shared, so a writer elsewhere is not passed by. A thread that
 * writes may read as well, and reads on after the writeLock() is released: the lock is not free in between, and the
 * token stays. A thread that only reads cannot write: Deadlock.
 */
public final class BrokerReadWriteLock implements ReadWriteLock {
    private final BrokerLock reader, writer;

    BrokerReadWriteLock(LockBroker broker, String name) {
        reader = new BrokerLock(broker, Request.lock(name).asShared(true));
        writer = new BrokerLock(broker, Request.lock(name));
    }

    @Override
    public BrokerLock readLock() {
        return reader;
    }

    @Override
    public BrokerLock writeLock() {
        return writer;
    }
}
