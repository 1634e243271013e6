import type { AnySession } from "../../../drivers/driver.ts";
import type { Reading } from "../../../src/model/value.ts";
import { connect, context, detailsOf, readTexts } from "../opcua.ts";
import {
  all,
  array,
  dataValue,
  double,
  expandedNode,
  extension,
  i32,
  i64,
  localized,
  node,
  str,
  ticks,
  u8,
  u32,
  variant,
} from "./bytes.ts";
import { reference, WireServer } from "./server.ts";

/** Source time of the good value, epoch ms. */
export const NOW = 1_795_000_000_000;

/** The driver on a server of its own for each test, which has `ns=2;s=good`. */
export class WireReader {
  server = new WireServer();
  readonly #sessions: AnySession[] = [];

  /** Before each test. */
  async start(): Promise<WireServer> {
    this.server = await new WireServer().start();
    this.server.nodes.set("ns=2;s=good", dataValue({ value: double(1.5), sourceTime: ticks(NOW) }));
    return this.server;
  }

  /** After each test. */
  async end(): Promise<void> {
    for (const session of this.#sessions.splice(0)) await session.close();
    await this.server.close();
  }

  async open(settings: Record<string, unknown> = {}): Promise<AnySession> {
    const session = await connect(detailsOf(this.server.port), context(), { settings });
    this.#sessions.push(session);
    return session;
  }

  put(id: string, value: Buffer): void {
    this.server.nodes.set(id, dataValue({ value }));
  }
}

export const read = (session: AnySession, ...texts: readonly string[]): Promise<readonly Reading[]> => readTexts(session, texts, context());

/** A structure `ns=2;i=10` with the encoding `ns=2;i=11`, which leads to `target`, and these fields: name and data type. */
export function defineStructure(
  server: WireServer,
  fields: readonly (readonly [name: string, type: string])[],
  target = expandedNode("ns=2;i=10"),
): void {
  server.references.set("ns=2;i=11 inverse", [reference(target, "Mine")]);
  const described = fields.map(([name, type]) => all(str(name), localized(""), node(type), i32(-1), array([]), u32(0), u8(0)));
  const definition = all(node("ns=2;i=11"), node("i=22"), u32(0), array(described));
  server.nodes.set("ns=2;i=10#23", dataValue({ value: variant(22, extension("i=122", definition)) }));
}

/** A data type with an EnumDefinition that is derived from another one. */
export function defineEnumeration(server: WireServer, id: string, parent: string): void {
  const option = all(i64(1n), localized("a"), localized(""), str("a"));
  server.nodes.set(`${id}#23`, dataValue({ value: variant(22, extension("i=123", array([option]))) }));
  server.references.set(`${id} inverse`, [reference(expandedNode(parent), "Parent")]);
}
