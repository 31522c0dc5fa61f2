// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.util.concurrent.locks.LockSupport;

/** What a thread waits for and the I/O thread completes. */
class Call {
    private volatile boolean done;
    private volatile Thread waiter;
    private LockBrokerException failure;

    final boolean isDone() {
        return done;
    }

    /** By the I/O thread, once; what is written before it is seen by the thread that waits. */
    void complete() {
        done = true;
        LockSupport.unpark(waiter);
    }

    /** What the I/O thread goes on with when it has completed the call. */
    static Call then(Runnable next) {
        return new Call() {
            @Override
            void complete() {
                super.complete();
                next.run();
            }
        };
    }

    final void fail(LockBrokerException why) {
        failure = why;
        complete();
    }

    final LockBrokerException failure() {
        return failure;
    }

    /** Parks until it is done, or until that instant of System.nanoTime(), or until an interrupt. */
    final void park(long until) {
        waiter = Thread.currentThread();
        if (!done)
            LockSupport.parkNanos(this, until - System.nanoTime());
        waiter = null;
    }

    /** Whether it was done by then. An interrupt does not end it: the flag is set when this returns. */
    final boolean await(long nanos) {
        long until = System.nanoTime() + nanos;
        boolean interrupted = false;
        while (!done && until - System.nanoTime() > 0) {
            park(until);
            interrupted |= Thread.interrupted();
        }
        if (interrupted)
            Thread.currentThread().interrupt();
        return done;
    }
}
