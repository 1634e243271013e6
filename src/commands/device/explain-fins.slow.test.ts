import { expect, it, onTestFinished } from "vitest";
import fins from "../../../drivers/fins/driver.ts";
import { startSimulator as startFins } from "../../../drivers/fins/simulator.ts";
import { source, variable } from "../../../test/support/agent.ts";
import { askedAgent } from "../../../test/support/asked-agent.ts";
import { freePort } from "../../../test/support/free-port.ts";
import { temporaryFolder } from "../../api/server/testing.ts";
import { EXIT } from "../io.ts";
import { runCommandWith, settingsFile } from "../testing.ts";

it("explain shows the words of registers, and plan the requests for them, of two controllers over one local port", async () => {
  const folder = temporaryFolder();
  const config = settingsFile(folder, {});
  const run = async (...words: string[]) => {
    const { code, out } = await runCommandWith({}, ...words, "--json", "--config", config);
    return { code, found: JSON.parse(out) };
  };
  const local = { connect_timeout: "1s", answer_timeout: "300ms", transport: "udp", local_port: await freePort() };
  const { agent } = await askedAgent(folder, { drivers: { fins: { driver: async () => ({ default: fins }) } } });
  const simulators = [await startFins(), await startFins()];
  onTestFinished(async () => {
    for (const simulator of simulators) await simulator.close();
  });
  const sources = simulators.map(({ details, port }, i) => {
    const addresses = ["IR4", "DR3", "D100"];
    const variables = addresses.map((address, at) =>
      variable(i + 1, at, address, { name: address, ...(address === "DR3" && { type: "INT" }) }),
    );
    const input = source(i + 1, port, { variables, local });
    return { ...input, record: { ...input.record, type: "fins", details: details("127.0.0.1", port) as never } };
  });
  await agent.apply(sources);
  await expect.poll(() => agent.reports().map(({ status }) => status.state.type)).toEqual(["OK", "OK"]);
  for (const name of ["machine-1", "machine-2"]) {
    const index = await run("explain", name, "IR4");
    expect([index.code, index.found.bytes, index.found.now, index.found.variable.value]).toEqual([
      EXIT.good,
      "fedcba98",
      0xfedc_ba98,
      0xfedc_ba98,
    ]);
    const data = await run("explain", name, "DR3");
    expect([data.found.bytes, data.found.variable.value]).toEqual(["fffb", -5]);
    const { found } = await run("plan", name);
    expect(found).toMatchObject({ requests: 1, variables: 3, bytes: 8, first_requests: [{ words: "D100, DR3, IR4", variables: 3 }] });
  }
  expect(agent.reports().flatMap(({ warnings }) => warnings.map(({ code }) => code))).not.toContain("answers_elsewhere");
});
