// SPDX-License-Identifier: Apache-2.0 OR MIT
/**
 * Locks among the threads and processes of a host and among hosts, through the lockbrokerd of this host.
 * {@link lockbroker.LockBroker#open()} is where a program begins; docs/JAVA.md is the manual.
 *
 * <h2>Who touches what</h2>
 *
 * Each {@link lockbroker.LockBroker} has one I/O thread ({@code Io}). Only this thread opens, reads, writes and closes
 * channels, and only this thread changes connections, the queues of the JVM ({@code Tier}) and requests ({@code Ask}). All
 * other threads give it tasks and park. So an interrupt of a thread closes no channel, and one thread decides, in one
 * order, what follows from an interrupt, a timeout or a loss. Threads wait by {@code LockSupport.park} only, without a
 * monitor: a virtual thread that waits leaves its carrier.
 *
 * <h2>Two tiers</h2>
 *
 * Threads that want the same lock exclusively stand in a queue of the JVM, in the order of asking. The first of them is
 * <i>active</i>: it asks the broker, and holds the lock. When it releases the lock, its connection passes to the next
 * thread: {@code UNLOCK}, the lock group of the next thread and {@code LOCK} go in one write. So that {@code LOCK} comes
 * behind the requests of other processes, and each thread has a grant and a token of its own.
 *
 * <p>Others ask the broker at once, each on a connection of its own: a thread that holds anything else, so that the
 * broker sees every deadlock cycle of the host (a thread that holds nothing is in no cycle); readers, who share only what
 * the broker grants as shared; semaphores, elections, several locks at once, and one of several.
 *
 * <h2>The states of a request and of its grant</h2>
 *
 * <table>
 * <caption>The state of a request, and where its thread, the queue of the JVM and the connection are in that state.
 * "Withdrawn" is what an interrupt does in lockInterruptibly(), tryLock(time), acquire() and tryAcquire(time). lock() takes
 * note of the interrupt, goes on, and sets the flag again before it returns.</caption>
 * <tr><th>state</th><th>thread</th><th>queue of the JVM</th><th>connection</th><th>withdrawn</th>
 *     <th>the time runs out</th></tr>
 * <tr><td>QUEUED</td><td>parked</td><td>waits in it</td><td>none</td><td>leaves the queue</td>
 *     <td>false if a thread of the JVM holds the lock; otherwise it asks the broker by itself, with WAIT 0</td></tr>
 * <tr><td>CONNECTING</td><td>parked</td><td>active, or not in it</td><td>none yet, or the last one has ended</td>
 *     <td>the request is forgotten</td><td>goes on until the patience is over: NotAvailable</td></tr>
 * <tr><td>ASKED</td><td>parked</td><td>active, or not in it</td><td>LOCK was sent</td><td>the connection is half closed:
 *     the broker answers what was sent before, withdraws the request, releases a grant that crosses, and ends the
 *     connection. When it has ended, the thread goes on, and the next thread is active</td>
 *     <td>the broker answers nil: false. No answer within the patience: the connection is closed, NotAvailable</td></tr>
 * <tr><td>DONE, granted</td><td>runs</td><td>active, or not in it</td><td>owns the grant</td>
 *     <td>a grant that crosses the interrupt is released by UNLOCK before InterruptedException is thrown</td>
 *     <td>true</td></tr>
 * <tr><td>released</td><td>parked until UNLOCK is answered</td><td>the next one is active</td><td>UNLOCK was sent; it is
 *     the next thread's, or idle</td><td>no effect: the flag stays set</td><td>no answer within the patience: the connection
 *     is closed; Lost, unless the lock was proven to be held when UNLOCK was sent</td></tr>
 * <tr><td>lost</td><td>runs; its next call says so</td><td>the next one is active</td><td>closed</td><td>no effect</td>
 *     <td></td></tr>
 * </table>
 *
 * When a connection ends, a request that is CONNECTING or ASKED is made again on the next connection, with what is left of
 * its time, within the patience; a grant is lost.
 */
package lockbroker;
