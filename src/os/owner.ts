import { statSync } from "node:fs";

/**
 * Does `work` as the owner of `folder` where this is root, so that what it writes is the service's own, and so that a link that somebody put
 * there leads root nowhere. Only on the main thread; one at a time. Throws what `work` throws, and Error where there is no such folder.
 */
export async function asOwnerOf<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const { uid, gid } = statSync(folder);
  const { geteuid, getegid, seteuid, setegid } = process;
  if (geteuid?.() !== 0 || uid === 0 || !getegid || !seteuid || !setegid) return work();
  const group = getegid();
  setegid(gid);
  seteuid(uid);
  try {
    return await work();
  } finally {
    seteuid(0);
    setegid(group);
  }
}
