import { afterEach, expect, it } from "vitest";
import { codesOf } from "../../src/model/testing/warnings.ts";
import { deviceMemory, driverContext } from "../../test/support/driver-context.ts";
import { connectGateway, readGateway } from "../../test/support/gateway.ts";
import { greeting, scriptedGateway } from "../../test/support/scripted-gateway.ts";

const closing: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0).reverse()) await one.close();
});

it("reads items by their names where the look-up has no answer, asks seldom, and a late answer does no harm", async () => {
  const held: number[] = [];
  const gateway = await scriptedGateway((line, _nth, socket) => {
    if (line.request === "resolve") held.push(line.id);
    if (line.request === "servers") return JSON.stringify({ id: line.id, error: { code: "unsupported", message: "no list" } });
    if (line.request !== "read") return greeting(line);
    for (const id of held.splice(0))
      socket.write(`${JSON.stringify({ id, answer: { epoch: "1", items: [{ item: "X" }, { item: "Y" }] } })}\n`);
    return JSON.stringify({ id: line.id, answer: { items: line.items?.map((item) => ({ value: item.length, type: "uint32" })) } });
  });
  closing.push(gateway);
  const ctx = driverContext({ answerMs: 200, device: deviceMemory() });
  const session = await connectGateway(gateway.port, { ctx });
  closing.push(session);
  for (let n = 0; n < 2; n++)
    expect(await readGateway(session, ["Press.Force", "Press.Count::uint16"], ctx)).toMatchObject([
      { quality: "good", value: 11, type: { scalar: "uint32" } },
      { quality: "good", value: 11 },
    ]);
  expect(gateway.lines.filter((line) => line.includes('"resolve"'))).toHaveLength(1);
  expect([session.alive(), codesOf(session.warnings?.()).includes("help_silent")]).toEqual([true, true]);
});

it("fails where the gateway answers nothing, and remembers nothing of it", async () => {
  let isSilent = true;
  const gateway = await scriptedGateway((line) => {
    if (line.request === "resolve" && !isSilent)
      return JSON.stringify({ id: line.id, answer: { epoch: "1", items: [{ item: "Force", type: "uint32" }] } });
    if (line.request === "read") return JSON.stringify({ id: line.id, answer: { items: [{ value: 3, type: "uint32" }] } });
    return greeting(line);
  });
  closing.push(gateway);
  const ctx = driverContext({ answerMs: 200, device: deviceMemory() });
  const first = await connectGateway(gateway.port, { ctx });
  closing.push(first);
  await expect(readGateway(first, ["Force"], ctx)).rejects.toThrow("no answer within 200 ms to the look-up of Force");
  isSilent = false;
  const session = await connectGateway(gateway.port, { ctx });
  closing.push(session);
  expect(await readGateway(session, ["Force"], ctx)).toMatchObject([{ quality: "good", value: 3 }]);
  expect(codesOf(session.warnings?.())).not.toContain("help_silent");
});
