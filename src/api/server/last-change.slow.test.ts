import { expect, test } from "vitest";
import type { ConfigChange } from "../../model/service-status.ts";
import { changeWords } from "../../service/words/service-words.ts";
import { COLLECTOR, MACHINE, startTestServer } from "./testing.ts";

test("who changed the configuration last is told, after a restart too, and what changes nothing is not", async () => {
  const told: ConfigChange[] = [];
  const options = { onChanged: (change: ConfigChange) => void told.push(change) };
  const api = await startTestServer(undefined, undefined, options);
  const details = { type: "modbus_tcp", host: "10.0.0.5", port: 502 };
  const made = await api.send("POST", "/v2/data-sources", { name: "press-1", collector: COLLECTOR, machine: MACHINE, details });
  expect(made.status).toBe(201);
  await expect.poll(() => told.length, { timeout: 9000 }).toBe(1);
  expect(told[0]).toMatchObject({ role: "admin", operation: "createDataSource", name: "press-1", address: "127.0.0.1" });
  await api.send("GET", "/v2/data-sources");
  await api.send("GET", "/v2/data-sources", undefined, { authorization: "wrong" });
  await api.server.close();
  told.length = 0;
  await startTestServer(api.folder, undefined, options);
  expect(told).toMatchObject([{ operation: "createDataSource", name: "press-1" }]);
  expect(told.map(changeWords)).toEqual([expect.stringMatching(/^admin key .* from 127\.0\.0\.1.*: createDataSource of press-1$/)]);
});
