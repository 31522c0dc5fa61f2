// SPDX-License-Identifier: Apache-2.0 OR MIT
package lockbroker;

/** What went wrong: a sentence that says what happened, to which name, and what to do. */
public class LockBrokerException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final String code;

    LockBrokerException(String code, String sentence) {
        super(sentence);
        this.code = code;
    }

    /**
     * The code of PROTOCOL.md, such as DENIED, BADNAME, LIMIT or MISMATCH; of what this library found, the code that
     * fits.
     */
    public String code() {
        return code;
    }

    /** With the trace of the thread that throws it, which is not the one that made it. */
    final LockBrokerException here() {
        fillInStackTrace();
        return this;
    }

    /** Of an error of the broker, whose first word is its code. */
    static LockBrokerException of(Resp.ErrorReply reply) {
        String code = reply.code();
        switch (code) {
            case "UNAVAILABLE":
            case "DRAINING":
                return new NotAvailable(code, reply.sentence());
            case "DEADLOCK":
                return new Deadlock(reply.sentence());
            case "LOST":
                return new Lost("session", reply.sentence());
            default:
                return new LockBrokerException(code, reply.sentence());
        }
    }
}
