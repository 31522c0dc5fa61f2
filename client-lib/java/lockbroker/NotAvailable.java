// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

/**
 * It cannot be had now, and is not known to be held by somebody else. The code is CONNECTION if no broker serves the
 * socket or it did not answer, UNAVAILABLE if the broker cannot ask ZooKeeper, DRAINING if it is stopping or operators
 * drain it.
 */
public class NotAvailable extends LockBrokerException {
    private static final long serialVersionUID = 1;

    NotAvailable(String code, String sentence) {
        super(code, sentence);
    }
}
