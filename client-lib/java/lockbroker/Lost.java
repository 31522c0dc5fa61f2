// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

/** The grant is void: others may hold the lock, and what was done under it of late is in doubt. */
public class Lost extends LockBrokerException {
    private static final long serialVersionUID = 1;

    private final String reason;

    Lost(String reason, String sentence) {
        super("LOST", sentence);
        this.reason = reason;
    }

    /**
     * "session" (the proof of the session ran out), "deleted" (somebody deleted its znode), "lease", "limit", "forced"
     * (an operator took it), "connection" (the broker ended), "unanswered" (the broker is silent, and cannot prove it),
     * or "closed" (the LockBroker was closed).
     */
    public String reason() {
        return reason;
    }
}
