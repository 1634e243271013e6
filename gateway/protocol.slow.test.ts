import { afterAll, describe, expect, it } from "vitest";
import { PAGE_TIME, pageExamples } from "../test/support/gateway-page.ts";
import { LineClient } from "../test/support/line-client.ts";
import { examplePlant } from "./example-plant.ts";
import { Gateway } from "./server.ts";

const gateway = await Gateway.start({ backend: examplePlant(() => PAGE_TIME) });
afterAll(() => gateway.close());

const examples = pageExamples().filter(({ played }) => played.includes("gateway"));

describe("the gateway answers as its page says", () => {
  it("has examples", () => expect(examples.length).toBeGreaterThan(4));

  it.each(examples.map(({ lines }, i) => [i, lines] as const))("example %i, byte for byte", async (_, lines) => {
    const client = LineClient.to(gateway.port);
    for (const { from, line } of lines)
      if (from === "client") client.send(line);
      else expect(await client.next()).toBe(line);
    client.close();
  });
});
