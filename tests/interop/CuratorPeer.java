/* SPDX-License-Identifier: Apache-2.0 */
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
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
 *   CLIENT open SERVERS SESSION_MS                    opened
 *   CLIENT acquire KIND PATH MS                       held, or timeout
 *   CLIENT release KIND PATH                          released
 *   CLIENT rounds KIND PATH COUNT MS HOLD_US WITNESS  done OVERLAPS TIMEOUTS
 *   CLIENT permit PATH LIMIT COUNT MS                 held, or timeout
 *   CLIENT return PATH                                returned
 *   CLIENT permits PATH LIMIT COUNT MS HOLD_US WITNESS  done OVERLAPS TIMEOUTS
 *   CLIENT close                                      closed
 * </pre>
 *
 * Answers begin with the client's name; one may instead be "error" and a sentence. KIND is mutex, read or write. Each
 * client is a session and a thread of its own: Curator's locks belong to threads. What a client is asked it does in
 * order; clients do not wait for each other. The end of the input ends the process.
 *
 * A round acquires, waiting MS at most, makes a file in the directory WITNESS ("r." and its name when it reads, "w." when
 * it writes, "p." for a permit), removes it after HOLD_US and releases. An overlap is a file of somebody who must not be
 * there at that time: any beside a writer's, a writer's beside a reader's, one more permit than LIMIT.
 *
 * A permit is COUNT leases of an InterProcessSemaphoreV2 of LIMIT; what a client has of one path it returns at once.
 */
public final class CuratorPeer
{
	private static final int CONNECT_MS = 15000;

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
			return open(words[2], Integer.parseInt(words[3]));
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
			return rounds(taking(words), new Witness(words[7], (words[2].equals("read") ? "r." : "w.") + name, 1),
				      Integer.parseInt(words[4]), Long.parseLong(words[6]));
		case "permits":
			return rounds(permits(words), new Witness(words[7], "p." + name, Integer.parseInt(words[3])),
				      Integer.parseInt(words[4]), Long.parseLong(words[6]));
		case "close":
			curator.close();
			return "closed";
		default:
			throw new IllegalArgumentException("unknown command " + words[1]);
		}
	}

	private String open(String servers, int sessionMs) throws Exception
	{
		curator = CuratorFrameworkFactory.newClient(servers, sessionMs, CONNECT_MS,
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

	/** What it takes is closed to let go of it; null when it could not be had in time. */
	private Callable<AutoCloseable> taking(String[] words) throws Exception
	{
		InterProcessLock lock = lock(words[2], words[3]);
		long ms = Long.parseLong(words[5]);

		return () -> acquire(lock, ms) ? lock::release : null;
	}

	private Callable<AutoCloseable> permits(String[] words)
	{
		InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(curator, words[2], Integer.parseInt(words[3]));
		long ms = Long.parseLong(words[5]);

		return () -> semaphore.acquire(ms, TimeUnit.MILLISECONDS);
	}

	private static String rounds(Callable<AutoCloseable> taking, Witness witness, int count, long holdUs) throws Exception
	{
		int overlaps = 0, timeouts = 0;

		for (int i = 0; i < count; i++) {
			AutoCloseable held = taking.call();

			if (held == null) {
				timeouts++;
				continue;
			}
			if (witness.enter())
				overlaps++;
			TimeUnit.MICROSECONDS.sleep(holdUs); // so that others could come while it is inside
			witness.leave();
			held.close();
		}
		return "done " + overlaps + " " + timeouts;
	}

	/** A directory with a file of everybody inside. Of two who overlap the one who comes later sees the other. */
	private static final class Witness
	{
		private final Path directory, file;
		private final String own;
		private final int limit;

		Witness(String directory, String own, int limit)
		{
			this.directory = Path.of(directory);
			this.file = this.directory.resolve(own);
			this.own = own;
			this.limit = limit;
		}

		boolean enter() throws IOException
		{
			Files.createFile(file);
			String[] inside = directory.toFile().list();
			if (own.startsWith("p."))
				return inside.length > limit;
			return Arrays.stream(inside).anyMatch(other -> !other.equals(own) &&
							     (own.startsWith("w.") || other.startsWith("w.")));
		}

		void leave() throws IOException
		{
			Files.delete(file);
		}
	}
}
