import { writeFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startSimulator as startModbus } from "../../../drivers/modbus_tcp/simulator.ts";
import { startSimulator as startVendorA } from "../../../drivers/vendor_a/simulator.ts";
import { temporaryFolder } from "../../api/server/testing.ts";
import { EXIT } from "../io.ts";
import { runCommandWith, settingsFile } from "../testing.ts";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

interface Printed {
  readonly steps: readonly { readonly step: string; readonly result: string; readonly detail: string }[];
  readonly reason: { readonly type: string };
  readonly next_step: string;
}

/** `collector probe` of a device at this port, as JSON. */
async function probed(port: number, type: string, ...words: readonly string[]) {
  const folder = temporaryFolder();
  const config = settingsFile(folder, {});
  writeFileSync(join(folder, "policy.yaml"), "sources: {networks: [127.0.0.0/8]}\n");
  const at = [type, "host=127.0.0.1", `port=${port}`, "connect_timeout=500ms", "answer_timeout=300ms"];
  const { code, out } = await runCommandWith({ env: { HOME: folder } }, "probe", ...at, ...words, "--json", "--config", config);
  const printed = JSON.parse(out) as Printed;
  return { code, printed, last: printed.steps.at(-1) };
}

async function portOf(server: net.Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  cleanUp.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

describe("probe of a port with another protocol", () => {
  it("names the controller where the first value does not come, and the command for it", async () => {
    const controller = await startVendorA();
    cleanUp.push(() => controller.close());
    const { port } = controller;
    const { code, printed, last } = await probed(port, "modbus_tcp", "holding:0");
    expect([code, last?.step, last?.result]).toEqual([EXIT.sourceFailed, "first value", "failed"]);
    expect(last?.detail).toMatch(
      new RegExp(
        `port ${port} of 127\\.0\\.0\\.1 speaks EtherNet/IP \\(Rockwell Automation 1756-\\S+, firmware \\d+\\.\\d+\\), not Modbus TCP$`,
      ),
    );
    expect(printed.next_step).toContain(`\`collector source add NAME vendor_a host=127.0.0.1 port=${port}\``);
  });

  it("names it where the handshake fails", async () => {
    const device = await startModbus();
    cleanUp.push(() => device.close());
    const { printed, last } = await probed(device.port, "s7", "DB1.DBW0");
    expect([last?.step, last?.detail]).toEqual(["handshake", expect.stringContaining("speaks Modbus TCP, not S7")]);
    expect(printed.next_step).toContain(`collector source add NAME modbus_tcp host=127.0.0.1 port=${device.port}`);
  });

  it("names a program that no driver reads", async () => {
    const shell = net.createServer((socket) => socket.on("error", () => {}).end("SSH-2.0-dropbear\r\n"));
    const { printed, last } = await probed(await portOf(shell), "s7", "DB1.DBW0");
    expect(last?.detail).toContain("speaks SSH (SSH-2.0-dropbear), not S7");
    expect(printed.next_step).toContain("Correct host and port");
  });

  it("opens one connection at a time, and none where the device refuses or answers in its own protocol", async () => {
    let [open, most, accepted] = [0, 0, 0];
    const silent = net.createServer((socket) => {
      accepted++;
      open++;
      // The end of the connection before may be seen in the turn in which this one is.
      setTimeout(() => {
        most = Math.max(most, open);
      }, 50);
      socket
        .on("error", () => {})
        .on("end", () => open--)
        .resume();
    });
    const { last } = await probed(await portOf(silent), "s7", "DB1.DBW0");
    expect(last?.detail).not.toContain("speaks");
    // The configured way, three slots and two connection types, and six other protocols.
    expect([most, accepted]).toEqual([1, 12]);
    const closed = await probed(1, "s7", "DB1.DBW0");
    expect([closed.last?.step, closed.printed.reason.type]).toEqual(["connection", "CONNECTION_REFUSED"]);
    const device = await startModbus();
    cleanUp.push(() => device.close());
    expect((await probed(device.port, "modbus_tcp", "holding:500")).last?.detail).not.toContain("speaks");
  });
});
