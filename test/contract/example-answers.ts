import { shellBlocks } from "./shell-blocks.ts";

const COLUMNS = 120;
const UUID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

/** JSON with a space after each comma and colon. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, inner]) => `${JSON.stringify(key)}: ${spaced(inner)}`)
    .join(", ")}}`;
}

/** JSON as a person reads it: short fields beside each other, in lines of some 120 characters. `before` stands on its first line. */
function packed(value: unknown, indent = "", before = ""): readonly string[] {
  const whole = `${indent}${before}${spaced(value)}`;
  if (whole.length <= COLUMNS || typeof value !== "object" || value === null) return [whole];
  const isArray = Array.isArray(value);
  const fields = Object.entries(value);
  const lines: string[] = [];
  for (const [n, [key, inner]] of fields.entries()) {
    const [first = "", ...more] = packed(inner, `${indent}  `, isArray ? "" : `${JSON.stringify(key)}: `);
    const comma = n < fields.length - 1 ? "," : "";
    const line = lines.at(-1) ?? "";
    const isBeside = more.length === 0 && /[^{[]$/.test(line) && line.length + first.trim().length + 2 <= COLUMNS && !isArray;
    if (isBeside) lines[lines.length - 1] = `${line} ${first.trim()}${comma}`;
    else lines.push(...[first, ...more].map((text, at) => (at === more.length ? `${text}${comma}` : text)));
  }
  return [`${indent}${before}${isArray ? "[" : "{"}`, ...lines, `${indent}${isArray ? "]" : "}"}`];
}

/** What the commands of a block printed, as a document shows it: identifiers are counted, because each run makes others. Pure. */
export function answersOf(out: string): string {
  const known = new Map<string, string>();
  const counted = out.replaceAll(UUID, (uuid) => {
    const short = known.get(uuid) ?? `00000000-0000-4000-8000-${String(known.size + 1).padStart(12, "0")}`;
    known.set(uuid, short);
    return short;
  });
  return counted
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => (line.startsWith("{") ? packed(JSON.parse(line)) : [line]))
    .join("\n");
}

/** The document with what each of its shell blocks prints, by the block's place; a block whose answer is undefined has none. Pure. */
export function withAnswers(markdown: string, answers: readonly (string | undefined)[]): string {
  const blocks = shellBlocks(markdown);
  let rest = markdown;
  let done = "";
  for (const [n, { text }] of blocks.entries()) {
    const block = `\`\`\`sh\n${text}\n\`\`\`\n`;
    const end = rest.indexOf(block) + block.length;
    done += rest.slice(0, end);
    rest = rest.slice(end).replace(/^\n```json\n[\s\S]*?\n```\n/, "");
    const answer = answers[n];
    if (answer) done += `\n\`\`\`json\n${answer}\n\`\`\`\n`;
  }
  return done + rest;
}
