import type { Socket } from "node:net";

/**
 * Resets a connection. While its FIN is on the way it is closed without: Node refuses a reset then (EINVAL), takes the handle for closed, and
 * the process waits for it at its end, at full load and without end.
 */
export function reset(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}
