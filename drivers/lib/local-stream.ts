import net, { type Socket } from "node:net";

/** A connection to a local socket, whose two directions end by themselves. */
export const connectLocal = (path: string): Socket => net.connect({ path, allowHalfOpen: true });
