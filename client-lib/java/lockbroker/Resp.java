// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import static java.nio.charset.StandardCharsets.UTF_8;

/** RESP3, as far as lockbrokerd speaks it. No I/O. */
final class Resp {
    /** There is no whole value yet. */
    static final Object MORE = new Object();

    private static final int LINE_BYTES_MAX = 64 * 1024;
    private static final int REPLY_BYTES_MAX = 16 * 1024 * 1024;
    private static final int ITEMS_MAX = 1024 * 1024;
    private static final int DEPTH_MAX = 16;

    private Resp() {
    }

    /** An error of the broker: "CODE sentence". */
    record ErrorReply(String text) {
        String code() {
            return text.split(" ", 2)[0];
        }

        String sentence() {
            String[] parts = text.split(" ", 2);
            return parts[parts.length - 1];
        }
    }

    /** What the broker sends without being asked. */
    record Push(List<Object> items) {
        boolean is(String event, int least) {
            return items.size() >= least && event.equals(items.get(0));
        }

        String text(int i) {
            return String.valueOf(items.get(i));
        }
    }

    /** A request. */
    static byte[] encode(List<String> words) {
        StringBuilder text = new StringBuilder();
        text.append('*').append(words.size()).append("\r\n");
        for (String word : words)
            text.append('$').append(word.getBytes(UTF_8).length).append("\r\n").append(word).append("\r\n");
        return text.toString().getBytes(UTF_8);
    }

    /**
     * Values out of bytes as they come. Texts are String, numbers Long, nil null, else ErrorReply, List, Map or Push.
     */
    static final class Parser {
        private record Open(byte kind, int count, List<Object> items) {
        }

        private byte[] buffer = new byte[4096];
        private int from, to;
        private final Deque<Open> open = new ArrayDeque<>();
        private int items;
        private boolean opened;

        void feed(ByteBuffer data) {
            int more = data.remaining();
            if (buffer.length - to < more) {
                int most = to - from + more;
                byte[] roomier = most <= buffer.length / 2 ? buffer : new byte[Math.max(2 * buffer.length, most)];
                System.arraycopy(buffer, from, roomier, 0, to - from);
                to -= from;
                from = 0;
                buffer = roomier;
            }
            data.get(buffer, to, more);
            to += more;
        }

        /** The next whole value, or MORE. IOException: it is no RESP. */
        Object next() throws IOException {
            while (true) {
                Object value = element();
                if (value == MORE) {
                    if (to - from > REPLY_BYTES_MAX)
                        throw new IOException("a reply is longer than " + REPLY_BYTES_MAX + " bytes");
                    return MORE;
                }
                if (opened)
                    continue;
                while (!open.isEmpty()) {
                    Open last = open.peek();
                    last.items.add(value);
                    if (last.items.size() < last.count)
                        break;
                    open.pop();
                    value = close(last);
                }
                if (open.isEmpty()) {
                    items = 0;
                    return value;
                }
            }
        }

        /** A scalar or an empty aggregate; or, with opened set, the head of one; or MORE, and nothing is used. */
        private Object element() throws IOException {
            opened = false;
            int end = lineEnd();
            if (end < 0)
                return MORE;
            byte kind = buffer[from];
            int begin = from + 1, next = end + 2;
            switch (kind) {
                case '$':
                    if (isMinusOne(begin, end))
                        break;
                    int count = count(begin, end);
                    if (count > REPLY_BYTES_MAX)
                        throw new IOException("a text is longer than " + REPLY_BYTES_MAX + " bytes");
                    if (to - next < count + 2)
                        return MORE;
                    if (buffer[next + count] != '\r' || buffer[next + count + 1] != '\n')
                        throw new IOException("a text is longer than announced");
                    from = next + count + 2;
                    return new String(buffer, next, count, UTF_8);
                case ':':
                    from = next;
                    return number(begin, end);
                case '+':
                    from = next;
                    return new String(buffer, begin, end - begin, UTF_8);
                case '-':
                    from = next;
                    return new ErrorReply(new String(buffer, begin, end - begin, UTF_8));
                case '_':
                    break;
                case '*':
                    if (isMinusOne(begin, end))
                        break;
                    return begin(kind, count(begin, end), next);
                case '%':
                case '>':
                    return begin(kind, count(begin, end), next);
                default:
                    throw new IOException("a byte " + kind + " begins no RESP of lockbrokerd");
            }
            from = next;
            return null;
        }

        private int lineEnd() throws IOException {
            for (int i = from; i < to - 1; i++)
                if (buffer[i] == '\r' && buffer[i + 1] == '\n' && i > from)
                    return i;
                else if (i - from > LINE_BYTES_MAX)
                    throw new IOException("a line is longer than " + LINE_BYTES_MAX + " bytes");
            return -1;
        }

        private Object begin(byte kind, int count, int next) throws IOException {
            int each = kind == '%' ? 2 : 1;
            if (count > ITEMS_MAX || (items += each * count) > ITEMS_MAX)
                throw new IOException("a reply has more than " + ITEMS_MAX + " items");
            if (open.size() >= DEPTH_MAX)
                throw new IOException("a reply is nested deeper than " + DEPTH_MAX);
            from = next;
            Open begun = new Open(kind, each * count, new ArrayList<>(Math.min(each * count, 64)));
            if (count == 0)
                return close(begun);
            open.push(begun);
            opened = true;
            return null;
        }

        private static Object close(Open whole) {
            if (whole.kind == '>')
                return new Push(whole.items);
            if (whole.kind == '*')
                return whole.items;
            Map<String, Object> map = new LinkedHashMap<>();
            for (int i = 0; i < whole.items.size(); i += 2)
                map.put(String.valueOf(whole.items.get(i)), whole.items.get(i + 1));
            return map;
        }

        private boolean isMinusOne(int begin, int end) {
            return end - begin == 2 && buffer[begin] == '-' && buffer[begin + 1] == '1';
        }

        private long number(int begin, int end) throws IOException {
            try {
                return Long.parseLong(new String(buffer, begin, end - begin, UTF_8));
            } catch (NumberFormatException e) {
                throw new IOException("no number: " + e.getMessage(), e);
            }
        }

        private int count(int begin, int end) throws IOException {
            long count = number(begin, end);
            if (count < 0 || count > Integer.MAX_VALUE)
                throw new IOException("no length: " + count);
            return (int) count;
        }
    }
}
