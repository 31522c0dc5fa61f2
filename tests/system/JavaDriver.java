// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;

/** Does with the class of docs/JAVA.md what test_java.py says line by line, and prints what came of it. */
public class JavaDriver {
    private BrokerLock held;

    private static void count(Path file, int times, String name) throws IOException {
        for (int i = 0; i < times; i++) {
            try (BrokerLock lock = BrokerLock.acquire(name, 60_000)) {
                long number = Long.parseLong(Files.readString(file).strip());
                Thread.yield();
                Files.writeString(file, (number + 1) + "\n");
            }
        }
    }

    private String carryOut(String[] words) throws IOException {
        switch (words[0]) {
            case "acquire":
                held = BrokerLock.acquire(words[1], Long.parseLong(words[2]));
                return held == null ? "taken" : "held " + held.token();
            case "valid":
                return "valid " + held.valid();
            case "lost":
                return "lost " + held.lost(Long.parseLong(words[1]));
            case "interrupt":
                Thread.currentThread().interrupt();
                try {
                    return "valid " + held.valid();
                } finally {
                    Thread.interrupted();
                }
            case "close":
                held.close();
                return "closed";
            case "count":
                count(Path.of(words[1]), Integer.parseInt(words[2]), words[3]);
                return "counted";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] args) throws IOException {
        JavaDriver driver = new JavaDriver();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                System.out.println(driver.carryOut(line.split(" ")));
            } catch (IOException e) {
                System.out.println("error " + e.getMessage());
            }
        }
    }
}
