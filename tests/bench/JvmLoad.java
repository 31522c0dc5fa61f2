/* SPDX-License-Identifier: Apache-2.0 */
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

import lockbroker.BrokerLock;
import lockbroker.LockBroker;

/**
 * JvmLoad curator|lockbroker TARGET THREADS SECONDS WARM own|one [HOLD FILE]: locks from threads of one JVM: Curator's
 * InterProcessMutex over one session with the servers TARGET, or the Java library's over the socket TARGET. A lock for
 * all is held for HOLD us, and FILE is where JVMs tell each other the instants of releases. Prints what bench-load
 * prints, as far as it applies.
 */
public final class JvmLoad
{
	/** What is taken and released again and again. */
	private interface Lock
	{
		void acquire() throws Exception;

		void release() throws Exception;
	}

	private interface Locks extends AutoCloseable
	{
		Lock lock(String name);
	}

	private static final long PID = ProcessHandle.current().pid();
	private static final AtomicInteger holder = new AtomicInteger();
	private static int lastHolder = -1;
	private static long handOffs, overlaps, holdUs;
	private static LongBuffer released; /* by the last holder of all JVMs: when, and the pid; null: nobody asks */
	private static final List<Long> betweenJvms = new ArrayList<>();

	private final int id;
	private final Lock lock;
	private final boolean one;
	private long[] waits = new long[1 << 16];
	private int count;

	private JvmLoad(int id, Locks locks, boolean one)
	{
		this.id = id;
		this.one = one;
		lock = locks.lock(one ? "one" : "own-" + id);
	}

	private static Locks curator(String servers) throws Exception
	{
		CuratorFramework curator = CuratorFrameworkFactory.newClient(servers, 15000, 15000,
			new ExponentialBackoffRetry(100, 3));

		curator.start();
		curator.blockUntilConnected();
		return new Locks() {
			@Override
			public Lock lock(String name)
			{
				InterProcessMutex mutex = new InterProcessMutex(curator, "/bench-curator/" + name);

				return new Lock() {
					@Override
					public void acquire() throws Exception
					{
						mutex.acquire();
					}

					@Override
					public void release() throws Exception
					{
						mutex.release();
					}
				};
			}

			@Override
			public void close()
			{
				curator.close();
			}
		};
	}

	private static Locks lockbroker(String socket)
	{
		LockBroker broker = LockBroker.open(socket);

		return new Locks() {
			@Override
			public Lock lock(String name)
			{
				BrokerLock lock = broker.lock("bench-jvm/" + name);

				return new Lock() {
					@Override
					public void acquire()
					{
						lock.lock();
					}

					@Override
					public void release()
					{
						lock.unlock();
					}
				};
			}

			@Override
			public void close()
			{
				broker.close();
			}
		};
	}

	private void whileHeld(boolean counts)
	{
		if (!one)
			return;
		if (holder.getAndSet(id + 1) != 0)
			overlaps++;
		if (released != null && counts && released.get(1) != 0 && released.get(1) != PID)
			betweenJvms.add(System.nanoTime() - released.get(0));
		if (counts && lastHolder != id)
			handOffs++;
		lastHolder = id;
		if (holdUs > 0)
			LockSupport.parkNanos(holdUs * 1000);
		if (released != null)
			released.put(1, PID).put(0, System.nanoTime());
		holder.set(0);
	}

	private void work(long begin, long end) throws Exception
	{
		for (long asked = System.nanoTime(); asked < end; asked = System.nanoTime()) {
			lock.acquire();
			long got = System.nanoTime();
			boolean counts = got >= begin && got <= end;
			whileHeld(counts);
			lock.release();
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
		int threads = Integer.parseInt(args[2]);
		double seconds = Double.parseDouble(args[3]), warm = Double.parseDouble(args[4]);
		if (args.length > 7) {
			holdUs = Long.parseLong(args[6]);
			try (FileChannel file = FileChannel.open(Path.of(args[7]), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
				released = file.map(FileChannel.MapMode.READ_WRITE, 0, 16).order(ByteOrder.nativeOrder()).asLongBuffer();
			}
		}
		Locks locks = args[0].equals("curator") ? curator(args[1]) : lockbroker(args[1]);
		List<JvmLoad> loads = new ArrayList<>();
		List<Thread> all = new ArrayList<>();
		CountDownLatch failed = new CountDownLatch(1);

		for (int i = 0; i < threads; i++)
			loads.add(new JvmLoad(i, locks, args[5].equals("one")));
		long begin = System.nanoTime() + (long) (warm * 1e9), end = begin + (long) (seconds * 1e9);
		for (JvmLoad load : loads) {
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
		locks.close();
		if (failed.getCount() == 0 || overlaps > 0)
			System.exit(1);

		int total = loads.stream().mapToInt(l -> l.count).sum(), at = 0;
		long[] waits = new long[total];
		for (JvmLoad load : loads) {
			System.arraycopy(load.waits, 0, waits, at, load.count);
			at += load.count;
		}
		Arrays.sort(waits);
		System.out.printf("{\"pairs\": %d, \"seconds\": %s, \"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, "
			+ "\"longest_us\": %.1f, \"hand_offs\": %d, \"hand_off_us\": %.2f, \"overlaps\": %d, \"by_target\": [%d]}%n",
			total, seconds, percentile(waits, 0.5), percentile(waits, 0.99), percentile(waits, 0.999),
			percentile(waits, 1), handOffs, percentile(betweenJvms.stream().mapToLong(l -> l).sorted().toArray(), 0.5), overlaps, total);
	}
}
