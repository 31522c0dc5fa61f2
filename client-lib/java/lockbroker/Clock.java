// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The clock of proofs and leases. Java has none that counts suspension, but Linux shows CLOCK_BOOTTIME, the clock of
 * the session page, in /proc/uptime, to 10 ms. Where that file is not the kernel's (lxcfs), or cannot be read, there is
 * System.nanoTime(), which stands still while the machine is suspended: then the page, which has instants of the other
 * clock, is of no use.
 */
final class Clock {
    static final long FOREVER = Long.MAX_VALUE;
    static final long NS_PER_MS = 1_000_000;

    private static final long GRAIN_NS = 10 * NS_PER_MS;
    private static final int LINE_BYTES_MAX = 64;
    // Not a channel: an interrupt of a thread that reads a channel closes it for all.
    private static final RandomAccessFile UPTIME = open();
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final byte[] LINE = new byte[LINE_BYTES_MAX];

    private Clock() {
    }

    /** Whether it has the instants of the session page, and counts suspension. */
    static boolean isOfBoot() {
        return UPTIME != null;
    }

    /** Nanoseconds; not earlier than the present instant. */
    static long now() {
        return UPTIME == null ? System.nanoTime() : uptime() + GRAIN_NS;
    }

    /** Nanoseconds; not later than the present instant: for what is counted from here on. */
    static long noLater() {
        return UPTIME == null ? System.nanoTime() : uptime();
    }

    private static RandomAccessFile open() {
        Path path = Path.of(System.getProperty("lockbroker.uptime", "/proc/uptime"));
        try {
            if (!Files.getFileStore(path).type().equals("proc"))
                return null;
            RandomAccessFile file = new RandomAccessFile(path.toFile(), "r");
            return file.read() >= '0' ? file : null;
        } catch (IOException | SecurityException e) {
            return null;
        }
    }

    private static long uptime() {
        LOCK.lock();
        try {
            UPTIME.seek(0);
            return parse(LINE, UPTIME.read(LINE));
        } catch (IOException e) {
            return FOREVER - 2 * GRAIN_NS; // by this clock everything has run out
        } finally {
            LOCK.unlock();
        }
    }

    /** "350735.47 234388.90": the first number, as nanoseconds. */
    static long parse(byte[] line, int count) {
        long hundredths = 0;
        for (int i = 0; i < count && line[i] != ' '; i++)
            hundredths = line[i] == '.' ? hundredths : hundredths * 10 + line[i] - '0';
        return hundredths * GRAIN_NS;
    }
}
