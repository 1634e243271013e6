import { readFile } from "node:fs/promises";
import { apiOf } from "../support/api.ts";
import { Plant } from "./plant.ts";

/** What the process of the plant is asked, one at a time; it answers each with an Answer. */
export type Asked =
  | { readonly ask: "configure"; readonly apiUrl: string; readonly keyFile: string; readonly collector: string }
  | { readonly ask: "heal" }
  | { readonly ask: "trust"; readonly certificateFile: string }
  /** Its answer is the other collector's uuid. */
  | { readonly ask: "another" }
  | { readonly ask: "stop" };

export type Answer = { readonly done: string } | { readonly failed: string };

const plant = new Plant(process.argv[2] ?? "");

async function work(asked: Asked): Promise<string> {
  if (asked.ask === "another") return plant.another();
  if (asked.ask === "configure") {
    const key = (await readFile(asked.keyFile, "utf8")).trim();
    await plant.configure(apiOf(asked.apiUrl, key), asked.collector);
  } else if (asked.ask === "heal") await plant.heal();
  else if (asked.ask === "trust") await plant.trust(await readFile(asked.certificateFile));
  else await plant.stop();
  return "";
}

const answer = (words: Answer, then: () => void = () => {}): void => void process.send?.(words, then);

process.on("message", (asked: Asked) =>
  work(asked).then(
    (done) => answer({ done }, asked.ask === "stop" ? () => process.exit(0) : undefined),
    (error: unknown) => answer({ failed: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  ),
);
process.on("disconnect", () => process.exit(0));
await plant.start();
answer({ done: "" });
