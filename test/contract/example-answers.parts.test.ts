import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { modbusSource, mqttSink, startTestServer } from "../../src/api/server/testing.ts";
import { answersOf, withAnswers } from "./example-answers.ts";
import { shellBlocks } from "./shell-blocks.ts";

const FILE = join(import.meta.dirname, "../../docs/api/examples.md");
/** Blocks for which the demo is needed; documents.test.ts runs them. */
const OF_THE_DEMO = ["The same by name", "From another server of this API"];
/** Prints nothing that a person waits for. */
const WITHOUT_ANSWER = "Before the others";

const isMissing = ["curl", "bash"].some((part) => spawnSync(part, ["--version"]).error !== undefined);

test.skipIf(isMissing && process.env["COLLECTOR_REQUIRE_PARTS"] !== "1")(
  "the examples answer as printed",
  { timeout: 60_000 },
  async () => {
    const api = await startTestServer();
    await api.send("POST", "/v2/data-sources", modbusSource());
    await api.send("POST", "/v2/data-sinks", mqttSink());
    mkdirSync(join(api.folder, ".demo/state/keys"), { recursive: true });
    writeFileSync(join(api.folder, ".demo/state/keys/admin.key"), api.adminKey);
    const markdown = readFileSync(FILE, "utf8");
    const blocks = shellBlocks(markdown);
    const run = blocks.map(({ heading, text }) =>
      OF_THE_DEMO.includes(heading) ? ":" : text.replace("http://127.0.0.1:8420", api.server.url),
    );
    expect(run.join("\n")).toContain(api.server.url);
    const script = run.map((text) => `${text}\necho '## end of block'`).join("\n");
    // Not synchronously: the server runs in this process.
    const bash = promisify(execFile)("bash", ["-c", script], { cwd: api.folder });
    const { stdout, stderr } = await bash;
    expect(stderr.replaceAll(/^curl: \(22\).*\n/gm, "")).toBe("");
    const parts = stdout.split("## end of block\n");
    const answers = blocks.map(({ heading }, n) =>
      heading === WITHOUT_ANSWER || OF_THE_DEMO.includes(heading) ? undefined : answersOf(parts[n] ?? ""),
    );
    expect(answers.filter((answer) => answer).length).toBeGreaterThan(15);
    await expect(withAnswers(markdown, answers)).toMatchFileSnapshot(FILE);
  },
);
