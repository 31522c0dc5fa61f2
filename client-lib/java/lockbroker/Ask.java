// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A request, and what came of it: a grant, a failure, or neither, if somebody else holds the lock or it was withdrawn.
 * The thread that made it waits; its states are those of the package's page, and change in the I/O thread only.
 */
class Ask extends Wish implements Task {
    enum State { NEW, QUEUED, CONNECTING, ASKED, DONE }

    // If more than this part of a lease may have passed when the grant is known, the lease is restarted.
    private static final long LEASE_SLACK_PART = 16;

    final Request request;
    final String group;
    /** It does not queue in the JVM. */
    final boolean direct;

    State state = State.NEW;
    Tier tier;
    private Connection connection;
    private Grant grant;

    Ask(Io io, Request request, String group, boolean direct, long waitNs) {
        super(io, waitNs);
        this.request = request;
        this.group = group;
        this.direct = direct;
    }

    // ---- by the I/O thread ----

    @Override
    final void begin() {
        io.begin(this);
    }

    @Override
    final Grant grant() {
        return grant;
    }

    @Override
    public final boolean isOver() {
        return state == State.DONE;
    }

    /** Rounded up. */
    private long leftMs() {
        if (waitNs == ENDLESS)
            return -1;
        return tries() ? 0 : Math.max(0, (end - System.nanoTime() + Clock.NS_PER_MS - 1) / Clock.NS_PER_MS);
    }

    @Override
    public final void on(Connection its) {
        connection = its;
        state = State.ASKED;
        its.current = this;
        its.join(group);
        long sent = Clock.noLater();
        its.send(request.acquire(leftMs()), answer -> {
            if (connection == its)
                answered(answer, sent);
        });
    }

    private void answered(Object answer, long sent) {
        if (answer == Connection.ENDED)
            again(connection.why(), false);
        else if (answer instanceof Resp.ErrorReply error)
            refused(error);
        else if (answer != null)
            granted(answer, sent);
        else
            failed(waitNs < ENDLESS ? null
                    : new LockBrokerException("UNBLOCKED", "The wait for " + request + " was ended by CLIENT UNBLOCK."));
    }

    private void refused(Resp.ErrorReply error) {
        if (error.code().equals("DRAINING") && !tries() && end - System.nanoTime() > 0) {
            again(LockBrokerException.of(error), true);
        } else if (error.code().equals("LOST")) { // of an earlier grant on this connection
            Connection its = connection;
            its.current = null;
            its.close();
            again(its.why(), false);
        } else {
            failed(LockBrokerException.of(error));
        }
    }

    /** On another connection, within the patience. */
    private void again(LockBrokerException why, boolean draining) {
        Connection former = connection;
        connection = null;
        state = State.CONNECTING;
        former.free();
        io.pool.again(this, why, draining);
    }

    private void granted(Object answer, long sent) {
        Map<String, Long> tokens = new HashMap<>();
        List<?> numbers = answer instanceof List<?> list ? list : List.of(answer);
        if (numbers.size() != request.names().size() || !numbers.stream().allMatch(Long.class::isInstance)) {
            failed(new LockBrokerException("ERR", "The answer to a request for " + request + " is no number."));
            return;
        }
        for (int i = 0; i < numbers.size() && request.kind() != Request.Kind.SEMAPHORE; i++)
            tokens.put(request.names().get(i), (Long) numbers.get(i));
        Grant got = new Grant(this, tokens, connection);
        connection.current = got;
        io.holds(got);
        long leaseNs = request.leaseMs() * Clock.NS_PER_MS;
        if (leaseNs > 0)
            got.leased(sent + leaseNs);
        if (leaseNs > 0 && Clock.now() - sent >= leaseNs / LEASE_SLACK_PART)
            connection.renew(got, request.leaseMs(), Call.then(() -> prove(got)));
        else
            prove(got);
    }

    private void prove(Grant got) {
        if (got.mustAsk())
            connection.question(got, Call.then(() -> granted(got)));
        else
            granted(got);
    }

    private void granted(Grant got) {
        if (connection == null) // withdrawn meanwhile
            return;
        state = State.DONE;
        if (got.lostReason() != null) {
            fail(got.lost());
            return;
        }
        grant = got;
        complete();
    }

    /** Null: somebody else holds it. The connection, if there is one, goes to the next, or is idle. */
    @Override
    public final void failed(LockBrokerException why) {
        if (state == State.DONE)
            return;
        Connection its = connection;
        end();
        if (!Tier.leave(this, its) && its != null && its.current == this)
            its.free();
        if (why == null)
            complete();
        else
            fail(why);
    }

    private void end() {
        state = State.DONE;
        io.pool.forget(this);
    }

    /**
     * The time to wait is over. The broker tells that by itself; the queue of the JVM does not know what the broker
     * would.
     */
    @Override
    final void expire() {
        if (state == State.QUEUED && tier.isHeld()) {
            failed(null);
        } else if (state == State.QUEUED) {
            Tier.leave(this, null);
            tier = null;
            io.start(this);
        }
    }

    @Override
    final void giveUp() {
        if (state == State.DONE)
            return;
        Connection its = disconnect();
        if (its != null)
            its.cut();
        failed(new NotAvailable("CONNECTION",
                "The lockbrokerd at " + io.path + " did not answer in time about " + request + "."));
    }

    /** Is complete when the broker has ended the connection: nothing stays queued. */
    @Override
    final void withdraw() {
        if (state == State.DONE)
            return;
        Connection its = disconnect();
        if (its == null)
            failed(null);
        else
            its.end(() -> failed(null));
    }

    /** What is answered from now on concerns nobody. */
    private Connection disconnect() {
        Connection its = connection;
        if (its != null && its.current instanceof Grant got) {
            got.released();
            io.holdsNoLonger(got);
        }
        if (its != null)
            its.current = null;
        connection = null;
        return its;
    }
}
