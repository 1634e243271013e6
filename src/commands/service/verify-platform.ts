import path from "node:path";
import { personalAccess } from "../../api/access.ts";
import { optionsOf } from "../../configuration/kept-options.ts";
import { prepareSink } from "../../delivery/prepare-sink.ts";
import { messageOf } from "../../model/failure.ts";
import { nameInCommand } from "../../model/name-in-command.ts";
import type { DataSink } from "../../model/resources.ts";
import type { Settings } from "../../model/settings.ts";
import { SINKS } from "../../sinks/index.ts";
import { endpointOf, requesterOf } from "../../sinks/platform/connection.ts";
import { type Delivered, readDelivered } from "../../sinks/platform/delivered-log.ts";
import { judgePlatform, type PlatformJudgement, readPlatform } from "../../sinks/platform/proof.ts";
import type { PlatformSettings } from "../../sinks/platform/settings.ts";
import type { TargetOptions } from "../device/browse-target.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";

/** Readouts that are judged where no time is named: of the last hour, but for the last minute, whose values may be under way. */
const SINCE_MS = 3_600_000;
const UNTIL_MS = 60_000;

/** The platform of a sink, which can be compared with what this machine has delivered. */
export interface SinkPlatform {
  readonly endpoint: string;
  /** Throws UsageError, ReasonError and RangeError. `tell` has the values that were read so far. */
  judge(asked: { readonly sinceMs?: number | undefined; readonly untilMs?: number | undefined }, tell: Tell): Promise<PlatformJudgement>;
}
type Tell = (values: number) => void;

/** Runs `work` with the platform of a sink, asked with a person's key. Throws UsageError and ReasonError. */
export async function platformOf(
  sink: DataSink,
  settings: Settings,
  options: TargetOptions,
  io: CommandIo,
  work: (platform: SinkPlatform) => Promise<void>,
): Promise<ExitCode> {
  const stateDir = path.resolve(settings.state_dir);
  const api = personalAccess(settings, stateDir, options.keyFile);
  const local = await settingsOf(sink, settings, api);
  if (!local.manifest) {
    complain(
      io,
      `${sink.name ?? sink.uuid} has no manifest: set it, and wait for two minutes: sudo collector sink set ${nameInCommand(sink)} manifest=true`,
    );
    return EXIT.sourceFailed;
  }
  const delivered = (isIn: (time: number) => boolean): Delivered => {
    try {
      return readDelivered(path.join(stateDir, "sinks"), sink.uuid, isIn) ?? { sinceMs: Number.POSITIVE_INFINITY, sources: new Map() };
    } catch (error) {
      throw new UsageError(`${messageOf(error)}; run collector verify as root, or as the user of the service`);
    }
  };
  await work({
    endpoint: endpointOf(api),
    async judge({ sinceMs, untilMs }, tell) {
      const now = Date.now();
      const span = { from: sinceMs ?? now - SINCE_MS, to: untilMs === undefined ? now - UNTIL_MS : untilMs + 1 };
      if (span.from >= span.to) throw new UsageError("--since is not before --until");
      const isIn = (time: number): boolean => time >= span.from && time < span.to;
      const before = delivered(isIn);
      const requester = requesterOf(api, { connectMs: local.connect_timeout, requestMs: local.request_timeout });
      try {
        const copy = await readPlatform(requester, [...before.sources.keys()], span, io.signal, tell);
        return judgePlatform(before, copy, delivered(isIn));
      } finally {
        requester.close();
      }
    },
  });
  return EXIT.good;
}

async function settingsOf(
  { uuid, name, type, details }: DataSink,
  settings: Settings,
  api: ReturnType<typeof personalAccess>,
): Promise<PlatformSettings> {
  let local: Readonly<Record<string, unknown>>;
  try {
    local = optionsOf(settings.sinks, settings.state_dir, "sink", { uuid, name });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
  const unit = settings.publish_interval_unit;
  const spec = { uuid, name, type, details: { ...(details as object), api }, settings: local, secrets: {}, publishIntervalUnit: unit };
  return (await prepareSink(spec, SINKS)).settings as PlatformSettings;
}
