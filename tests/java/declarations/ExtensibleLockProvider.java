// SPDX-License-Identifier: Apache-2.0
package net.javacrumbs.shedlock.core;

public interface ExtensibleLockProvider extends LockProvider {
}
