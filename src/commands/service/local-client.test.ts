import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../../model/context.ts";
import { localSocketPath, startLocalSocket } from "../../service/local-socket.ts";
import { runSocketPath } from "../../service/socket-place.ts";
import { askService } from "./local-client.ts";

test("a service whose state folder is read-only is asked in the run folder, and one with another state folder is not", async () => {
  const folder = mkdtempSync(join(tmpdir(), "collector-client-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [state, other] = [join(folder, "state"), join(folder, "other")];
  const { signal } = new AbortController();
  const socket = await startLocalSocket(
    { path: runSocketPath(state, folder), handlers: { "/status": () => ({ version: "1" }) } },
    { signal, log: silentLog },
  );
  onTestFinished(() => socket.close());
  await expect(askService(localSocketPath(state), "/status", signal, folder)).resolves.toEqual({ version: "1" });
  await expect(askService(localSocketPath(other), "/status", signal, folder)).rejects.toThrow(
    `nothing answers on ${localSocketPath(other)}`,
  );
});
