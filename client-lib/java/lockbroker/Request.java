// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** What is asked for, in the words of PROTOCOL.md. */
record Request(Kind kind, List<String> names, boolean shared, long leaseMs, String data, int limit, int count) {
    enum Kind { LOCK, LOCKS, SEMAPHORE, ELECTION }

    private static final long YEAR_MS = 31_536_000_000L;

    static Request lock(String name) {
        return new Request(Kind.LOCK, List.of(name), false, 0, null, 0, 0);
    }

    static Request locks(String... names) {
        return new Request(Kind.LOCKS, List.of(names), false, 0, null, 0, 0);
    }

    static Request semaphore(String name, int limit, int count) {
        return new Request(Kind.SEMAPHORE, List.of(name), false, 0, null, limit, count);
    }

    static Request election(String name, String data) {
        return new Request(Kind.ELECTION, List.of(name), false, 0, data, 0, 0);
    }

    Request asShared(boolean with) {
        return with == shared ? this : new Request(kind, names, with, leaseMs, data, limit, count);
    }

    Request withLease(Duration lease) {
        long ms = milliseconds(lease);
        if (ms == 0)
            throw new IllegalArgumentException("a lease is longer than 0");
        return new Request(kind, names, shared, ms, data, limit, count);
    }

    Request withData(String text) {
        return new Request(kind, names, shared, leaseMs, text, limit, count);
    }

    /** Rounded up, and at most a year, as the broker has it. */
    static long milliseconds(Duration time) {
        if (time.isNegative())
            throw new IllegalArgumentException("a time from 0 on, not " + time);
        if (time.compareTo(Duration.ofMillis(YEAR_MS)) > 0)
            return YEAR_MS;
        return time.plusNanos(Clock.NS_PER_MS - 1).toMillis();
    }

    /** With a time to wait; -1: without a limit. */
    List<String> acquire(long waitMs) {
        List<String> words = begin(switch (kind) {
            case LOCK -> "LOCK";
            case LOCKS -> "MLOCK";
            case SEMAPHORE -> "ACQUIRE";
            case ELECTION -> "CAMPAIGN";
        });
        if (limit > 0)
            words.addAll(List.of("LIMIT", Integer.toString(limit), "COUNT", Integer.toString(count)));
        if (shared)
            words.add("SHARED");
        if (waitMs >= 0)
            words.addAll(List.of("WAIT", Long.toString(Math.min(waitMs, YEAR_MS))));
        if (leaseMs > 0)
            words.addAll(List.of("LEASE", Long.toString(leaseMs)));
        if (data != null)
            words.addAll(List.of("DATA", data));
        return words;
    }

    /** All of it. */
    List<String> release(Map<String, Long> tokens) {
        List<String> words = begin(switch (kind) {
            case LOCK -> "UNLOCK";
            case LOCKS -> "MUNLOCK";
            case SEMAPHORE -> "RELEASE";
            case ELECTION -> "RESIGN";
        });
        if (kind == Kind.SEMAPHORE)
            words.addAll(List.of("COUNT", Integer.toString(count)));
        if (kind == Kind.LOCK)
            words.addAll(List.of("TOKEN", Long.toString(tokens.get(names.get(0)))));
        return words;
    }

    private List<String> begin(String command) {
        List<String> words = new ArrayList<>(List.of(command));
        if (kind == Kind.LOCKS)
            words.add(Integer.toString(names.size()));
        words.addAll(names);
        return words;
    }

    String name() {
        return String.join(", ", names);
    }

    @Override
    public String toString() {
        return "the " + kind.name().toLowerCase(Locale.ROOT) + " " + name();
    }
}
