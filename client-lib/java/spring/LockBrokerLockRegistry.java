// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker.spring;

import java.util.concurrent.locks.Lock;

import lockbroker.LockBroker;
import org.springframework.integration.support.locks.LockRegistry;

/**
 * Spring Integration's LockRegistry over lockbrokerd, to be copied. Its locks belong to threads, as the broker's Lock
 * does.
 */
public final class LockBrokerLockRegistry implements LockRegistry {
    private final LockBroker broker;
    private final String prefix;

    /** The prefix stands before the text of each key: "integration/". */
    public LockBrokerLockRegistry(LockBroker broker, String prefix) {
        this.broker = broker;
        this.prefix = prefix;
    }

    @Override
    public Lock obtain(Object lockKey) {
        return broker.lock(prefix + lockKey);
    }
}
