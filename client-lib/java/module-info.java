// SPDX-License-Identifier: Apache-2.0 OR MIT
/** Locks among the threads and processes of a host and among hosts, through the lockbrokerd of this host. */
module lockbroker {
    exports lockbroker;
}
