import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";
import { loadPolicy } from "../../configuration/policy-file.ts";
import { permitOf } from "../../lib/policy.ts";

const MODBUS = (host: string, port = 502) => ["modbus_tcp", `host=${host}`, `port=${port}`];
const MQTT = (host: string, port = 1883) => ["mqtt", `host=${host}`, `port=${port}`, "topic=t"];
const linesIn = (text: string): string => text.slice(text.indexOf(" says:\n\n") + " says:\n\n".length);

test("adds an entry that the policy closes, and prints lines that open all closed ones", async () => {
  const { well, folder } = await commandLine();
  const policy = join(folder, "policy.yaml");
  expect(await well("source", "add", "press-1", ...MODBUS("10.0.0.5"))).not.toContain("policy");
  writeFileSync(policy, "sources: {networks: [10.1.0.0/16], ports: [502]}\nlisten: [127.0.0.1]\n");
  const first = await well("source", "add", "press-2", ...MODBUS("10.2.0.7", 1502));
  expect(first).toMatch(/^press-2: created .*\nNote: .*port 1502 of 10\.2\.0\.7 is not among the ports/);
  const second = await well("sink", "add", "broker", ...MQTT("127.0.0.1"));
  expect(second).toMatch(/\nNote: .*127\.0\.0\.1 is a loopback address.*\nTo open press-1, press-2, broker, .*policy\.yaml says:\n/);
  expect(linesIn(second)).toBe("sources:\n  networks: [10.1.0.0/16, 10.0.0.5, 10.2.0.7]\n  ports: [502, 1502]\nsinks:\n  loopback: true\n");
  const changed = JSON.parse(await well("source", "set", "press-2", "port=1503", "--json"));
  expect(changed.policy).toMatchObject({
    opens: ["press-1", "press-2", "broker"],
    lines: expect.arrayContaining(["  ports: [502, 1503]"]),
  });

  writeFileSync(policy, linesIn(second));
  const opened = loadPolicy(policy).policy;
  expect([permitOf(opened, "sources")("10.2.0.7", 1502), permitOf(opened, "sinks")("127.0.0.1", 1883)]).toEqual([undefined, undefined]);
  expect(await well("source", "set", "press-2", "port=1502")).toBe("press-2: changed\n");
});

test("names the networks of all entries where a section begins to name some, and loopback apart", async () => {
  const { well, folder } = await commandLine();
  writeFileSync(join(folder, "policy.yaml"), "{}\n");
  await well("source", "add", "far", ...MODBUS("10.0.0.5"));
  await well("source", "add", "here", ...MODBUS("127.0.0.1"));
  const added = await well("source", "add", "six", ...MODBUS("169.254.7.7"));
  expect(linesIn(added)).toBe("sources:\n  networks: [10.0.0.5, 169.254.7.7]\n  loopback: true\n");
});

test("adds an entry also where the policy cannot be used", async () => {
  const { well, folder } = await commandLine();
  writeFileSync(join(folder, "policy.yaml"), "sources: [\n");
  expect(await well("source", "add", "here", ...MODBUS("127.0.0.1"))).toMatch(/^here: created/);
});
