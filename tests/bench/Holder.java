/* SPDX-License-Identifier: Apache-2.0 */
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Holder SERVERS NAME SECONDS: as holder.py, with Curator's InterProcessMutex. */
public final class Holder
{
	private Holder()
	{
	}

	public static void main(String[] args) throws Exception
	{
		int timeoutMs = 1000 * Integer.parseInt(args[2]);
		CuratorFramework curator = CuratorFrameworkFactory.newClient(args[0], timeoutMs, timeoutMs,
			new ExponentialBackoffRetry(100, 3));

		curator.start();
		curator.blockUntilConnected();
		InterProcessMutex mutex = new InterProcessMutex(curator, "/bench-takeover/" + args[1]);
		System.out.println("ready");
		System.in.read();
		System.out.println("waits");
		mutex.acquire();
		System.out.println("took " + System.nanoTime());
		while (true) {
			System.out.println("works " + System.nanoTime());
			Thread.sleep(20); // a step of its work
		}
	}
}
