// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

/** To wait would be to wait for oneself, or for each other in a cycle. Release what is held, and start again. */
public class Deadlock extends LockBrokerException {
    private static final long serialVersionUID = 1;

    Deadlock(String sentence) {
        super("DEADLOCK", sentence);
    }
}
