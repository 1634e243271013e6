import { type ChildProcess, spawn } from "node:child_process";
import net, { type AddressInfo } from "node:net";
import path from "node:path";
import { afterEach, expect, it } from "vitest";

const CHILD = path.join(import.meta.dirname, "waiting-process.ts");
const TIMEOUT_MS = 1000;
const FROZEN_MS = 3000;

let open: { close(): void }[] = [];
afterEach(() => {
  for (const thing of open) thing.close();
  open = [];
});

/** What the child says of its wait, where the device answers each byte `answerAfterMs` after it, or never, and `onAsked` comes first. */
async function outcomeOf(what: string, answerAfterMs: number | undefined, onAsked: (child: ChildProcess) => void): Promise<string> {
  let child: ChildProcess | undefined;
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", () => {
      if (child) onAsked(child);
      if (answerAfterMs !== undefined) setTimeout(() => socket.write(Buffer.of(1)), answerAfterMs);
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  open.push(server);
  const started = spawn(process.execPath, [CHILD, String((server.address() as AddressInfo).port), what, String(TIMEOUT_MS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  child = started;
  open.push({ close: () => started.kill("SIGKILL") });
  let said = "";
  started.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  await new Promise((done) => started.once("close", done));
  return said.trim();
}

/** Once the child does nothing but wait. */
const FREEZE_AFTER_MS = 200;
const freeze = (child: ChildProcess) => {
  setTimeout(() => child.kill("SIGSTOP"), FREEZE_AFTER_MS);
  setTimeout(() => child.kill("SIGCONT"), FREEZE_AFTER_MS + FROZEN_MS);
};

it.each(["answer", "bounded"])(
  "a process that was stopped finds what came meanwhile, and no TIMEOUT: %s",
  { timeout: 30_000 },
  async (what) => {
    expect(await outcomeOf(what, 2 * FREEZE_AFTER_MS, freeze)).toBe("answered");
  },
);

it.each(["answer", "bounded"])(
  "a device that answers after the process goes on has the rest of its time: %s",
  { timeout: 30_000 },
  async (what) => {
    expect(await outcomeOf(what, 2 * FREEZE_AFTER_MS + FROZEN_MS, freeze)).toBe("answered");
  },
);

it.each(["answer", "bounded"])("a device that is silent is one all the same: %s", { timeout: 30_000 }, async (what) => {
  expect(await outcomeOf(what, undefined, freeze)).toMatch(/TIMEOUT|no answer within/);
});
