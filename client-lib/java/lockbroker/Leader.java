// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

/**
 * Who leads an election.
 *
 * @param host  the leader's host
 * @param data  what it campaigned with
 * @param token its fencing token
 */
public record Leader(String host, String data, long token) {
}
