// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

/** Is told of the leadership that it campaigns for. */
public interface ElectionListener {
    /** This candidate leads, until the leadership is lost, {@code leadership} is closed, or the candidacy is. */
    void elected(Held leadership);

    /**
     * It leads no longer: stop what only the leader may do. This may be told while elected() still runs. When this
     * returns, the candidate campaigns again.
     */
    void lost(Lost why);

    /** The broker refuses the campaign for good, as with DENIED or MISMATCH. Nothing else will be told. */
    void failed(LockBrokerException why);
}
