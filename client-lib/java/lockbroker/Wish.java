// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

/** What a thread waits for until it is granted, is known to be held by others, or the thread has waited long enough. */
abstract class Wish extends Call {
    static final long ENDLESS = Long.MAX_VALUE;

    final Io io;
    /** Nanoseconds; 0: it tries; ENDLESS. */
    final long waitNs;
    final long end;

    Wish(Io io, long waitNs) {
        this.io = io;
        this.waitNs = waitNs;
        end = System.nanoTime() + Math.min(waitNs, Long.MAX_VALUE / 4);
    }

    final boolean tries() {
        return waitNs == 0;
    }

    // ---- by the I/O thread ----

    abstract void begin();

    /** The time to wait is over. */
    abstract void expire();

    /** And so is the patience for the broker's answer. */
    abstract void giveUp();

    /** Nobody wants it any longer. */
    abstract void withdraw();

    /** When it is complete: null if somebody else holds it, or if it was withdrawn. */
    abstract Grant grant();

    // ---- by the thread ----

    /**
     * Waits. Null: somebody else holds it. With interrupts, one of them withdraws the request, and a grant that crosses
     * the withdrawal is released; otherwise the flag is set again at the end.
     */
    final Grant await(boolean interruptible) throws InterruptedException {
        if (interruptible && Thread.interrupted())
            throw new InterruptedException();
        boolean interrupted = false, expired = false, given = false;
        io.post(this::begin);
        while (!isDone()) {
            long left = waitNs == ENDLESS || given ? io.patienceNs : end + (expired ? io.patienceNs : 0) - System.nanoTime();
            if (left > 0) {
                park(System.nanoTime() + left);
            } else if (!expired) {
                expired = true;
                io.post(this::expire);
            } else {
                given = true;
                io.post(this::giveUp);
            }
            if (Thread.interrupted() && !interrupted) {
                interrupted = true;
                if (interruptible)
                    io.post(this::withdraw);
            }
        }
        if (interrupted && interruptible) {
            release(grant());
            throw new InterruptedException();
        }
        if (interrupted)
            Thread.currentThread().interrupt();
        if (failure() != null)
            throw failure().here();
        return grant();
    }

    /** Of what was granted and nobody wants. */
    private void release(Grant grant) {
        if (grant == null)
            return;
        Call released = new Call();
        io.post(() -> grant.connection.release(grant, true, released));
        released.await(io.patienceNs);
    }
}
