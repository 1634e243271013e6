import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { silentLog } from "../../model/context.ts";
import { LocalRequestError, localSocketPath, startLocalSocket } from "../../service/local-socket.ts";
import { createProgram, parseCommandLine } from "../program.ts";
import { commandIo } from "../testing.ts";

const SOURCE = "0ebb773e-4e24-4aa6-ab3c-b17e68a3d9dc";
const SINK = "7a0e4a52-2f0b-4c59-9c7e-3a1f5b7c9d10";
const SECRET = "geheim: ä 1%";

let dir: string;
let settings: string;
let close: (() => Promise<void>)[];
beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "collector-secret-"));
  settings = path.join(dir, "collector.yaml");
  writeFileSync(settings, `state_dir: ${dir}\n`);
  close = [];
});
afterEach(async () => {
  for (const step of close) await step();
  rmSync(dir, { recursive: true, force: true });
});

/** The changes that a service got, as far as these verbs ask one. */
async function service(sources: readonly { uuid: string; name: string }[], sinks: readonly { uuid: string; name: string | null }[]) {
  const handed: unknown[] = [];
  const socket = await startLocalSocket(
    {
      path: localSocketPath(dir),
      handlers: { "/status": () => ({ sources, sinks }) },
      actions: {
        "/secret": (body) => {
          handed.push(body);
          return { used_at: ["10.0.0.5:4840 as reader"] };
        },
      },
    },
    { signal: new AbortController().signal, log: silentLog },
  );
  close.push(() => socket.close());
  return handed;
}

async function collector(words: string[], stdin = "", terminal = false) {
  let out = "";
  let err = "";
  const keyboard = Object.assign(new PassThrough(), { isTTY: terminal });
  if (terminal) setTimeout(() => keyboard.write(stdin), 50);
  else keyboard.end(stdin);
  const io = commandIo({
    keyboard,
    onOut(text) {
      out += text;
    },
    onErr(text) {
      err += text;
    },
  });
  const code = await parseCommandLine(createProgram(io), ["secret", ...words, "--config", settings], io);
  return { code, out, err };
}

const file = (name: string) => path.join(dir, "credentials", name);

describe("collector secret", () => {
  it("keeps a secret for its owner alone and hands it to the running service", async () => {
    const handed = await service([{ uuid: SOURCE, name: "press 1" }], [{ uuid: SINK, name: null }]);
    const { code, out, err } = await collector(["set", "press 1", "--stdin"], `${SECRET}\nsecond line`);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(handed).toEqual([{ key: "press 1", secret: SECRET }]);
    expect(readFileSync(file("press%201"), "utf8")).toBe(`${SECRET}\n`);
    expect(statSync(file("press%201")).mode & 0o777).toBe(0o600);
    expect(statSync(path.join(dir, "credentials")).mode & 0o777).toBe(0o700);
    expect(out).toContain("data source press 1, at 10.0.0.5:4840 as reader.");
    expect(out).not.toContain(SECRET);
  });

  it("keeps the password of one user of a hosted server", async () => {
    const handed = await service([], [{ uuid: SINK, name: "server" }]);
    const { code, out } = await collector(["set", "server/users/scada", "--stdin"], SECRET);
    expect(code).toBe(0);
    expect(out).toContain("data sink server");
    expect(handed).toEqual([{ key: "server/users/scada", secret: SECRET }]);
    expect(existsSync(file("server%2Fusers%2Fscada"))).toBe(true);
    expect((await collector(["list"])).out).toMatch(/server\/users\/scada.*data sink server/);
  });

  it("asks on a terminal and shows nothing of it", async () => {
    const { code, out, err } = await collector(["set", "press-1"], `${SECRET}\r`, true);
    expect(code).toBe(0);
    expect(readFileSync(file("press-1"), "utf8")).toBe(`${SECRET}\n`);
    expect(err).toContain("Secret of press-1");
    expect(out + err).not.toContain(SECRET);
    expect(out).toContain("when it starts");
  });

  it("keeps nothing where a person types nothing", async () => {
    const { code, err } = await collector(["set", "press-1"], "\r", true);
    expect([code, err]).toEqual([2, expect.stringContaining("the secret of press-1 is empty; type it, or give it on stdin with --stdin")]);
    expect(existsSync(file("press-1"))).toBe(false);
  });

  it.each(["half\u0003", "\u0003", "\u0004"])("ends quietly where a person stops it with %j", async (keys) => {
    const { code, out, err } = await collector(["set", "press-1"], keys, true);
    expect({ code, out, err }).toEqual({ code: 130, out: "", err: "Secret of press-1 (not shown): \n" });
    expect(existsSync(file("press-1"))).toBe(false);
  });

  it("says what to do where there is no terminal, and where nothing comes", async () => {
    expect(await collector(["set", "press-1"])).toMatchObject({ code: 2, err: expect.stringContaining("--stdin") });
    expect(await collector(["set", "press-1", "--stdin"])).toMatchObject({ code: 2, err: expect.stringContaining("first line") });
    expect(existsSync(path.join(dir, "credentials"))).toBe(false);
  });

  it("takes no secret as an argument", async () => {
    expect((await collector(["set", "press-1", SECRET])).code).toBe(2);
    expect(existsSync(file("press-1"))).toBe(false);
  });

  it("wants the uuid where the name fits two", async () => {
    await service([{ uuid: SOURCE, name: "one" }], [{ uuid: SINK, name: "one" }]);
    const { code, err } = await collector(["set", "one", "--stdin"], "x\n");
    expect(code).toBe(2);
    expect(err).toContain(SOURCE);
    expect(err).toContain(SINK);
    expect((await collector(["set", SINK, "--stdin"], "x\n")).code).toBe(0);
  });

  it("says that nothing bears the name yet", async () => {
    await service([], []);
    expect((await collector(["set", "pres-1", "--stdin"], "x\n")).out).toContain("no data source or data sink pres-1 yet");
  });

  it("lists and removes", async () => {
    const handed = await service([{ uuid: SOURCE, name: "press-1" }], []);
    await collector(["set", SOURCE, "--stdin"], `${SECRET}\n`);
    const list = await collector(["list", "--json"]);
    expect(JSON.parse(list.out)).toEqual([{ entry: SOURCE, encrypted: false, belongs_to: "data source press-1" }]);
    expect((await collector(["list"])).out).toContain("press-1");
    expect((await collector(["rm", SOURCE])).code).toBe(0);
    expect(handed.at(-1)).toEqual({ key: SOURCE, secret: null });
    expect((await collector(["list"])).out).toContain("No secrets");
    expect(await collector(["rm", SOURCE])).toMatchObject({ code: 2, err: expect.stringContaining("collector secret list") });
  });

  it.each(["../../etc/passwd", "..", "."])("cannot be led out of its folder by %s", async (key) => {
    expect((await collector(["set", key, "--stdin"], "x\n")).code).toBe(0);
    expect(JSON.parse((await collector(["list", "--json"])).out)).toMatchObject([{ entry: key }]);
  });

  it("confirms what the person has seen, after asking, and nothing that is elsewhere by then", async () => {
    const was = { type: "mqtt", host: "10.0.0.5", port: 1883, endpoint_url: null, user: null, security: null };
    const now = { ...was, host: "10.0.0.\u202e66" };
    let withheld: object[] = [{ uuid: SINK, name: "broker", was, now, changed: ["host"] }];
    const confirmed: unknown[] = [];
    const socket = await startLocalSocket(
      {
        path: localSocketPath(dir),
        handlers: { "/secrets/withheld": () => ({ withheld }) },
        actions: {
          "/secret/confirm": (body) => {
            confirmed.push(body);
            if (confirmed.length > 2) throw new LocalRequestError("its password is not withheld from there any more");
            return {};
          },
        },
      },
      { signal: new AbortController().signal, log: silentLog },
    );
    close.push(() => socket.close());
    for (const [words, said] of [
      [["broker"], "without a terminal the collector cannot ask; add --yes"],
      [["broker", "--json"], "with --json the collector cannot ask; add --yes"],
      [["press-1"], 'the password of press-1 is not withheld; passwords are withheld from ["broker"]'],
    ] as const)
      expect(await collector(["confirm", ...words])).toMatchObject({ code: 2, err: expect.stringContaining(said) });
    expect(await collector(["confirm", "broker"], "no\r", true)).toMatchObject({
      code: 2,
      err: expect.stringContaining("nothing was confirmed"),
    });
    expect(confirmed).toEqual([]);
    const asked = await collector(["confirm", "broker"], "yes\r", true);
    expect([asked.code, asked.out]).toEqual([0, "The password of broker goes to 10.0.0.\\u202e66:1883 now.\n"]);
    expect(asked.err).toMatch(/is for +10\.0\.0\.5:1883\n/);
    const json = await collector(["confirm", SINK.toUpperCase(), "--yes", "--json"]);
    expect(JSON.parse(json.out)).toEqual({ action: "confirmed", uuid: SINK, name: "broker", was, now, changed: ["host"] });
    expect(confirmed).toEqual([
      { uuid: SINK, place: now },
      { uuid: SINK, place: now },
    ]);
    expect(await collector(["confirm", "broker", "--yes"])).toMatchObject({
      code: 4,
      err: expect.stringContaining("not withheld from there"),
    });
    withheld = [...withheld, { ...withheld[0], uuid: SOURCE }];
    expect(await collector(["confirm", "broker", "--yes"])).toMatchObject({ code: 2, err: expect.stringContaining(SOURCE) });
    withheld = [];
    expect((await collector(["confirm", "broker"])).err).toContain("no password is withheld");
    await close.pop()?.();
    expect(await collector(["confirm", "broker"])).toMatchObject({ code: 4, err: expect.stringContaining("does not run here") });
  });

  it("goes on where the running service refuses", async () => {
    const socket = await startLocalSocket(
      {
        path: localSocketPath(dir),
        handlers: { "/status": () => ({ sources: [], sinks: [] }) },
        actions: {
          "/secret": () => {
            throw new LocalRequestError("not like this");
          },
        },
      },
      { signal: new AbortController().signal, log: silentLog },
    );
    close.push(() => socket.close());
    expect((await collector(["set", "press-1", "--stdin"], "x\n")).err).toContain("not like this");
    expect(existsSync(file("press-1"))).toBe(true);
  });
});
