// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import lockbroker.BrokerLock;
import lockbroker.Held;
import lockbroker.LockBroker;
import lockbroker.Lost;

/**
 * JavaRace NAME FOLDER THREADS ROUNDS: threads of one JVM take a lock in each of the ways that there are, are interrupted
 * at random, and add one to the number in FOLDER/n while they hold it. A file in FOLDER/inside shows who is inside: anybody
 * else's is an overlap. FOLDER/token has the latest token: each has to be larger. Prints "additions overlaps losses
 * interrupts".
 */
public class JavaRace {
    /** A round that begins to write is over long before that. */
    private static final long PROVEN_MS = 1000;

    private final LockBroker broker = LockBroker.open();
    private final String name;
    private final Path number, token, inside;
    private final AtomicInteger additions = new AtomicInteger(), overlaps = new AtomicInteger();
    private final AtomicInteger losses = new AtomicInteger(), interrupts = new AtomicInteger();

    private JavaRace(String name, Path folder) {
        this.name = name;
        number = folder.resolve("n");
        token = folder.resolve("token");
        inside = folder.resolve("inside");
    }

    private static long read(Path file) throws IOException {
        return Long.parseLong(Files.readString(file).strip());
    }

    private void whileHeld(Held held) throws IOException {
        if (held.validFor().toMillis() < PROVEN_MS)
            return;
        Path own = inside.resolve("w.java-" + ProcessHandle.current().pid() + "-" + Thread.currentThread().getId());
        Files.createFile(own);
        try (var files = Files.list(inside)) {
            if (files.anyMatch(file -> !file.equals(own)))
                overlaps.incrementAndGet();
        }
        if (held.token() <= read(token))
            throw new AssertionError("token " + held.token() + " after " + read(token));
        Files.writeString(token, held.token() + "\n");
        long was = read(number);
        Thread.yield();
        Files.writeString(number, (was + 1) + "\n");
        additions.incrementAndGet();
        Files.delete(own);
    }

    private boolean round(Random random) throws IOException, InterruptedException {
        BrokerLock lock = broker.lock(name);
        switch (random.nextInt(4)) {
            case 0 -> lock.lock();
            case 1 -> lock.lockInterruptibly();
            case 2 -> {
                if (!lock.tryLock(1 + random.nextInt(200), TimeUnit.MILLISECONDS))
                    return false;
            }
            default -> {
                if (!lock.tryLock())
                    return false;
            }
        }
        try (Held held = lock.held()) {
            boolean interrupted = Thread.interrupted();
            whileHeld(held);
            if (interrupted)
                Thread.currentThread().interrupt();
        }
        return true;
    }

    private void work(int rounds, long seed) throws IOException {
        Random random = new Random(seed);
        for (int done = 0; done < rounds;) {
            try {
                done += round(random) ? 1 : 0;
            } catch (InterruptedException e) {
                interrupts.incrementAndGet();
            } catch (Lost e) { // what was written was proven to be held
                losses.incrementAndGet();
                done++;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        JavaRace race = new JavaRace(args[0], Path.of(args[1]));
        List<Thread> threads = new ArrayList<>();
        List<Throwable> wrong = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(args[2]); i++) {
            int seed = i;
            Thread thread = new Thread(() -> {
                try {
                    race.work(Integer.parseInt(args[3]), seed);
                } catch (IOException | RuntimeException | Error e) {
                    synchronized (wrong) {
                        wrong.add(e);
                    }
                }
            });
            thread.start();
            threads.add(thread);
        }
        Random random = new Random(0);
        while (threads.stream().anyMatch(Thread::isAlive)) {
            threads.get(random.nextInt(threads.size())).interrupt();
            Thread.sleep(random.nextInt(20)); // no wait: at any moment
        }
        for (Throwable e : wrong)
            e.printStackTrace();
        System.out.println(race.additions + " " + race.overlaps + " " + race.losses + " " + race.interrupts);
        System.exit(wrong.isEmpty() ? 0 : 1);
    }
}
