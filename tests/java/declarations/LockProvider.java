// SPDX-License-Identifier: Apache-2.0
package net.javacrumbs.shedlock.core;

import java.util.Optional;

public interface LockProvider {
    Optional<SimpleLock> lock(LockConfiguration lockConfiguration);
}
