import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../model/context.ts";
import { HttpListener } from "./http-listener.ts";

test("a port that is taken can be tried for days: a try leaves nothing behind", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void other.close());
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const warnings: string[] = [];
  const onWarning = ({ name }: Error) => void warnings.push(name);
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  const listener = new HttpListener({ what: "a test", allow: "GET", answer: (_, response) => void response.end("ok"), log: silentLog });
  onTestFinished(() => listener.close());
  for (let n = 0; n < 12; n++)
    await expect(listener.listen({ host: "127.0.0.1", port })).rejects.toThrow(/EADDRINUSE: the port is in use by/);
  await turn();
  expect(warnings).toEqual([]);
  other.close();
  await once(other, "close");
  await listener.listen({ host: "127.0.0.1", port });
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("ok");
});
