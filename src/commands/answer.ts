import { toJson } from "../lib/json.ts";
import type { CommandIo } from "./io.ts";

/** What a verb prints at its end: one JSON object on a line of its own where `--json` is given, else its text for people. */
export function answer(io: CommandIo, { json = false }: { readonly json?: boolean }, value: object, text: string): void {
  io.stdout.write(json ? `${toJson(value)}\n` : text);
}
