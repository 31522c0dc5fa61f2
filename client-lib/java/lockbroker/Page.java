// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * The session page of PROTOCOL.md: what the broker has proven, in memory that it shares. It stays true while the broker
 * hangs.
 */
final class Page {
    private static final long SAFE = 1, JEOPARDY = 2, MOVED = 4;
    private static final int BYTES = 64, TRIES = 1000;
    private static final int SEQUENCE = 8, EPOCH = 16, STATE = 24, SAFE_UNTIL = 32, ID = 40, ID_BYTES = 16;
    private static final int MAGIC = 0x4C425350, VERSION = 1;
    private static final VarHandle WORDS = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    /** What it says. A page that has moved is not written any longer, and counts until its safeUntil. */
    record View(long epoch, long state, long safeUntil) {
        boolean moved() {
            return state == MOVED;
        }

        boolean proven() {
            return state == SAFE || state == JEOPARDY || state == MOVED;
        }
    }

    final String id;
    private final ByteBuffer memory;
    private volatile View seen;

    private Page(String id, ByteBuffer memory) {
        this.id = id;
        this.memory = memory;
    }

    /**
     * The page of that id, or null: there is none, or what stands at the path is another broker's, as it may be in
     * another mount namespace. Then the broker has to be asked.
     */
    static Page find(String path, String id) {
        if (path.isEmpty() || id.isEmpty())
            return null;
        try (FileChannel file = FileChannel.open(Path.of(path), StandardOpenOption.READ)) {
            if (file.size() != BYTES)
                return null;
            Page page = new Page(id, file.map(FileChannel.MapMode.READ_ONLY, 0, BYTES).order(ByteOrder.nativeOrder()));
            page.seen = page.readOnce();
            return page.seen != null && page.idInMemory().equals(id) ? page : null;
        } catch (IOException | IllegalArgumentException e) {
            return null;
        }
    }

    private String idInMemory() {
        StringBuilder hex = new StringBuilder();
        for (int i = 0; i < ID_BYTES; i++)
            hex.append(String.format("%02x", memory.get(ID + i)));
        return hex.toString();
    }

    /** What it says, or said last: a writer that is stopped or killed while it writes leaves it unreadable. */
    View read() {
        View now = readOnce();
        if (now != null)
            seen = now;
        return seen;
    }

    private View readOnce() {
        if (memory.getInt(0) != MAGIC || memory.getInt(4) != VERSION)
            return null;
        for (int i = 0; i < TRIES; i++) {
            long sequence = word(SEQUENCE);
            View view = new View(word(EPOCH), word(STATE), word(SAFE_UNTIL));
            VarHandle.acquireFence();
            if (sequence % 2 == 0 && word(SEQUENCE) == sequence)
                return view.state > MOVED ? null : view;
        }
        return null;
    }

    private long word(int offset) {
        return (long) WORDS.getAcquire(memory, offset);
    }
}
