import { type ChildProcess, spawn } from "node:child_process";
import dgram from "node:dgram";
import net, { type AddressInfo } from "node:net";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startNameServer } from "../../support/name-server.ts";

const CHILD = path.join(import.meta.dirname, "waiting-process.ts");
const TIMEOUT_MS = 1000;
/** Once the child does nothing but wait. */
const FREEZE_AFTER_MS = 200;
const FROZEN_MS = 3000;

let open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const thing of open) await thing.close();
  open = [];
});

/** A device that answers each question so many ms after it, or never; its port. */
type Device = (answerAfterMs: number | undefined, onAsked: () => void) => Promise<number>;

const streams: Device = async (answerAfterMs, onAsked) => {
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", () => {
      onAsked();
      if (answerAfterMs !== undefined) setTimeout(() => socket.write(Buffer.of(1)), answerAfterMs);
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  open.push({ close: () => server.close() });
  return (server.address() as AddressInfo).port;
};
const datagrams: Device = async (answerAfterMs, onAsked) => {
  const socket = dgram.createSocket("udp4");
  socket.on("message", (datagram, from) => {
    onAsked();
    const answer = () => isOpen && socket.send(datagram, from.port, from.address, () => {});
    if (answerAfterMs !== undefined) setTimeout(answer, answerAfterMs);
  });
  let isOpen = true;
  await new Promise<void>((ready) => socket.bind(0, "127.0.0.1", ready));
  open.push({
    close() {
      isOpen = false;
      socket.close();
    },
  });
  return socket.address().port;
};
const names: Device = async (answerAfterMs, onAsked) => {
  const server = await startNameServer();
  server.names.set("plc.lab", answerAfterMs === undefined ? "silent" : { v4: ["10.0.0.1"], v6: [], v4AfterMs: answerAfterMs });
  const look = setInterval(() => {
    if (server.asked.length === 0) return;
    onAsked();
    // Questions that were given up meanwhile are asked again.
    if (answerAfterMs !== undefined) server.names.set("plc.lab", { v4: ["10.0.0.1"], v6: [], v4AfterMs: 100 });
  }, 10);
  open.push({ close: () => clearInterval(look) }, server);
  return Number(server.at.split(":").at(-1));
};

/** What the child says of its wait. */
async function outcomeOf(what: string, device: Device, answerAfterMs: number | undefined): Promise<string> {
  let child: ChildProcess | undefined;
  let isFrozen = false;
  const port = await device(answerAfterMs, () => {
    if (isFrozen) return;
    isFrozen = true;
    setTimeout(() => child?.kill("SIGSTOP"), FREEZE_AFTER_MS);
    setTimeout(() => child?.kill("SIGCONT"), FREEZE_AFTER_MS + FROZEN_MS);
  });
  const started = spawn(process.execPath, [CHILD, String(port), what, String(TIMEOUT_MS)], { stdio: ["ignore", "pipe", "inherit"] });
  child = started;
  open.push({ close: () => started.kill("SIGKILL") });
  let said = "";
  started.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  await new Promise((done) => started.once("close", done));
  return said.trim();
}

describe.each([
  ["answer", streams],
  ["bounded", streams],
  ["datagram", datagrams],
  ["name", names],
] as const)("a process that was stopped while it waited (%s)", { timeout: 30_000 }, (what, device) => {
  it("finds what came meanwhile, and no TIMEOUT", async () => {
    expect(await outcomeOf(what, device, 2 * FREEZE_AFTER_MS)).toBe("answered");
  });

  it("gives the rest of its time to what answers once it goes on", async () => {
    expect(await outcomeOf(what, device, 2 * FREEZE_AFTER_MS + FROZEN_MS)).toBe("answered");
  });

  it("finds what is silent to be so all the same", async () => {
    expect(await outcomeOf(what, device, undefined)).toMatch(/TIMEOUT|no answer/);
  });
});
