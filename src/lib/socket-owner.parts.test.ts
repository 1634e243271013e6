import { once } from "node:events";
import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { proveOwner } from "./socket-owner.ts";

const SERVICE = 4711;
const isRoot = process.geteuid?.() === 0;

/** A socket of another user in a folder of whoever runs the test. */
async function foreignSocket(): Promise<{ readonly folder: string; readonly socket: string }> {
  const folder = mkdtempSync(path.join(tmpdir(), "collector-owner-"));
  const socket = path.join(folder, "collector.sock");
  const server = createServer().listen(socket);
  onTestFinished(() => {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await once(server, "listening");
  chownSync(socket, SERVICE, SERVICE);
  return { folder, socket };
}

test.runIf(isRoot)("a state folder of root's, in which the collector's group may write, keeps nobody from asking its service", async () => {
  const { folder, socket } = await foreignSocket();
  expect(() => proveOwner(socket)).toThrow("who is not the collector's");
  const buffer = path.join(folder, "buffer.db");
  writeFileSync(buffer, "");
  expect(() => proveOwner(socket)).toThrow("who is not the collector's");
  chownSync(buffer, SERVICE, SERVICE);
  expect(() => proveOwner(socket)).not.toThrow();
  // If there are keys, whoever can read them says whose it is.
  mkdirSync(path.join(folder, "keys"));
  expect(() => proveOwner(socket)).toThrow("who is not the collector's");
});
