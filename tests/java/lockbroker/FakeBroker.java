// SPDX-License-Identifier: Apache-2.0
package lockbroker;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;

import static java.nio.charset.StandardCharsets.UTF_8;

/** A broker that grants everything, unless a test has it answer otherwise. It has no session page. */
final class FakeBroker implements AutoCloseable {
    /** One connection of a client. */
    final class Peer {
        final SocketChannel channel;

        Peer(SocketChannel channel) {
            this.channel = channel;
        }

        void say(String text) throws IOException {
            channel.write(ByteBuffer.wrap(text.getBytes(UTF_8)));
        }
    }

    /** What is answered: RESP, "" for nothing, null for what the broker would say. */
    interface Answers {
        String answer(Peer peer, List<String> words) throws Exception;
    }

    final String path;
    // A test reads these while a connection adds to them.
    final List<String> heard = new CopyOnWriteArrayList<>();
    final List<String> chunks = new CopyOnWriteArrayList<>();
    final AtomicLong tokens = new AtomicLong();
    volatile Answers answers = (peer, words) -> null;
    volatile String onHalfClose = "";
    private final Path folder;
    private final List<SocketChannel> channels = new CopyOnWriteArrayList<>();
    private ServerSocketChannel server;
    private Fixture.Running<Void> accepts;

    FakeBroker() throws IOException {
        folder = Files.createTempDirectory("fake");
        path = folder.resolve("socket").toString();
        start();
    }

    void start() throws IOException {
        Files.deleteIfExists(Path.of(path));
        ServerSocketChannel its = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        its.bind(UnixDomainSocketAddress.of(path));
        server = its;
        accepts = Fixture.start(() -> {
            while (true) {
                SocketChannel channel = its.accept();
                channels.add(channel);
                Fixture.start(() -> serve(new Peer(channel)));
            }
        });
    }

    /** The socket stays, as that of a broker that is being started again. */
    void stop() throws IOException {
        server.close();
        try {
            accepts.thread.join(); // until it has ended, it may accept one more
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        for (SocketChannel channel : channels)
            channel.close();
        channels.clear();
    }

    @Override
    public void close() throws IOException {
        stop();
        Files.deleteIfExists(Path.of(path));
        Files.delete(folder);
    }

    int connections() {
        return (int) channels.stream().filter(SocketChannel::isOpen).count();
    }

    private void serve(Peer peer) throws Exception {
        ByteBuffer buffer = ByteBuffer.allocate(65536);
        Resp.Parser parser = new Resp.Parser();
        try {
            while (peer.channel.read(buffer) >= 0) {
                chunks.add(new String(buffer.array(), 0, buffer.position(), UTF_8));
                parser.feed(buffer.flip());
                buffer.clear();
                for (Object request = parser.next(); request != Resp.MORE; request = parser.next())
                    answer(peer, ((List<?>) request).stream().map(String.class::cast).toList());
            }
            peer.say(onHalfClose);
        } finally {
            peer.channel.close();
        }
    }

    private void answer(Peer peer, List<String> words) throws Exception {
        heard.add(String.join(" ", words));
        String answer = answers.answer(peer, words);
        peer.say(answer != null ? answer : switch (words.get(0)) {
            case "HELLO" -> "%2\r\n$12\r\nsession_page\r\n$0\r\n\r\n$15\r\nsession_page_id\r\n$0\r\n\r\n";
            case "LOCK" -> ":" + tokens.incrementAndGet() + "\r\n";
            case "UNLOCK" -> ":0\r\n";
            case "VALID" -> ":60000\r\n";
            case "PING" -> "+PONG\r\n";
            default -> "+OK\r\n";
        });
    }
}
