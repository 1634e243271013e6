import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { changeKeptOptions } from "../../src/configuration/kept-options.ts";
import type { ServiceStatus } from "../../src/model/service-status.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { isChromiumMissing, type TestBrowser } from "../support/chromium/browser.ts";
import { LOOKS, PHONE, type Visit } from "../support/chromium/visit.ts";
import type { CollectorProcess } from "../support/collector-process.ts";
import { type Cabinet, startCabinet } from "./cabinet.ts";
import { type CabinetFault, faultsOf, HOST_FAULTS } from "./faults.ts";
import { enter, flawsOf, focusOn, reach, SECTIONS, unnamedOf, unsaidOf } from "./page.ts";
import { AWAY, BROKER_PASSWORD, BROKER_USER, certificateIn, RIGHT_PASSWORD } from "./plant.ts";
import { commandsIn, comparable, headerOf, partOf, stateOf } from "./printed.ts";

const required = process.env["COLLECTOR_REQUIRE_PARTS"] === "1";
const missing = missingParts();
const FAULTS = faultsOf({ server: RIGHT_PASSWORD, broker: BROKER_PASSWORD });
const isOfSink = ({ fault }: CabinetFault): boolean => /broker|client identifier/.test(fault);
/** All in the table, each with its paragraph. */
const STATUS = "collector status --all";
/** Settings of the collector in the cabinet; one entry has a name that nothing has. */
const SETTINGS = {
  sources: {
    "wrong-password": { trust: "first_use" },
    "untrusted-client": { trust: "first_use" },
    "untrusted-klient": { trust: "first_use" },
  },
};
/** Options that this machine keeps of data sinks and data sources, by their names. */
const KEPT = {
  sink: { "broker-password": { username: BROKER_USER }, "tls-on-plain": { tls: {} }, "self-signed": { tls: {} } },
  source: { "wrong-unit": { unit: 7 } },
} as const;
const POLICY = { sources: { networks: ["127.0.0.0/8", AWAY] }, sinks: { networks: ["127.0.0.0/8"] } };

/** The page of the collector in the cabinet, in a network of its own. */
const PAGE = "http://127.0.0.1:8090";

/** What the network of the plant and its broker need. */
function missingParts(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root for a network namespace";
  for (const [part, ...words] of [
    ["unshare", "-n", "-m", "ip", "link", "add", "away", "type", "veth", "peer", "name", "end"],
    ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
    ["mosquitto", "-h"],
  ])
    try {
      execFileSync(part ?? "", words, { stdio: "ignore", env: { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin` } });
    } catch (error) {
      // It prints its help and ends with 3.
      if (part !== "mosquitto" || (error as { readonly status?: unknown }).status !== 3)
        return `${[part, ...words].join(" ")} does not work here`;
    }
  return undefined;
}

const LOOK_EVERY_MS = 250;
/** At a page that was opened, before the status is printed once more, which is a process. */
const [DRAWN_AFTER_LOOKS, LOOK_AT_PAGE_EVERY_MS] = [4, 50];

let cabinet: Cabinet;
let collector: CollectorProcess;

/** Prints the status until it says what is asked for. */
async function statusWith(of: CollectorProcess, isMeant: (text: string) => boolean, withinMs = 60_000): Promise<string> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const { out, err } = await cabinet.type(of, STATUS);
    if (isMeant(out)) return out;
    if (performance.now() > untilMs) throw new Error(`the status never said it:\n${out}${err}`);
    await delay(LOOK_EVERY_MS);
  }
}

const isNamed =
  (faults: readonly CabinetFault[]) =>
  (text: string): boolean =>
    faults.every(({ on, says }) => says.test(on === null ? headerOf(text) : partOf(text, on)));

/** Runs the next step of a fault as it is printed; returns what that prints. */
async function step(of: CollectorProcess, status: string, { on, command, input, exit, shows, leadsTo }: CabinetFault): Promise<string> {
  const part = on === null ? headerOf(status) : partOf(status, on);
  const printed = commandsIn(part).find((one) => command.test(one));
  expect(printed, `no ${command} in:\n${part}`).toBeDefined();
  const { code, out, err } = await cabinet.type(of, printed ?? "", input);
  expect([printed, code, code === exit ? "" : out + err]).toEqual([printed, exit, ""]);
  expect(`${out}${err}`).toMatch(shows);
  // Who has just typed it is not told to type it.
  expect(commandsIn(out)).not.toContain(printed);
  if (leadsTo) expect(commandsIn(out)).toContainEqual(expect.stringMatching(leadsTo));
  return out;
}

/** What is not a count, a time or a name of this run. */
function essence({ sources, sinks, alarms, config, buffer }: ServiceStatus): object {
  return {
    sources: sources.map(({ name, type, endpoint, status, interval_ms, faults, warnings, error }) => {
      return {
        name,
        type,
        endpoint,
        state: status.state.type,
        variables: status.configured_variables,
        interval_ms,
        faults,
        warnings: textsOf(warnings),
        error,
      };
    }),
    // One that has changed comes last, until the next start.
    sinks: sinks
      .toSorted((one, other) => (one.name ?? "").localeCompare(other.name ?? ""))
      .map(({ name, type, endpoint, state, error, warnings, ledger }) => {
        return { name, type, endpoint, state, error, warnings: textsOf(warnings), dropped: ledger?.dropped };
      }),
    alarms: textsOf(alarms),
    config: { ok: config.ok, origin: config.origin, message: config.message, warnings: textsOf(config.warnings) },
    rejected: buffer.rejected,
  };
}

/** Notes that one of the faults makes. */
const OF_A_FAULT = /plan does not fit|wins over the API|no value that a sensor has/;

const isWell = ({ sources, sinks, alarms, config }: ServiceStatus): boolean =>
  sources.every(
    ({ status, faults, warnings }) =>
      status.state.type === "OK" && faults.length === 0 && !warnings.some(({ text }) => OF_A_FAULT.test(text)),
  ) &&
  sinks.length > 0 &&
  sinks.every(({ state, warnings }) => state === "OK" && warnings.length === 0) &&
  alarms.length === 0 &&
  config.ok;

async function wellStatus(of: CollectorProcess): Promise<ServiceStatus> {
  const untilMs = performance.now() + 150_000;
  for (;;) {
    const status = (await of.status()) as unknown as ServiceStatus;
    if (isWell(status)) return status;
    await delay(LOOK_EVERY_MS);
    if (performance.now() > untilMs) throw new Error(`it is never well again:\n${(await cabinet.type(of, STATUS)).out}`);
  }
}

test.runIf(required)("what the cabinet needs is here", () => expect(missing).toBeUndefined());

describe.skipIf(missing !== undefined)("one collector with all these faults at once", () => {
  let status = "";
  let browser: TestBrowser | undefined;
  /** Its page in one window, which is loaded once. */
  let visit: Visit;
  const folder = (): string => path.dirname(collector.settingsFile);
  /** Answers of the next steps that mend nothing, by the names of their faults. */
  const printed = new Map<string, string>();

  beforeAll(async () => {
    cabinet = await startCabinet();
    collector = await cabinet.collector("cabinet", { settings: SETTINGS, policy: POLICY, pagePort: Number(new URL(PAGE).port) });
    // While the faults come about.
    const opening = isChromiumMissing ? undefined : cabinet.browser();
    opening?.catch(() => {});
    for (const kind of ["sink", "source"] as const) await changeKeptOptions(collector.stateDir, kind, () => KEPT[kind]);
    await collector.adminKey();
    const { collector: uuid } = await collector.status();
    mkdirSync(path.join(folder(), "variables"));
    writeFileSync(path.join(folder(), "variables/gateway.csv"), "name;address\none;1/holding:0\nseven;7/holding:0\n");
    await cabinet.ask({ ask: "configure", apiUrl: collector.apiUrl, keyFile: `${collector.stateDir}/keys/admin.key`, collector: uuid });
    expect(await cabinet.type(collector, "collector secret set broker-password", "guessed\n")).toMatchObject({ code: 0 });
    status = await statusWith(collector, isNamed(FAULTS));
    browser = await opening;
    if (browser) visit = await browser.open(`${PAGE}/`, PHONE);
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await cabinet?.close();
  }, 60_000);

  /** As the page and the status say it of the same moment. */
  async function expectSaid(on: Visit, faults: readonly CabinetFault[], of = collector): Promise<void> {
    const untilMs = performance.now() + 30_000;
    let unsaid = await unsaidOf(on, faults, status, of.settingsFile);
    // A page that was just opened is not filled yet.
    for (let i = 0; unsaid.length > 0 && i < DRAWN_AFTER_LOOKS; i++) {
      await delay(LOOK_AT_PAGE_EVERY_MS);
      unsaid = await unsaidOf(on, faults, status, of.settingsFile);
    }
    // A device or broker answers now this and now that.
    while (unsaid.length > 0 && performance.now() < untilMs) {
      status = (await cabinet.type(of, STATUS)).out;
      unsaid = await unsaidOf(on, faults, status, of.settingsFile);
    }
    expect(unsaid).toEqual([]);
  }

  test.each(FAULTS)("$fault: status alone names it", ({ on, state, says }) => {
    expect(on === null ? headerOf(status) : partOf(status, on)).toMatch(says);
    if (on !== null) expect(stateOf(status, on)).toBe(state);
  });

  test.skipIf(isChromiumMissing).each(LOOKS)(
    "the overview names each, and says what ails the service: $name",
    { timeout: 60_000 },
    async (look) => {
      await visit.lookAs(look);
      await expect.poll(() => unnamedOf(visit, FAULTS), { timeout: 30_000 }).toEqual([]);
      await expectSaid(
        visit,
        FAULTS.filter(({ on }) => on === null),
      );
      expect(await flawsOf(visit)).toEqual([]);
    },
  );

  test.skipIf(isChromiumMissing)("without scripts the page says the same", { timeout: 60_000 }, async () => {
    const without = await (browser as TestBrowser).open(`${PAGE}/`, { ...PHONE, javascript: false });
    await expectSaid(without, FAULTS);
    expect(without.complaints).toEqual([]);
    await without.close();
  });

  const ofParts = FAULTS.filter(({ on }) => on !== null);
  test.skipIf(isChromiumMissing).each([LOOKS[0], LOOKS[3]])(
    "the keyboard comes to each of them on the overview: $name",
    { timeout: 60_000 },
    async (look) => {
      await visit.lookAs(look as (typeof LOOKS)[number]);
      await visit.go(`${PAGE}/`);
      await expect.poll(() => unnamedOf(visit, FAULTS), { timeout: 30_000 }).toEqual([]);
      await reach(
        visit,
        ofParts.map(({ on }) => on ?? ""),
      );
    },
  );

  test.skipIf(isChromiumMissing).each(ofParts.map((fault, i) => ({ ...fault, look: LOOKS[i % LOOKS.length] as (typeof LOOKS)[number] })))(
    "$fault: the keyboard leads on to the page of its source or sink and back, $look.name",
    { timeout: 60_000 },
    async ({ look, ...fault }) => {
      const name = fault.on ?? "";
      await visit.lookAs(look);
      // A walk that failed has stayed on its page.
      if (!visit.page.url().startsWith(`${PAGE}/#`) && visit.page.url() !== `${PAGE}/`) await visit.go(`${PAGE}/`);
      const isSink = isOfSink(fault);
      await focusOn(visit, name);
      await enter(visit, `${PAGE}/${isSink ? "sinks" : "sources"}/${name}`);
      await expectSaid(visit, [fault]);
      for (const section of isSink ? ["state"] : SECTIONS) expect(await visit.text(`section#${section}`)).not.toBe("");
      expect(await flawsOf(visit)).toEqual([]);
      const back = isSink ? "All data sinks" : "All data sources";
      await reach(visit, [back]);
      await enter(visit, `${PAGE}/${isSink ? "#sinks" : ""}`);
    },
  );

  test("no next step is circular, lacks a name, or needs what the package does not bring; of a broker the words are about a broker", () => {
    for (const command of commandsIn(status)) {
      expect(command).toMatch(/^((sudo )?collector |timedatectl$)/);
      expect(command).not.toMatch(/\b(SOURCE|NAME|VARIABLE|ADDRESS|HOST|TYPE|UUID|URL)\b|collector status/);
    }
    for (const { on } of FAULTS.filter(isOfSink)) expect(partOf(status, on ?? "")).not.toMatch(/\bdevice\b/);
  });

  test.concurrent.each(FAULTS.filter(({ mends }) => !mends))(
    "$fault: its next step runs as printed",
    { timeout: 60_000 },
    async (fault) => {
      printed.set(fault.fault, await step(collector, status, fault));
    },
  );

  /** Gives policy.yaml the lines that the next step of a closed host has printed. */
  function openAsPrinted(lines: string): void {
    const [opened] = /^sources:\n(?: .*\n)+/m.exec(lines) ?? [];
    const file = path.join(folder(), "policy.yaml");
    writeFileSync(file, stringify({ ...parse(readFileSync(file, "utf8")), ...parse(opened ?? "") }));
  }

  test("all of it is mended, by the printed commands where they can, and the status is that of a fresh start", {
    timeout: 240_000,
  }, async () => {
    await visit?.go(`${PAGE}/`);
    // Gone where the page is loaded again.
    await visit?.page.evaluate("window.isTheSame = true");
    // Before the commands: what the broker refused of a sink's status is published over the next connection.
    await cabinet.ask({ ask: "heal" });
    copyFileSync(certificateIn(cabinet.folder), path.join(folder(), "ca.pem"));
    await Promise.all(FAULTS.filter(({ mends }) => mends).map((fault) => step(collector, status, fault)));
    openAsPrinted(printed.get("policy that closes the host") ?? "");
    const certificate = path.join(folder(), "own.der");
    const typed = [
      ...FAULTS.flatMap(({ fault, leadsTo }) => commandsIn(printed.get(fault) ?? "").filter((command) => leadsTo?.test(command))),
      `collector pki export ${certificate}`,
      "collector variables set byte-order level --address holding:20@CDAB",
      "collector variables add no-variables temperature holding:0",
      // Status and metadata that were refused are published over the next connection.
      "collector sink set broker-rights client_id=hall-3",
      // With TLS its certificate is refused like the other's.
      "sudo collector sink set plain-on-tls tls.ca_file=ca.pem",
    ];
    await Promise.all(
      typed.map(async (line) => {
        const { code, out, err } = await cabinet.type(collector, line);
        expect([line, code, code === 0 ? "" : out + err]).toEqual([line, 0, ""]);
      }),
    );
    await cabinet.ask({ ask: "trust", certificateFile: certificate });
    rmSync(path.join(folder(), "variables/gateway.csv"));
    const settings = readFileSync(collector.settingsFile, "utf8");
    writeFileSync(collector.settingsFile, settings.replace(/ {2}untrusted-klient:\n.*\n/, ""));
    const healed = await wellStatus(collector);
    expect((await cabinet.type(collector, STATUS)).out).not.toMatch(/Next step|ALARM|ERROR/);
    await expect.poll(() => visit?.text("main") ?? "", { timeout: 30_000 }).not.toMatch(/Next step: |ALARM|ERROR|✗/);
    expect(visit?.complaints ?? []).toEqual([]);

    await collector.stop();
    collector = await cabinet.again(collector);
    const fresh = await wellStatus(collector);
    expect(essence(healed)).toEqual(essence(fresh));
    if (browser === undefined) return;
    // Meanwhile the page had nobody to ask.
    visit.forgive();
    const opened = await browser.open(`${PAGE}/`, PHONE);
    const texts = async () => [comparable(await visit.text("main")), comparable(await opened.text("main"))];
    await expect.poll(async () => new Set(await texts()).size, { timeout: 60_000 }).toBe(1);
    expect(await visit.page.evaluate("window.isTheSame")).toBe(true);
    expect([...visit.complaints.filter((one) => !one.includes("ERR_CONNECTION_REFUSED")), ...opened.complaints]).toEqual([]);
    await opened.close();
  });

  test("an API that is away and a disk that is full, both at once: named, looked into as printed, and well again", {
    timeout: 240_000,
  }, async () => {
    const uuid = await cabinet.ask({ ask: "another" });
    const key = await cabinet.type(collector, `collector api key create --role collector --collector ${uuid}`);
    const keyFile = path.join(cabinet.folder, "other.key");
    writeFileSync(keyFile, /^[\w.-]{20,}$/m.exec(key.out)?.[0] ?? "", { mode: 0o600 });
    const disk = path.join(cabinet.folder, "disk");
    await cabinet.inside(`mkdir ${disk} && mount -t tmpfs -o size=24m tmpfs ${disk}`);
    const api = { url: collector.apiUrl, key_file: keyFile, poll_interval: "1s" };
    const otherPage = `http://127.0.0.1:${Number(new URL(PAGE).port) + 1}`;
    const other = await cabinet.collector("other", {
      pagePort: Number(new URL(otherPage).port),
      settings: { state_dir: disk, collector: uuid, api, embedded_api: undefined, buffer: { max_bytes: "8MiB" } },
    });
    await wellStatus(other);
    visit?.forgive();
    await visit?.go(`${otherPage}/`);
    await collector.stop();
    await cabinet.inside(`cat /dev/zero > ${disk}/fill`);
    const trouble = await statusWith(other, isNamed(HOST_FAULTS));
    for (const fault of HOST_FAULTS) await step(other, trouble, fault);
    if (browser) {
      status = trouble;
      await expectSaid(visit, HOST_FAULTS, other);
      expect(await flawsOf(visit)).toEqual([]);
    }

    await cabinet.inside(`rm ${disk}/fill`);
    collector = await cabinet.again(collector);
    const healed = await wellStatus(other);
    await expect.poll(() => visit?.text("main") ?? "", { timeout: 30_000 }).not.toMatch(/Next step: |ALARM|ERROR|✗/);
    await other.stop();
    const fresh = await wellStatus(await cabinet.again(other));
    expect(essence(healed)).toEqual(essence(fresh));
  });
});
