// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

/** What one thread holds of one name, with its levels. Only that thread uses it. */
final class Hold {
    final Grant grant;
    /** The grant is shared, or has become so. */
    boolean shared;
    int writes, reads;
    /** A call has thrown Lost at a release. */
    boolean told;

    Hold(Grant grant) {
        this.grant = grant;
        shared = grant.request.shared();
        level(shared, 1);
    }

    int levels(boolean ofReads) {
        return ofReads ? reads : writes;
    }

    void level(boolean ofReads, int more) {
        if (ofReads)
            reads += more;
        else
            writes += more;
    }
}
