/* SPDX-License-Identifier: Apache-2.0 */
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * CuratorLoad SERVERS THREADS SECONDS WARM own|one: Curator's InterProcessMutex from threads of one JVM, over one
 * session. Prints what bench-load prints, as far as it applies.
 */
public final class CuratorLoad
{
	private static final AtomicInteger holder = new AtomicInteger();
	private static int lastHolder = -1;
	private static long handOffs, overlaps;

	private final int id;
	private final InterProcessMutex mutex;
	private final boolean one;
	private long[] waits = new long[1 << 16];
	private int count;

	private CuratorLoad(int id, CuratorFramework curator, boolean one)
	{
		this.id = id;
		this.one = one;
		mutex = new InterProcessMutex(curator, "/bench-curator/" + (one ? "one" : "own-" + id));
	}

	private void whileHeld(boolean counts)
	{
		if (!one)
			return;
		if (holder.getAndSet(id + 1) != 0)
			overlaps++;
		if (counts && lastHolder != id)
			handOffs++;
		lastHolder = id;
		holder.set(0);
	}

	private void work(long begin, long end) throws Exception
	{
		for (long asked = System.nanoTime(); asked < end; asked = System.nanoTime()) {
			mutex.acquire();
			long got = System.nanoTime();
			boolean counts = got >= begin && got <= end;
			whileHeld(counts);
			mutex.release();
			if (!counts)
				continue;
			if (count == waits.length)
				waits = Arrays.copyOf(waits, count * 2);
			waits[count++] = got - asked;
		}
	}

	private static double percentile(long[] sorted, double part)
	{
		return sorted.length == 0 ? 0 : sorted[(int) Math.min(sorted.length - 1, part * sorted.length)] / 1e3;
	}

	public static void main(String[] args) throws Exception
	{
		int threads = Integer.parseInt(args[1]);
		double seconds = Double.parseDouble(args[2]), warm = Double.parseDouble(args[3]);
		CuratorFramework curator = CuratorFrameworkFactory.newClient(args[0], 15000, 15000,
			new ExponentialBackoffRetry(100, 3));
		List<CuratorLoad> loads = new ArrayList<>();
		List<Thread> all = new ArrayList<>();
		CountDownLatch failed = new CountDownLatch(1);

		curator.start();
		curator.blockUntilConnected();
		for (int i = 0; i < threads; i++)
			loads.add(new CuratorLoad(i, curator, args[4].equals("one")));
		long begin = System.nanoTime() + (long) (warm * 1e9), end = begin + (long) (seconds * 1e9);
		for (CuratorLoad load : loads) {
			Thread thread = new Thread(() -> {
				try {
					load.work(begin, end);
				} catch (Exception e) {
					e.printStackTrace();
					failed.countDown();
				}
			});
			thread.start();
			all.add(thread);
		}
		for (Thread thread : all)
			thread.join();
		curator.close();
		if (failed.getCount() == 0 || overlaps > 0)
			System.exit(1);

		int total = loads.stream().mapToInt(l -> l.count).sum(), at = 0;
		long[] waits = new long[total];
		for (CuratorLoad load : loads) {
			System.arraycopy(load.waits, 0, waits, at, load.count);
			at += load.count;
		}
		Arrays.sort(waits);
		System.out.printf("{\"pairs\": %d, \"seconds\": %s, \"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, "
			+ "\"longest_us\": %.1f, \"hand_offs\": %d, \"overlaps\": %d, \"by_target\": [%d]}%n", total, seconds,
			percentile(waits, 0.5), percentile(waits, 0.99), percentile(waits, 0.999), percentile(waits, 1), handOffs,
			overlaps, total);
	}
}
