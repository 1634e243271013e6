import { withoutCredentials } from "../base/plain-text.ts";

const MAX_DEPTH = 6;
const MAX_ITEMS = 100;
const MAX_TEXT = 4096;
const MAX_CAUSES = 5;

const REDACTED = "[redacted]";
const SECRET_NAMES = new Set(["pwd", "passwd", "key", "apikey", "privatekey", "accesskey", "credentials", "authorization", "cookie"]);
const SECRET_ENDINGS = ["password", "passphrase", "secret", "secrets", "token", "apikey", "privatekey", "authorization"];

/** True: a field of this name may hold a secret. Names of files that hold one (`key_file`) are not secrets. */
export function isSecretName(name: string): boolean {
  const plain = name.toLowerCase().replace(/[_\-\s]/g, "");
  return SECRET_NAMES.has(plain) || SECRET_ENDINGS.some((ending) => plain.endsWith(ending));
}

/**
 * A copy of `fields` that is safe to write: secrets redacted by the name of their field at any depth, credentials taken out of
 * URLs, errors as name, message, code and causes, bounded in depth, length and number. Total: never throws.
 * `stacks` adds the stack of each error.
 */
export function toLoggable(fields: object, stacks: boolean): Record<string, unknown> {
  const out = copy(fields, stacks, 0, []);
  return typeof out === "object" && out !== null ? (out as Record<string, unknown>) : { value: out };
}

function copy(value: unknown, stacks: boolean, depth: number, above: readonly unknown[]): unknown {
  if (typeof value === "string") return text(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "function" || typeof value === "symbol") return String(typeof value);
  if (typeof value !== "object" || value === null) return value;
  if (above.includes(value)) return "[circular]";
  if (depth >= MAX_DEPTH) return "[deeper]";
  const path = [...above, value];
  if (value instanceof Error) return copyError(value, stacks, depth, path);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "[no date]" : value.toISOString();
  if (value instanceof Uint8Array) return `[${value.length} bytes]`;
  if (value instanceof Map || value instanceof Set) return `[${value.constructor.name} of ${value.size}]`;
  if (Array.isArray(value)) {
    const items: unknown[] = value.slice(0, MAX_ITEMS).map((item) => copy(item, stacks, depth + 1, path));
    return value.length > MAX_ITEMS ? [...items, `[${value.length - MAX_ITEMS} more]`] : items;
  }
  const out: Record<string, unknown> = {};
  for (const name of Object.keys(value).slice(0, MAX_ITEMS)) out[name] = field(value, name, stacks, depth, path);
  return out;
}

function field(owner: object, name: string, stacks: boolean, depth: number, path: readonly unknown[]): unknown {
  let value: unknown;
  try {
    value = (owner as Record<string, unknown>)[name];
  } catch {
    return "[unreadable]";
  }
  if (!isSecretName(name) || value === undefined || value === null) return copy(value, stacks, depth + 1, path);
  return REDACTED;
}

function copyError(error: Error, stacks: boolean, depth: number, path: readonly unknown[]): Record<string, unknown> {
  const code: unknown = "code" in error ? error.code : undefined;
  const causes = path.filter((item) => item instanceof Error).length;
  return {
    name: text(String(error.name)),
    message: text(String(error.message)),
    ...((typeof code === "string" || typeof code === "number") && { code }),
    ...(stacks && typeof error.stack === "string" && { stack: text(error.stack) }),
    ...(error.cause !== undefined && causes < MAX_CAUSES && { cause: copy(error.cause, stacks, depth, path) }),
    ...(error instanceof AggregateError &&
      causes < MAX_CAUSES && { errors: error.errors.slice(0, 5).map((member) => copy(member, stacks, depth + 1, path)) }),
  };
}

function text(value: string): string {
  const bounded = value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}… [${value.length - MAX_TEXT} more characters]` : value;
  return withoutCredentials(bounded);
}
