import { parseRoute, type Route } from "./manager.ts";
import type { DhpNode } from "./pccc/channel.ts";

/** A way as the setting says it. */
export interface Path {
  readonly route: Route;
  /** A node of DH+ behind the route. */
  readonly node: DhpNode | undefined;
}

const NODE = /^(?<before>.*\S)[,/ ]+(?<channel>[AB]):(?<node>[0-7]{1,2})$/i;

/** `1,0`, `1,2,2,10.1.2.3,1,0`, or `1,3,A:12`, whose node is octal as on the labels of the module; a string: what is wrong with it. Pure. */
export function parsePath(text: string): Path | string {
  const { before, channel = "", node = "" } = NODE.exec(text.trim())?.groups ?? {};
  const route = parseRoute(before ?? text);
  if (typeof route === "string" || before === undefined) return typeof route === "string" ? route : { route, node: undefined };
  if (route.length === 0) return "a node of DH+ is behind the slot of a module, for example 1,3,A:12";
  return { route, node: { channel: channel.toUpperCase() === "A" ? 1 : 2, node: Number.parseInt(node, 8) } };
}
