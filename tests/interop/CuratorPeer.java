import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.utils.CloseableUtils;

/**
 * Curator's locks, used as any program uses them, by order of a test: it writes lines, and reads one answer to each.
 *
 * <pre>
 *   CLIENT open SERVERS                              opened
 *   CLIENT acquire KIND PATH MS                      held, or timeout
 *   CLIENT release KIND PATH                         released
 *   CLIENT rounds KIND PATH COUNT MS HOLD_US WITNESS done OVERLAPS TIMEOUTS
 *   CLIENT permit PATH LIMIT COUNT MS                held, or timeout
 *   CLIENT return PATH                               returned
 *   CLIENT close                                     closed
 * </pre>
 *
 * Answers begin with the client's name; one may instead be "error" and a sentence. KIND is mutex, read or write. Each
 * client is a session and a thread of its own: Curator's locks belong to threads. What a client is asked it does in
 * order; clients do not wait for each other. The end of the input ends the process.
 *
 * A round acquires, waiting MS at most, makes the file WITNESS, removes it after HOLD_US and releases. A file that is
 * there already is an overlap: somebody else believes to hold the lock.
 *
 * A permit is COUNT leases of an InterProcessSemaphoreV2 of LIMIT; what a client has of one path it returns at once.
 */
public final class CuratorPeer
{
	private static final int SESSION_MS = 15000, CONNECT_MS = 15000;

	private final String name;
	private final ExecutorService thread = Executors.newSingleThreadExecutor();
	private final Map<String, InterProcessMutex> mutexes = new HashMap<>();
	private final Map<String, InterProcessReadWriteLock> pairs = new HashMap<>();
	private final Map<String, List<Lease>> leases = new HashMap<>();
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
		case "permit":
			return permit(words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]), Long.parseLong(words[5]));
		case "return":
			leases.remove(words[2]).forEach(CloseableUtils::closeQuietly);
			return "returned";
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

	private String permit(String path, int limit, int count, long ms) throws Exception
	{
		Collection<Lease> had = new InterProcessSemaphoreV2(curator, path, limit).acquire(count, ms, TimeUnit.MILLISECONDS);

		if (had == null)
			return "timeout";
		leases.computeIfAbsent(path, p -> new ArrayList<>()).addAll(had);
		return "held";
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
