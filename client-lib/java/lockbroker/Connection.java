// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** A connection to the broker. Only the I/O thread uses it; it holds one thing at a time, which ends with it. */
final class Connection {
    /** The answer to a request whose connection ended. */
    static final Object ENDED = new Object();

    private static final String UNGREETED = "lockbrokerd has closed the connection without a word: it starts again, or this "
            + "user has too many connections, of which many have not read that they were refused (\"lockbroker accounts\" "
            + "shows who has them). Close some, and try again.";

    static final String SILENT = "SILENT";
    private static final long END_NS = 1000 * Clock.NS_PER_MS;

    final Io io;
    /** Who uses it: a Task, or a Grant, which it holds; null: it is idle. */
    Object current;
    Page page;

    private final SocketChannel channel;
    private final SelectionKey key;
    private final Resp.Parser parser = new Resp.Parser();
    private final Deque<Consumer<Object>> answers = new ArrayDeque<>();
    private byte[] out = new byte[256];
    private int outBytes;
    private boolean closed, greeted, cut, ends;
    private Runnable whenClosed = () -> { };
    private LockBrokerException refusal;
    private String group = "";
    private Grant previous;
    private final Io.Timer silence;

    /** It is connected, and says HELLO with what is sent next. */
    Connection(Io io, SocketChannel channel, SelectionKey key) {
        this.io = io;
        this.channel = channel;
        this.key = key;
        send(List.of("HELLO", "3"), this::greeting);
        silence = io.after(io.patienceNs, () -> {
            if (!greeted && !closed) {
                refusal = new NotAvailable(SILENT, "The lockbrokerd at " + io.path + " did not answer in time.");
                close();
            }
        });
    }

    boolean isClosed() {
        return closed;
    }

    private void greeting(Object answer) {
        io.notAfter(silence); // the timer would keep this connection in memory until the patience is over
        if (answer instanceof Map<?, ?> hello) {
            greeted = true;
            io.pool.reached();
            page = io.page(hello);
        } else if (answer instanceof Resp.ErrorReply error) {
            refusal = LockBrokerException.of(error);
            close();
        } else if (answer != ENDED) {
            refusal = new LockBrokerException("ERR", "Whoever serves " + io.path + " does not greet as lockbrokerd does.");
            close();
        }
    }

    /** Why it has ended. After a NotAvailable that is not SILENT another one may be better. */
    LockBrokerException why() {
        if (refusal != null)
            return refusal;
        return new NotAvailable("CONNECTION", greeted ? "The connection to lockbrokerd ended." : UNGREETED);
    }

    // ---- requests ----

    /** What is sent in one turn of the I/O thread goes in one write. The answer is ENDED if there is none. */
    void send(List<String> words, Consumer<Object> answer) {
        if (closed) {
            answer.accept(ENDED);
            return;
        }
        answers.add(answer);
        byte[] request = Resp.encode(words);
        if (out.length - outBytes < request.length)
            out = Arrays.copyOf(out, Math.max(2 * out.length, outBytes + request.length));
        System.arraycopy(request, 0, out, outBytes, request.length);
        if (outBytes == 0)
            io.toFlush(this);
        outBytes += request.length;
    }

    /** The lock group of the thread that asks next: what it waits for by one connection is a wait of all. */
    void join(String its) {
        if (group.equals(its))
            return;
        group = its;
        send(List.of("CLIENT", "SETINFO", "OWNER", its), answer -> { });
    }

    /** UNLOCK, and in the same write what the next thread of the queue asks. */
    void release(Grant grant, boolean proven, Call call) {
        if (grant.lostReason() != null || current != grant) {
            call.complete();
            return;
        }
        current = null;
        previous = grant;
        io.holdsNoLonger(grant);
        send(grant.request.release(grant.tokens), answer -> {
            if (answer == ENDED && !(cut && proven)) // what was proven when this end was cut off was held
                grant.lose("connection");
            else if (answer instanceof Resp.ErrorReply)
                grant.lose("session");
            grant.released();
            if (current == null)
                free();
            io.completeLater(call);
        });
        Tier.leave(grant.ask, this);
    }

    /** Nobody uses it any longer. */
    void free() {
        current = null;
        if (!closed)
            io.pool.idle(this);
    }

    void renew(Grant grant, long ms, Call call) {
        long sent = Clock.noLater();
        List<String> names = grant.request.names();
        for (String name : names) {
            Call its = name.equals(names.get(names.size() - 1)) ? call : new Call();
            ofHeld(grant, List.of("RENEW", name, Long.toString(ms)), its, () -> grant.leased(sent + ms * Clock.NS_PER_MS));
        }
    }

    void downgrade(Grant grant, Call call) {
        ofHeld(grant, List.of("DOWNGRADE", grant.request.name()), call, () -> { });
    }

    private void ofHeld(Grant grant, List<String> words, Call call, Runnable done) {
        if (grant.lostReason() != null || current != grant) {
            call.complete();
            return;
        }
        send(words, answer -> {
            LockBrokerException why = answer instanceof Resp.ErrorReply error ? LockBrokerException.of(error) : null;
            if (answer == ENDED)
                grant.lose("connection");
            else if (why != null && (why.code().equals("LOST") || why.code().equals("NOTHELD")))
                grant.lose("session");
            else if (why != null)
                call.fail(why);
            else
                done.run();
            if (!call.isDone())
                call.complete();
        });
    }

    /** For a page that has moved, where the new one is; without a page, for how long the grant is proven. */
    void question(Grant grant, Call call) {
        if (closed || current != grant) {
            call.complete();
            return;
        }
        grant.asked();
        if (grant.hasPage()) {
            send(List.of("HELLO"), answer -> {
                if (answer instanceof Map<?, ?> hello) {
                    page = io.page(hello);
                    grant.takePage(page);
                }
                call.complete();
            });
            return;
        }
        long sent = Clock.noLater();
        List<Long> said = new ArrayList<>();
        for (String name : grant.request.names())
            send(List.of("VALID", name), answer -> {
                said.add(answer instanceof Long ms ? ms : -1L);
                if (said.size() < grant.request.names().size())
                    return;
                if (!said.contains(-1L))
                    grant.takeProof(sent, said.stream().min(Long::compare).orElseThrow());
                call.complete();
            });
    }

    // ---- what comes ----

    void received(ByteBuffer data) {
        parser.feed(data);
        try {
            for (Object value = parser.next(); value != Resp.MORE && !closed; value = parser.next())
                take(value);
        } catch (IOException e) {
            refusal = new LockBrokerException("ERR",
                    "The lockbrokerd at " + io.path + " does not speak its protocol: " + e.getMessage());
            close();
        }
    }

    private void take(Object value) {
        Consumer<Object> answer = value instanceof Resp.Push ? null : answers.poll();
        if (value instanceof Resp.Push push) {
            heed(push);
        } else if (answer != null) {
            answer.accept(value);
        } else {
            if (value instanceof Resp.ErrorReply error)
                refusal = LockBrokerException.of(error);
            close();
        }
    }

    private void heed(Resp.Push push) {
        if (current instanceof Election.Observation observation)
            observation.heed(push);
        else if (push.is("lost", 4) && isOf(push, current))
            ((Grant) current).lose(push.text(3));
        else if (push.is("lost", 4) && isOf(push, previous))
            previous.lose(push.text(3));
        else if (push.is("revoke", 4) && isOf(push, current))
            ((Grant) current).revoke(push.text(3));
    }

    private static boolean isOf(Resp.Push push, Object what) {
        return what instanceof Grant grant && grant.request.names().contains(push.text(1))
                && (grant.tokens.isEmpty() || grant.tokens.get(push.text(1)).equals(push.items().get(2)));
    }

    /** A grant of it was lost: whatever the broker thinks, it holds nothing any longer. */
    void lost(Grant grant) {
        io.holdsNoLonger(grant);
        if (current != grant)
            return;
        current = null;
        close();
        Tier.leave(grant.ask, null);
    }

    /** The broker is silent. The end of the connection releases everything. */
    void cut() {
        cut = true;
        close();
    }

    /**
     * Has the broker end the connection when it has answered what was sent: what waits there is withdrawn, what is
     * granted by then is released. A broker that does not do so soon is cut off.
     */
    void end(Runnable then) {
        current = null;
        if (closed) {
            then.run();
            return;
        }
        whenClosed = then;
        ends = true;
        io.toFlush(this);
        io.after(END_NS, this::cut);
    }

    void close() {
        if (closed)
            return;
        closed = true;
        io.forget(this);
        try {
            channel.close();
        } catch (IOException e) {
            Io.complain(e);
        }
        if (current instanceof Grant grant)
            grant.lose("connection");
        for (Consumer<Object> answer = answers.poll(); answer != null; answer = answers.poll())
            answer.accept(ENDED);
        if (current instanceof Election.Observation observation)
            observation.ended(why());
        whenClosed.run();
    }

    // ---- the channel ----

    /** Reads what there is. */
    void readable(ByteBuffer buffer) {
        while (!closed) {
            int count;
            buffer.clear();
            try {
                count = channel.read(buffer);
            } catch (IOException e) {
                count = -1;
            }
            if (count == 0)
                return;
            if (count < 0)
                close();
            else
                received(buffer.flip());
            if (count < buffer.capacity())
                return;
        }
    }

    /** A broker that refuses a client says why before it closes: the reader finds it, so a failure to write is none. */
    void flush() {
        if (closed)
            return;
        try {
            int count = channel.write(ByteBuffer.wrap(out, 0, outBytes));
            System.arraycopy(out, count, out, 0, outBytes - count);
            outBytes -= count;
            if (ends && outBytes == 0)
                channel.shutdownOutput();
        } catch (IOException e) {
            outBytes = 0;
        }
        key.interestOps(outBytes > 0 ? SelectionKey.OP_READ | SelectionKey.OP_WRITE : SelectionKey.OP_READ);
    }
}
