// SPDX-License-Identifier: Apache-2.0
package lockbroker;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;

import org.junit.Test;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

/** The codec: requests, and values however the stream is cut. And the other parts that need no broker. */
public class RespTest {
    private static List<Object> parse(byte[] stream, int... cuts) throws IOException {
        Resp.Parser parser = new Resp.Parser();
        List<Object> whole = new ArrayList<>();
        int from = 0;
        for (int i = 0; i <= cuts.length; i++) {
            int to = i < cuts.length ? cuts[i] : stream.length;
            parser.feed(ByteBuffer.wrap(stream, from, to - from));
            for (Object value = parser.next(); value != Resp.MORE; value = parser.next())
                whole.add(value);
            from = to;
        }
        return whole;
    }

    @Test
    public void requestsAreArraysOfBulkStrings() {
        assertArrayEquals("*2\r\n$4\r\nLOCK\r\n$2\r\n\u00e4\r\n".getBytes(UTF_8), Resp.encode(List.of("LOCK", "\u00e4")));
        assertArrayEquals("*1\r\n$0\r\n\r\n".getBytes(UTF_8), Resp.encode(List.of("")));
    }

    @Test
    public void valuesDoNotDependOnHowTheStreamIsCut() throws IOException {
        byte[] stream = (":42\r\n+OK\r\n-CODE a sentence\r\n$5\r\nh\r\nlo\r\n$0\r\n\r\n_\r\n$-1\r\n*-1\r\n*0\r\n"
                + "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*2\r\n:-7\r\n*1\r\n_\r\n"
                + ">2\r\n$4\r\nlost\r\n$2\r\n\u00e4\r\n").getBytes(UTF_8);
        Map<String, Object> map = Map.of("a", 1L, "b", Arrays.asList(-7L, Arrays.asList((Object) null)));
        List<Object> expected = Arrays.asList(42L, "OK", new Resp.ErrorReply("CODE a sentence"), "h\r\nlo", "", null, null,
                null, List.of(), map, new Resp.Push(List.of("lost", "\u00e4")));
        assertEquals(expected, parse(stream));
        for (int i = 0; i < stream.length; i++)
            assertEquals(expected, parse(stream, i));
        Random random = new Random(1);
        for (int i = 0; i < 200; i++)
            assertEquals(expected, parse(stream, random.ints(20, 0, stream.length).sorted().toArray()));
    }

    @Test
    public void whatIsNoRespIsRefused() {
        for (String text : List.of("HTTP/1.1 400\r\n", "$3\r\nabcd\r\n", "$-2\r\n", ":x\r\n", "*99999999\r\n", "%600000\r\n",
                "*1\r\n".repeat(20), "$99999999\r\n", "x".repeat(70_000)))
            assertThrows(text, IOException.class, () -> parse(text.getBytes(UTF_8)));
    }

    @Test
    public void aLongReplyIsReadInPieces() throws IOException {
        StringBuilder text = new StringBuilder("*20000\r\n");
        for (int i = 0; i < 20_000; i++)
            text.append("$4\r\nname\r\n");
        byte[] stream = text.toString().getBytes(UTF_8);
        int[] cuts = new int[stream.length / 1000];
        for (int i = 0; i < cuts.length; i++)
            cuts[i] = i * 1000;
        assertEquals(20_000, ((List<?>) parse(stream, cuts).get(0)).size());
    }

    @Test
    public void theClockReadsUptimeAndNeverSaysTooLittle() {
        byte[] line = "350735.47 234388.90\n".getBytes(UTF_8);
        assertEquals(350_735_470_000_000L, Clock.parse(line, line.length));
        long before = Clock.noLater(), nano = System.nanoTime();
        long passed = System.nanoTime() - nano;
        assertEquals(Clock.isOfBoot(), Clock.now() > Clock.noLater() + 9_000_000);
        assertEquals(true, Clock.now() - before >= passed);
    }

    @Test
    public void timesAreRoundedUpAndAtMostAYear() {
        assertEquals(1, Request.milliseconds(java.time.Duration.ofNanos(1)));
        assertEquals(31_536_000_000L, Request.milliseconds(java.time.Duration.ofSeconds(Long.MAX_VALUE)));
        assertThrows(IllegalArgumentException.class, () -> Request.milliseconds(java.time.Duration.ofMillis(-1)));
    }
}
