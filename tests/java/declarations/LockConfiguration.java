// SPDX-License-Identifier: Apache-2.0
package net.javacrumbs.shedlock.core;

import java.time.Duration;
import java.time.Instant;

public class LockConfiguration {
    private final Instant createdAt;
    private final String name;
    private final Duration lockAtMostFor, lockAtLeastFor;

    public LockConfiguration(Instant createdAt, String name, Duration lockAtMostFor, Duration lockAtLeastFor) {
        this.createdAt = createdAt;
        this.name = name;
        this.lockAtMostFor = lockAtMostFor;
        this.lockAtLeastFor = lockAtLeastFor;
    }

    public String getName() {
        return name;
    }

    public Instant getLockAtMostUntil() {
        return createdAt.plus(lockAtMostFor);
    }

    public Instant getLockAtLeastUntil() {
        return createdAt.plus(lockAtLeastFor);
    }
}
