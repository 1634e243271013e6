import { optionsOf } from "../../configuration/kept-options.ts";
import { prepareSink } from "../../delivery/prepare-sink.ts";
import { permitOf } from "../../lib/policy.ts";
import { messageOf } from "../../model/failure.ts";
import { nameInCommand } from "../../model/name-in-command.ts";
import type { DataSink } from "../../model/resources.ts";
import type { Settings } from "../../model/settings.ts";
import { SINKS } from "../../sinks/index.ts";
import { type Listening, listenToSink } from "../../sinks/mqtt/manifest/listen.ts";
import type { Input } from "../../sinks/mqtt/sink.ts";
import type { ApiConnection } from "../configuration/api-connection.ts";
import { secretsHere, type TargetOptions } from "../device/browse-target.ts";
import { withSource } from "../device/configured-source.ts";
import { lookUpName, personLog, policyOf } from "../device/device.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { platformOf, type SinkPlatform } from "./verify-platform.ts";

/** The broker of a sink, which can be listened to. */
export interface SinkBroker {
  readonly endpoint: string;
  listen(listening: Listening): Promise<void>;
}

/** Work with the broker or the platform of a sink, by its type. */
export interface ServerWork {
  readonly broker: (broker: SinkBroker) => Promise<void>;
  readonly platform: (platform: SinkPlatform) => Promise<void>;
}

/** Runs `work` with the broker or platform of a configured sink, as the service would connect to it. Throws UsageError and ReasonError. */
export async function serverOf(
  name: string,
  options: TargetOptions & { readonly json?: boolean },
  io: CommandIo,
  work: ServerWork,
): Promise<ExitCode> {
  const policy = policyOf(options.config);
  const notOne = async (): Promise<ExitCode> => {
    throw new UsageError(`${name} is a data source; name the data sink that publishes its values`);
  };
  return withSource(name, options, policy, io, notOne, async (sink, found) => {
    if (sink.type === "platform") return platformOf(sink, found.settings, options, io, work.platform);
    const input = await inputOf(sink, found, options, io);
    const { payload, manifest } = input.settings;
    if (!manifest) {
      const why = ["value", "raw", "sparkplug"].includes(payload)
        ? `payload: ${payload} names neither source nor variable in a message; only envelope, columns and rows can be verified`
        : `set it, and wait for two minutes: sudo collector sink set ${nameInCommand(sink)} manifest=true`;
      complain(io, `${sink.name ?? sink.uuid} has no manifest: ${why}`);
      return EXIT.sourceFailed;
    }
    const resolve = ({ host }: { readonly host: string }, signal: AbortSignal) => lookUpName(host, signal);
    const names = { resolve, connected() {}, suspect() {} };
    const ctx = { signal: io.signal, log: personLog(io), permit: permitOf(policy.policy, "sinks"), names };
    const { host, port } = input.details;
    await work.broker({ endpoint: `${host}:${port}`, listen: (listening) => listenToSink(input, listening, ctx) });
    return EXIT.good;
  });
}

async function inputOf(
  sink: DataSink,
  { settings, api }: { readonly settings: Settings; readonly api: ApiConnection | undefined },
  options: TargetOptions,
  io: CommandIo,
): Promise<Input> {
  const { uuid, name, type, details, collector } = sink;
  if (type !== "mqtt")
    throw new UsageError(
      `${name ?? uuid} is a data sink of the type ${type}, which has no manifest; verify is for sinks of the types mqtt and platform`,
    );
  let local: Readonly<Record<string, unknown>>;
  try {
    local = optionsOf(settings.sinks, settings.state_dir, "sink", { uuid, name });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
  const secrets = await secretsHere({ record: sink, desired: { sources: [], sinks: [sink] }, local, settings, api }, options, io);
  const unit = settings.publish_interval_unit;
  const prepared = await prepareSink({ uuid, name, type, details, settings: local, secrets, publishIntervalUnit: unit }, SINKS);
  const checked = { details: prepared.details as Input["details"], settings: prepared.settings as Input["settings"] };
  return { uuid, name, ...checked, secrets, ...(collector !== null && { collector }) };
}
