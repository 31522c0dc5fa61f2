// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

/** What needs a connection. All of it is called by the I/O thread. */
interface Task {
    /** There is one, which nobody else uses. */
    void on(Connection connection);

    /** There is none within the patience, or it was refused. */
    void failed(LockBrokerException why);

    /** It needs none any longer. */
    boolean isOver();
}
