// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.util.ArrayList;
import java.util.List;

/**
 * One of several locks: it is asked for all of them, the first grant wins, the other requests are withdrawn, and other
 * grants are released unseen. It is complete when all of that is over. But for the thread that waits, only the I/O
 * thread uses it.
 */
final class AnyOf extends Wish {
    private final List<Ask> asks = new ArrayList<>();
    private int open;
    private Grant first;
    private LockBrokerException why;

    /** Of no lock group: to wait for one of several is no cycle if one of them cannot come. */
    AnyOf(Io io, List<Request> requests, long waitNs) {
        super(io, waitNs);
        for (Request request : requests)
            asks.add(new Ask(io, request, "", true, waitNs) {
                @Override
                void complete() {
                    super.complete();
                    over(this);
                }
            });
        open = asks.size();
    }

    @Override
    void begin() {
        asks.forEach(Ask::begin);
    }

    private void over(Ask ask) {
        if (ask.grant() != null && first == null) {
            first = ask.grant();
            io.post(this::withdraw);
        } else if (ask.grant() != null) {
            ask.grant().connection.release(ask.grant(), true, new Call());
        } else if (ask.failure() != null) {
            why = ask.failure();
        }
        if (--open > 0)
            return;
        if (first == null && why != null)
            fail(why);
        else
            complete();
    }

    @Override
    void expire() {
        asks.forEach(Ask::expire);
    }

    @Override
    void giveUp() {
        asks.forEach(Ask::giveUp);
    }

    @Override
    void withdraw() {
        asks.forEach(Ask::withdraw);
    }

    @Override
    Grant grant() {
        return first;
    }
}
