// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import lockbroker.BrokerLock;
import lockbroker.Held;
import lockbroker.LockBroker;
import lockbroker.LockBrokerException;

/** Does with the Java library what test_java.py says line by line, in one thread, and prints what came of it. */
public class JavaDriver {
    private final LockBroker broker = LockBroker.open(null, Duration.ofSeconds(Long.getLong("patience", 10)));
    private final Map<String, BlockingQueue<String>> lost = new HashMap<>();
    private FutureTask<String> waits;

    private void countUp(Path file, int times, String name) throws IOException {
        for (int i = 0; i < times; i++) {
            try (Held held = broker.lock(name).hold()) {
                long number = Long.parseLong(Files.readString(file).strip());
                Thread.yield();
                Files.writeString(file, (number + 1) + "\n");
                held.check();
            }
        }
    }

    private String count(Path file, int times, String name, int threads) throws Exception {
        List<FutureTask<Void>> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            FutureTask<Void> task = new FutureTask<>(() -> {
                countUp(file, times, name);
                return null;
            });
            all.add(task);
            new Thread(task).start();
        }
        for (FutureTask<Void> task : all)
            task.get();
        return "counted";
    }

    private String held(String name) {
        Held held = broker.lock(name).held();
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        lost.put(name, told);
        held.onLost(why -> told.add(why.reason()), Runnable::run);
        return "held " + held.token();
    }

    private String background(String name) {
        Callable<String> work = () -> {
            try (Held held = broker.lock(name).hold()) {
                return "held " + held.token();
            }
        };
        waits = new FutureTask<>(work);
        Thread thread = new Thread(waits);
        thread.setDaemon(true);
        thread.start();
        return "waits";
    }

    private String carryOut(String[] words) throws Exception {
        String name = words.length > 1 ? words[1] : null;
        switch (words[0]) {
            case "lock":
                broker.lock(name).lock();
                return held(name);
            case "try":
                return broker.lock(name).tryLock(Long.parseLong(words[2]), TimeUnit.MILLISECONDS) ? held(name) : "taken";
            case "unlock":
                broker.lock(name).unlock();
                return "unlocked";
            case "held":
                return broker.lock(name).isHeldByCurrentThread() + " " + broker.lock(name).getHoldCount();
            case "valid":
                return "valid " + broker.lock(name).held().validFor().toMillis();
            case "lost":
                return "lost " + lost.get(name).take();
            case "background":
                return background(name);
            case "join":
                return waits.get();
            case "count":
                return count(Path.of(words[1]), Integer.parseInt(words[2]), words[3], Integer.parseInt(words[4]));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] args) throws Exception {
        JavaDriver driver = new JavaDriver();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                System.out.println(driver.carryOut(line.split(" ")));
            } catch (LockBrokerException e) {
                System.out.println("error " + e.code() + " " + e.getMessage());
            } catch (ExecutionException e) {
                System.out.println("error " + e.getCause());
            }
        }
    }
}
