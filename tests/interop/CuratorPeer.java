import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's locks, used as any program uses them, by order of a test: it writes lines, and reads one answer to each.
 *
 * <pre>
 *   CLIENT open SERVERS                              opened
 *   CLIENT acquire KIND PATH MS                      held, or timeout
 *   CLIENT release KIND PATH                         released
 *   CLIENT rounds KIND PATH COUNT MS HOLD_US WITNESS done OVERLAPS TIMEOUTS
 *   CLIENT close                                     closed
 * </pre>
 *
 * Answers begin with the client's name; one may instead be "error" and a sentence. KIND is mutex, read or write. Each
 * client is a session and a thread of its own: Curator's locks belong to threads. What a client is asked it does in
 * order; clients do not wait for each other. The end of the input ends the process.
 *
 * A round acquires, waiting MS at most, makes the file WITNESS, removes it after HOLD_US and releases. A file that is
 * there already is an overlap: somebody else believes to hold the lock.
 */
public final class CuratorPeer
{
	private static final int SESSION_MS = 15000, CONNECT_MS = 15000;

	private final String name;
	private final ExecutorService thread = Executors.newSingleThreadExecutor();
	private final Map<String, InterProcessMutex> mutexes = new HashMap<>();
	private final Map<String, InterProcessReadWriteLock> pairs = new HashMap<>();
	private CuratorFramework curator;

	private CuratorPeer(String name)
	{
		this.name = name;
	}

	public static void main(String[] args) throws Exception
	{
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
		Map<String, CuratorPeer> peers = new HashMap<>();

		for (String line = in.readLine(); line != null; line = in.readLine()) {
			String[] words = line.split(" ");

			peers.computeIfAbsent(words[0], CuratorPeer::new).order(words);
		}
		Runtime.getRuntime().halt(0);
	}

	private void order(String[] words)
	{
		thread.execute(() -> {
			String answer;

			try {
				answer = obey(words);
			} catch (Exception e) {
				answer = "error " + e.toString().replace('\n', ' ');
			}
			System.out.println(name + " " + answer);
		});
	}

	private String obey(String[] words) throws Exception
	{
		switch (words[1]) {
		case "open":
			return open(words[2]);
		case "acquire":
			return acquire(lock(words[2], words[3]), Long.parseLong(words[4])) ? "held" : "timeout";
		case "release":
			lock(words[2], words[3]).release();
			return "released";
		case "rounds":
			return rounds(lock(words[2], words[3]), Integer.parseInt(words[4]), Long.parseLong(words[5]),
				      Long.parseLong(words[6]), Path.of(words[7]));
		case "close":
			curator.close();
			return "closed";
		default:
			throw new IllegalArgumentException("unknown command " + words[1]);
		}
	}

	private String open(String servers) throws Exception
	{
		curator = CuratorFrameworkFactory.newClient(servers, SESSION_MS, CONNECT_MS,
							    new ExponentialBackoffRetry(100, 3));
		curator.start();
		if (!curator.blockUntilConnected(CONNECT_MS, TimeUnit.MILLISECONDS))
			throw new IllegalStateException("no server at " + servers);
		return "opened";
	}

	private InterProcessLock lock(String kind, String path)
	{
		if (kind.equals("mutex"))
			return mutexes.computeIfAbsent(path, p -> new InterProcessMutex(curator, p));
		InterProcessReadWriteLock pair =
			pairs.computeIfAbsent(path, p -> new InterProcessReadWriteLock(curator, p));
		if (kind.equals("read"))
			return pair.readLock();
		if (kind.equals("write"))
			return pair.writeLock();
		throw new IllegalArgumentException("unknown kind " + kind);
	}

	private static boolean acquire(InterProcessLock lock, long ms) throws Exception
	{
		return lock.acquire(ms, TimeUnit.MILLISECONDS);
	}

	private static String rounds(InterProcessLock lock, int count, long ms, long holdUs, Path witness) throws Exception
	{
		int overlaps = 0, timeouts = 0;

		for (int i = 0; i < count; i++) {
			if (!acquire(lock, ms)) {
				timeouts++;
				continue;
			}
			try {
				Files.createFile(witness);
				TimeUnit.MICROSECONDS.sleep(holdUs);
				Files.delete(witness);
			} catch (FileAlreadyExistsException e) {
				overlaps++;
			}
			lock.release();
		}
		return "done " + overlaps + " " + timeouts;
	}
}
