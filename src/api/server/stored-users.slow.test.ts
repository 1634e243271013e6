import { join } from "node:path";
import { expect, test } from "vitest";
import { openDatabase } from "./database.ts";
import { documentText } from "./document.ts";
import { COLLECTOR, modbusSource, mqttSink, startTestServer } from "./testing.ts";

const CANARY = "Canary-91be";
const DETAILS = {
  type: "opcua",
  host: `${CANARY}@10.0.0.7`,
  port: 4840,
  endpoint_url: `opc.tcp://reader:${CANARY}@10.0.0.7:4840/plant`,
  security_settings: { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "None" },
  user_identity: { type: "Anonymous" },
};

test("passwords in addresses that a database already holds are neither exported nor served nor said", async () => {
  const first = await startTestServer();
  const uuid = String((await first.send("POST", "/v2/data-sources", modbusSource())).body["uuid"]);
  const sink = String((await first.send("POST", "/v2/data-sinks", mqttSink())).body["uuid"]);
  await first.server.close();
  const db = openDatabase(join(first.folder, "api", "configuration.db"));
  db.prepare("UPDATE data_sources SET type = 'opcua', details = ? WHERE uuid = ?").run(JSON.stringify(DETAILS), uuid);
  db.prepare("UPDATE data_sinks SET details = json_set(details, '$.host', ?) WHERE uuid = ?").run(`reader:${CANARY}@10.0.0.9`, sink);
  const exported = JSON.parse([...documentText(db, [])].join(""));
  db.close();
  expect(JSON.stringify(exported)).not.toContain(CANARY);
  expect(exported.data_sources).toMatchObject([{ details: { host: "10.0.0.7", endpoint_url: "opc.tcp://10.0.0.7:4840/plant" } }]);

  const again = await startTestServer(first.folder);
  const answers = [
    await again.send("GET", `/v2/data-sources?collector=${COLLECTOR}`),
    await again.send("GET", `/v2/data-sources/${uuid}`),
    await again.send("GET", `/v2/data-sinks?collector=${COLLECTOR}`),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(answers.map(({ text }) => text).join()).not.toContain(CANARY);
  const warned = again.log.lines.filter((line) => line.includes("held a user or a password"));
  expect(warned).toEqual([expect.stringContaining(uuid), expect.stringContaining(sink)]);
  expect((await again.send("PATCH", `/v2/data-sources/${uuid}`, { name: "press-2" })).status).toBe(204);
  expect((await again.send("PATCH", `/v2/data-sinks/${sink}`, { details: { topic: "other" } })).status).toBe(204);
  const refused = await again.send("PATCH", `/v2/data-sinks/${sink}`, { details: { host: `${CANARY}@10.0.0.9` } });
  expect([refused.status, refused.text.includes(CANARY)]).toEqual([422, false]);
  expect(again.log.lines.join()).not.toContain(CANARY);
});
