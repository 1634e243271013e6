import { statSync } from "node:fs";
import path from "node:path";

/**
 * Keeps what is sent over a local socket to the service: throws an Error in words where the socket belongs to somebody else than root, who
 * asks, the owner of its folder, or the owner of the keys there, who can read them anyway. Where there is no socket, connecting says so.
 */
export function proveOwner(socketFile: string): void {
  const socket = statSync(socketFile, { throwIfNoEntry: false });
  if (!socket?.isSocket()) return;
  const folder = path.dirname(socketFile);
  const owners = [folder, path.join(folder, "keys")].map((one) => statSync(one, { throwIfNoEntry: false })?.uid);
  if (![0, process.geteuid?.(), ...owners].includes(socket.uid))
    throw new Error(
      `${socketFile} belongs to the user with uid ${socket.uid}, who is not the collector's: it is not asked. Find out who that is, remove the socket, and restart the collector`,
    );
}
