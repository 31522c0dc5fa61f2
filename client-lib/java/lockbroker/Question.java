// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.util.List;

/** Any command that is answered at once, on a connection of its own. */
final class Question extends Call implements Task {
    private final Io io;
    private final List<String> words;
    private Object answer;
    private Connection connection;

    Question(Io io, List<String> words) {
        this.io = io;
        this.words = words;
    }

    Object ask() {
        io.post(() -> {
            if (io.isClosing())
                fail(Io.closed());
            else
                io.pool.connect(this);
        });
        // The pool gives up a broker that is away after the patience; one that was reached has as long to answer.
        if (!await(2 * io.patienceNs) && !isDone()) {
            io.post(() -> {
                if (connection != null)
                    connection.close();
                if (!isDone())
                    fail(new NotAvailable("CONNECTION", "The lockbrokerd at " + io.path + " did not answer in time."));
            });
            await(io.patienceNs);
        }
        if (failure() != null)
            throw failure().here();
        return answer;
    }

    @Override
    public void on(Connection its) {
        connection = its;
        its.current = this;
        its.send(words, this::answered);
    }

    private void answered(Object value) {
        if (isDone())
            return;
        LockBrokerException why = value == Connection.ENDED ? connection.why() : null;
        if (why != null) {
            io.pool.again(this, why, false);
            return;
        }
        if (value instanceof Resp.ErrorReply error) {
            fail(LockBrokerException.of(error));
        } else {
            answer = value;
            complete();
        }
        connection.close();
    }

    @Override
    public void failed(LockBrokerException why) {
        fail(why);
    }

    @Override
    public boolean isOver() {
        return isDone();
    }
}
