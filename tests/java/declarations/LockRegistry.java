// SPDX-License-Identifier: Apache-2.0
package org.springframework.integration.support.locks;

import java.util.concurrent.locks.Lock;

public interface LockRegistry {
    Lock obtain(Object lockKey);
}
