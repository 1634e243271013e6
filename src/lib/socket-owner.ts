import { statSync } from "node:fs";
import path from "node:path";

/**
 * Keeps what is sent over a local socket to the service: throws an Error in words where the socket belongs to somebody else than root, who
 * asks, the owner of its folder, or the owner of the keys there, who can read them anyway; where there are no keys, of the buffer, since
 * the folder may be root's with rights for the collector's group. Where there is no socket, connecting says so.
 */
export function proveOwner(socketFile: string): void {
  const socket = statSync(socketFile, { throwIfNoEntry: false });
  if (!socket?.isSocket()) return;
  const folder = path.dirname(socketFile);
  const ownerOf = (file: string): number | undefined => statSync(file, { throwIfNoEntry: false })?.uid;
  const owners = [ownerOf(folder), ownerOf(path.join(folder, "keys")) ?? ownerOf(path.join(folder, "buffer.db"))];
  if (![0, process.geteuid?.(), ...owners].includes(socket.uid))
    throw new Error(
      `${socketFile} belongs to the user with uid ${socket.uid}, who is not the collector's: it is not asked. Find out who that is, remove the socket, and restart the collector`,
    );
}
