import path from "node:path";
import { formatBytes } from "../../base/bytes.ts";
import { formatDuration } from "../../base/duration.ts";
import { countOf } from "../../base/number.ts";
import { shellWord } from "../../base/shell-word.ts";
import { defaultMaxBytes } from "../../buffer/reserve.ts";
import { portHolder } from "../../lib/port-holder.ts";
import type { ServiceStatus } from "../../model/service-status.ts";
import { askSynchronised } from "../../os/clock.ts";
import { freeBytes, portState } from "../../os/machine.ts";
import { routeTo } from "../../os/route.ts";
import { closedHosts, foundHosts, hostsOf } from "../closed-hosts.ts";
import { fits } from "../configuration/secret.ts";
import type { Checked } from "./configuration-check.ts";
import { apiCheck } from "./doctor-api.ts";

/** One thing that was looked at. */
export interface Diagnosis {
  readonly check: "service" | "api" | "configuration" | "versions" | "clock" | "disk" | "names" | "policy" | "routes" | "ports" | "secrets";
  /** unknown: it could not be looked at. */
  readonly result: "ok" | "warning" | "failed" | "unknown";
  readonly detail: string;
  /** What to do; null: nothing. */
  readonly next_step: string | null;
}

/** What the checks look at. */
export interface Patient {
  readonly checked: Checked;
  /** Undefined: no service runs here. */
  readonly status: ServiceStatus | undefined;
  /** Why there is no status. */
  readonly noStatus?: string;
  readonly version: string;
  readonly signal: AbortSignal;
  /** Whose secrets this machine keeps, or why that cannot be looked at. */
  readonly secrets: readonly string[] | { readonly problem: string };
}

/** A name takes at most so long. */
const NAME_MS = 5000;
/** Names in one finding. */
const MAX_NAMED = 5;
/** Free beyond what the buffer may still take. */
const SPARE_BYTES = 64 * 2 ** 20;

const ok = (check: Diagnosis["check"], detail: string): Diagnosis => ({ check, result: "ok", detail, next_step: null });
const trouble = (check: Diagnosis["check"], result: "warning" | "failed" | "unknown", detail: string, nextStep: string): Diagnosis => ({
  check,
  result,
  detail,
  next_step: nextStep,
});

/** All checks, in the order in which they are told. Each has a bound of its own; none asks a device. Never throws. */
export async function diagnose(patient: Patient): Promise<readonly Diagnosis[]> {
  const { checked, signal } = patient;
  const [clock, disk, ports, reach, api] = await Promise.all([
    clockCheck(),
    diskCheck(patient),
    portChecks(patient),
    reachChecks(patient),
    checked.settings && apiCheck(checked.settings.settings, signal),
  ]);
  const secrets = secretsCheck(patient);
  const about = [serviceCheck(patient), configurationCheck(patient), ...(secrets ? [secrets] : []), versionCheck(patient)];
  return [...about, ...(api ? [api] : []), clock, disk, ...reach, ...ports];
}

const ALARM_STEP = "What is not ok below is the cause, mostly; `collector tail` shows what the service has logged of it.";

function serviceCheck({ status, noStatus = "it does not run here" }: Patient): Diagnosis {
  if (!status)
    return trouble("service", "failed", noStatus, "Type `systemctl status collector`; start it with `systemctl start collector`.");
  const failing = status.sources.filter(({ error }) => error !== null).length;
  const forMs = Math.max(0, Date.now() - Date.parse(status.started_at));
  const words = `runs for ${formatDuration(Math.floor(forMs / 1000) * 1000)}, reads ${status.sources.length - failing} of ${status.sources.length} data sources`;
  if (status.alarms.length > 0) return trouble("service", "warning", `${words}; ALARM: ${status.alarms.at(-1)?.text}`, ALARM_STEP);
  if (!status.config.ok)
    return trouble(
      "service",
      "warning",
      `${words}; the configuration API cannot be asked: ${status.config.message}`,
      "Correct what the message names: the line api below says whether the way to it is open.",
    );
  return failing > 0 ? trouble("service", "warning", words, "Type `collector status --failing`.") : ok("service", words);
}

function configurationCheck({ checked: { findings } }: Patient): Diagnosis {
  const errors = findings.filter(({ level }) => level === "error");
  const [first = findings[0]] = errors;
  if (!first) return ok("configuration", "settings, policy, variables and secrets can be used");
  const words = `${countOf(errors.length, "error")}, ${countOf(findings.length - errors.length, "warning")}; ${first.where}: ${first.message}`;
  return trouble("configuration", errors.length > 0 ? "failed" : "warning", words, "Type `collector check` for all of them.");
}

function versionCheck({ status, version }: Patient): Diagnosis {
  if (!status || status.version === version) return ok("versions", `collector ${version}`);
  const words = `the service is version ${status.version}, this command is ${version}`;
  return trouble("versions", "warning", words, "Type `sudo systemctl restart collector`, so that the installed version runs.");
}

/** A password is forgotten with its entry where a verb of this machine removes that; undefined: the entries are not known. */
function secretsCheck({ secrets, status }: Patient): Diagnosis | undefined {
  if ("problem" in secrets) return trouble("secrets", "unknown", secrets.problem, "Type `sudo collector doctor`.");
  if (secrets.length === 0) return ok("secrets", "none are kept on this machine");
  if (!status || status.config.origin === "none") return undefined;
  const entries = [...status.sources, ...status.sinks];
  const unused = secrets.filter((key) => !entries.some((entry) => fits(key, entry)));
  const [first] = unused;
  if (first === undefined) return ok("secrets", `${secrets.length} kept on this machine, each for an entry of the configuration`);
  const more = unused.length > MAX_NAMED ? ` and ${unused.length - MAX_NAMED} more` : "";
  const names = unused.slice(0, MAX_NAMED).join(", ") + more;
  return trouble(
    "secrets",
    "warning",
    `kept on this machine for what the configuration does not have: ${names}`,
    `Type \`sudo collector secret rm ${shellWord(first, "NAME")}\`, unless the entry is still to come: until then it stays.`,
  );
}

async function clockCheck(): Promise<Diagnosis> {
  const isSynced = await askSynchronised();
  if (isSynced) return ok("clock", "synchronised");
  const words = `the system does not say that its clock is synchronised; it shows ${new Date().toISOString()}`;
  return trouble("clock", "warning", words, "Type `timedatectl`; time stamps of values come from this clock.");
}

async function diskCheck({ checked: { settings }, status }: Patient): Promise<Diagnosis> {
  if (!settings) return trouble("disk", "unknown", "the settings cannot be read", "Type `collector check`.");
  const folder = path.resolve(settings.settings.state_dir);
  const free = await freeBytes(folder);
  if (free === undefined) return trouble("disk", "unknown", `${folder} cannot be asked`, `Type \`df -h ${folder}\`.`);
  const max = status?.buffer.max_bytes ?? settings.settings.buffer.max_bytes ?? defaultMaxBytes(path.join(folder, "buffer.db"));
  const needed = Math.max(0, max - (status?.buffer.bytes ?? 0));
  const words = `${formatBytes(free)} free in ${folder}; the buffer may still take ${formatBytes(needed)}`;
  if (free >= needed + SPARE_BYTES) return ok("disk", words);
  return trouble("disk", "failed", words, "Free space there, or lower buffer.max_bytes: a full disk loses values.");
}

async function reachChecks({ checked, signal }: Patient): Promise<readonly Diagnosis[]> {
  const { sources, sinks, settings, policy } = checked;
  const found = await foundHosts(hostsOf(sources ?? [], sinks, settings?.settings), NAME_MS, signal);
  if (found.length === 0) return [trouble("names", "unknown", "no data sources or data sinks are known", "Type `collector status`.")];
  const unresolved = found.filter(({ addresses }) => typeof addresses === "string");
  const resolved = found.flatMap((one) => (typeof one.addresses === "string" ? [] : [{ one, addresses: one.addresses }]));
  const closed = policy ? closedHosts(policy, found).map(({ who, why }) => `${who}: ${why}`) : [];
  const routes = await Promise.all(
    resolved.map(async ({ one, addresses }) => ({ one, route: addresses[0] && (await routeTo(addresses[0].address, signal)) })),
  );
  const lost = routes.filter(({ route }) => route === "none").map(({ one }) => `${one.who}: ${one.host}`);
  const known = routes.filter(({ route }) => route !== undefined).length;
  return [
    summed(
      "names",
      unresolved.map(({ who, host, addresses }) => `${who}: ${host}: ${String(addresses)}`),
      `${found.length} hosts have an address`,
      "Correct the name or the DNS server; `getent hosts NAME` asks it.",
    ),
    summed(
      "policy",
      closed,
      `${resolved.length} hosts may be connected to`,
      "Open it in policy.yaml, if it is intended: `collector check` prints the lines for all.",
    ),
    known === 0 && lost.length === 0
      ? trouble("routes", "unknown", "the kernel cannot be asked here (ip route get)", "Type `ip route`.")
      : summed("routes", lost, `there is a way to ${known} hosts`, "Type `ip route`; it must list their network or a default route."),
  ];
}

function summed(check: Diagnosis["check"], wrong: readonly string[], right: string, nextStep: string): Diagnosis {
  if (wrong.length === 0) return ok(check, right);
  const more = wrong.length > MAX_NAMED ? `; … ${wrong.length - MAX_NAMED} more` : "";
  return trouble(check, "failed", `${wrong.slice(0, MAX_NAMED).join("; ")}${more}`, nextStep);
}

/** The place where the service listens, or would. */
async function portChecks({ checked: { settings }, status }: Patient): Promise<readonly Diagnosis[]> {
  if (!settings) return [];
  const { http, api, embedded_api: embedded, page } = settings.settings;
  const wanted = [
    ["http.listen", http.listen] as const,
    ...(api ? [] : [["embedded_api.listen", embedded.listen] as const]),
    ...(page.enabled ? [["page.listen", page.listen] as const] : []),
  ];
  return Promise.all(
    wanted.map(async ([key, at]): Promise<Diagnosis> => {
      const colon = at.lastIndexOf(":");
      const port = Number(at.slice(colon + 1));
      const state = await portState(at.slice(0, colon).replace(/^\[|\]$/g, ""), port);
      if (status) {
        // The port alone does not say whose it is; the service does.
        const said = status.alarms.find(({ text }) => text.includes(`${key}: ${at} cannot be listened on`))?.text;
        if (said !== undefined) return trouble("ports", "failed", said, `End the other program, or choose another port as ${key}.`);
        if (state === "taken") return ok("ports", `${key}: ${at} is listened on`);
        return trouble("ports", "warning", `${key}: no program listens on ${at}`, "Type `collector tail`: the service has logged why.");
      }
      if (state === "free") return ok("ports", `${key}: ${at} is free`);
      const holder = state === "taken" ? portHolder(port) : undefined;
      if (state === "taken")
        return trouble(
          "ports",
          "failed",
          `${key}: another program listens on ${at}${holder === undefined ? "" : `: ${holder}`}`,
          "Type `ss -ltnp` to find it, or choose another port.",
        );
      return trouble("ports", "unknown", `${key}: no permission to test ${at}`, "Type `ss -ltn`.");
    }),
  );
}
