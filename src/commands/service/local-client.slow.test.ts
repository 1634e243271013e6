import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import * as owner from "../../lib/socket-owner.ts";
import { silentLog } from "../../model/context.ts";
import { localSocketPath, startLocalSocket } from "../../service/local-socket.ts";
import { runSocketPath } from "../../service/socket-place.ts";
import { askService } from "./local-client.ts";

vi.mock("../../lib/socket-owner.ts", { spy: true });

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

test("a user who may not look into the state folder is told what to do", async () => {
  vi.mocked(owner.proveOwner).mockImplementationOnce(() => {
    throw Object.assign(new Error("EACCES: permission denied, stat"), { code: "EACCES" });
  });
  await expect(askService("/state/collector.sock", "/status", new AbortController().signal)).rejects.toThrow(
    "this user may not open /state/collector.sock: type the command with sudo, or become a member of the group that the collector runs with.",
  );
});
