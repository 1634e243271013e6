import os from "node:os";

/** For a worker and the processes it starts: what asserts times, without this, goes first on a busy machine. */
os.setPriority(os.constants.priority.PRIORITY_BELOW_NORMAL);
