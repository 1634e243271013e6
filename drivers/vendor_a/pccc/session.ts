import { createYielder, inSlices } from "../../../src/base/timer.ts";
import { FaultError } from "../../../src/model/fault.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import type { Reading } from "../../../src/model/value.ts";
import type { Warning } from "../../../src/model/warning.ts";
import type { Discovered, DriverContext, Point, Prepared, Session } from "../../driver.ts";
import type { Connection } from "../../lib/connection.ts";
import type { SilentHelp } from "../../lib/silent-help.ts";
import { textOf } from "../address.ts";
import { type Identity, identityWords } from "../identity.ts";
import { type Kept, keepOpen } from "../keep-open.ts";
import type { CipLink } from "../link.ts";
import type { Route } from "../manager.ts";
import { type AnyAddress, type AnyRead, byVariantSteps, isFileRead, type VendorALimits } from "../variants.ts";
import { DhpChannel, type DhpNode, EnvelopedChannel, type FileChannel } from "./channel.ts";
import { layoutOf, listFiles } from "./directory.ts";
import { answerBytesOf, type FileController, familyByStatus } from "./family.ts";
import { FAMILY_WORDS, type FileFamily } from "./files.ts";
import { diagnosticStatus } from "./frames.ts";
import { placeFiles } from "./prepare.ts";
import { FileReader } from "./reader.ts";
import { fileRefusal } from "./refusals.ts";

const MAX_POINTS = 65_536;
const GOOD = 0;

/** The way to a controller with data files. */
export interface FileTarget {
  readonly route: Route;
  readonly identity: Identity | undefined;
  /** Undefined: the controller is asked for it. */
  readonly controller: FileController | undefined;
  readonly node: DhpNode | undefined;
}

/** A session with an SLC 500, MicroLogix or PLC-5. */
export class FileSession implements Session<AnyAddress, AnyRead, VendorALimits> {
  readonly limits: VendorALimits;
  readonly #connection: Connection;
  readonly #link: CipLink;
  readonly #channel: FileChannel;
  readonly #target: FileTarget;
  readonly #controller: FileController;
  readonly #reader: FileReader;
  readonly #help: SilentHelp;
  readonly #ctx: DriverContext;
  readonly #endKeeping: () => void;
  #closing: Promise<void> | undefined;

  private constructor(
    connection: Connection,
    link: CipLink,
    channel: FileChannel,
    target: FileTarget,
    controller: FileController,
    help: SilentHelp,
    ctx: DriverContext,
  ) {
    this.#connection = connection;
    this.#link = link;
    this.#channel = channel;
    this.#target = target;
    this.#controller = controller;
    this.#help = help;
    this.#ctx = ctx;
    const bytes = answerBytesOf(controller, target.node !== undefined || target.route.length > 0);
    this.#reader = new FileReader(channel, ctx.device);
    this.limits = { maxPoints: MAX_POINTS, maxBytes: bytes, fileBytes: bytes, inFlight: 1, messageBytes: bytes, maxItems: 1 };
    const kept: Kept = { link, ctx, alive: () => this.alive(), ask: (bounded) => askStatus(channel, bounded) };
    this.#endKeeping = channel.mustBeKept ? keepOpen(kept) : () => {};
  }

  /** Throws ReasonError: there is no controller there, or it does not say of which family it is. */
  static async open(connection: Connection, link: CipLink, target: FileTarget, help: SilentHelp, ctx: DriverContext): Promise<FileSession> {
    const channel = target.node ? new DhpChannel(link, target.route, target.node) : new EnvelopedChannel(link, target.route);
    await channel.ready(ctx);
    const controller = target.controller ?? (await askFamily(channel, ctx));
    const session = new FileSession(connection, link, channel, target, controller, help, ctx);
    ctx.log.debug({}, `connected: ${session.about}`);
    return session;
  }

  async read(request: AnyRead, ctx: DriverContext): Promise<readonly Reading[]> {
    if (!isFileRead(request)) throw new TypeError("a read of tags in a session with data files");
    return this.#reader.read(request, ctx);
  }

  async *prepare(points: readonly Point<AnyAddress>[], _ctx: DriverContext): AsyncGenerator<readonly Prepared<AnyAddress>[]> {
    const { family } = this.#controller;
    const { tags, files } = await inSlices(byVariantSteps(points), createYielder());
    yield tags.map((point) => ({ point, refusal: noTags(textOf(point.address), family) }));
    yield* placeFiles(files, family);
  }

  async *discover(ctx: DriverContext): AsyncGenerator<Discovered> {
    const layout = layoutOf(this.#controller.name) ?? layoutOf(this.#target.identity?.name ?? "");
    if (!layout)
      throw new FaultError(
        "device_error",
        `${this.#words} has no directory of its files whose layout is known; write the addresses from the program, for example N7:0`,
      );
    yield* listFiles(this.#channel, layout, ctx);
  }

  get #words(): string {
    const { family, name } = this.#controller;
    return `${FAMILY_WORDS[family]}${name === "" ? "" : ` (${name})`}`;
  }

  get about(): string {
    const { identity } = this.#target;
    return `the controller is ${this.#words}, ${this.#channel.words}${identity ? `, ${identityWords(identity)}` : ""}`;
  }

  get granted(): string {
    return `answers of ${this.limits.fileBytes} bytes`;
  }

  warnings(): readonly Warning[] {
    const { warning } = this.#reader;
    return [...(warning ? [warning] : []), ...this.#help.warnings()];
  }

  alive(): boolean {
    return this.#connection.alive();
  }

  close(): Promise<void> {
    this.#endKeeping();
    this.#closing ??= this.#link.close(this.#ctx);
    return this.#closing;
  }
}

const noTags = (text: string, family: FileFamily): FaultError =>
  new FaultError(
    "not_found",
    `${JSON.stringify(text)}: ${FAMILY_WORDS[family]} has data files and no tags; write for example N7:0, B3/37 or T4:2.ACC`,
  );

/** The data of diagnostic status. Throws FaultError as the controller refuses it. */
const askStatus = (channel: FileChannel, ctx: DriverContext): Promise<Buffer> =>
  channel.ask<Buffer>(
    ctx,
    () => "the diagnostic status of the controller",
    diagnosticStatus(),
    ({ bytes, at, end, status, extended }, done, refuse) => {
      if (status === GOOD) done(Buffer.from(bytes.subarray(at, end)));
      else refuse(fileRefusal(status, extended, "the diagnostic status of the controller"));
      return undefined;
    },
  );

/** Throws ReasonError: TIMEOUT where nothing answers behind the bridge, else with the condition `configuration_invalid`. */
async function askFamily(channel: FileChannel, ctx: DriverContext): Promise<FileController> {
  const data = await askStatus(channel, ctx).catch((error: unknown) => {
    if (!(error instanceof FaultError)) throw error;
    if (error.scope === "silent") throw new ReasonError("TIMEOUT", `${channel.words}: ${error.message}`);
    throw new ReasonError("UNKNOWN", `${channel.words}: ${error.message}`, { condition: "configuration_invalid" });
  });
  const controller = familyByStatus(data);
  if (controller) return controller;
  throw new ReasonError(
    "UNKNOWN",
    `${channel.words}: the controller does not say what it is (0x${data.toString("hex", 0, 20)}); set family to slc, micrologix or plc5`,
    { condition: "configuration_invalid" },
  );
}
