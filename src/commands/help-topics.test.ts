import { existsSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { DRIVERS } from "../../drivers/index.ts";
import { SINK_TYPES } from "../model/sink-details.ts";
import { HELP_TOPICS, topicText } from "./help-topics.ts";
import { runCommand } from "./testing.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");

it.each(Object.entries(HELP_TOPICS))("has a document for %s", (_, { file }) => expect(existsSync(path.join(ROOT, file))).toBe(true));

it("has a topic for each type of data source and of data sink", () => {
  const commands = Object.values(HELP_TOPICS).flatMap(({ keys }) => (keys ? [keys.command] : []));
  const types = [...Object.keys(DRIVERS).map((type) => `source add NAME ${type}`), ...SINK_TYPES.map((type) => `sink add NAME ${type}`)];
  expect(commands).toEqual(types.map((type) => `collector ${type} key=value …`));
});

it.each(Object.keys(HELP_TOPICS))("prints %s", async (topic) => {
  const { code, out, err } = await runCommand("help", topic);
  expect([code, err]).toEqual([0, ""]);
  expect(out.length).toBeGreaterThan(300);
});

it.each(["modbus_tcp", "s7", "fins", "vendor_a"])("explains keys, addresses, types, settings and errors of %s", async (topic) => {
  const text = await topicText(topic);
  expect(text).toMatch(/^ {2}host \(string, required\): Host name or IP address/m);
  expect(text).toMatch(/^ {2}port \(integer, default \d+\)/m);
  for (const heading of ["## Addresses", "## Settings", "## What goes wrong and what to do"]) expect(text).toContain(heading);
});

it("names inner keys and what they may be", async () => {
  expect(await topicText("vendor_gateway")).toMatch(/^ {2}protocol_details\.server_name \(string/m);
  expect(await topicText("opcua")).toMatch(/^ {2}security_settings\.security_mode \(None \| Sign \| SignAndEncrypt, required\)/m);
  expect(await topicText("opcua")).toMatch(/^ {2}user_identity\.username \(string, required\)/m);
  const mqtt = await topicText("mqtt");
  expect(mqtt).toMatch(/^ {2}topic \(string, required\)/m);
  for (const option of ["username", "tls", "tls.ca_file", "payload", "sources"])
    expect(mqtt).toMatch(new RegExp(`^ {2}${option} \\(`, "m"));
  expect(mqtt).not.toMatch(/\w\.ts\b/);
});

it("explains a verb, and says what was meant by what is neither", async () => {
  expect((await runCommand("help", "source", "add")).out).toBe((await runCommand("source", "add", "--help")).out);
  expect((await runCommand("help")).out).toContain("Topics:");
  expect(await runCommand("help", "modbus")).toMatchObject({ code: 2, err: expect.stringContaining("did you mean modbus_tcp?") });
  expect(await runCommand("help", "source", "ad")).toMatchObject({ code: 2, err: expect.stringContaining("no such verb") });
});
