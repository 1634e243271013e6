import type { TypeFacts } from "../../../drivers/facts.ts";
import { DRIVERS } from "../../../drivers/index.ts";
import { shellHost } from "../../base/shell-word.ts";
import type { DetailsType } from "../../model/details.ts";
import type { Recognised } from "./recognised.ts";

/** The command that adds what was recognised at this place as a data source; undefined: no driver reads it. Pure. */
export function sourceCommand({ type, fields = [] }: Recognised, host: string, port: number): string | undefined {
  if (type === undefined) return undefined;
  const bare = shellHost(host, "HOST");
  const words = type === "opcua" ? [`endpoint_url=opc.tcp://${bracketed(bare)}:${port}`] : [`host=${bare}`, ...portWords(type, port)];
  return ["collector source add NAME", type, ...words, ...fields].join(" ");
}

const bracketed = (host: string): string => (host.includes(":") && !host.startsWith("[") ? `[${host}]` : host);

/** Types whose details need a port have a usual one; those of the others is the default. */
function portWords(type: DetailsType, port: number): readonly string[] {
  const facts: Pick<TypeFacts, "standardPort" | "usualPort"> | undefined = DRIVERS[type];
  return facts?.usualPort === undefined && port === facts?.standardPort ? [] : [`port=${port}`];
}
