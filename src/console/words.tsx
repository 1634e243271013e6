import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { formatDuration } from "../base/duration.ts";
import type { Level, ToldTrouble } from "../service/page/told.ts";
import { readChoice, useFeed, useSeconds } from "./state.ts";

const SIGNS: Readonly<Record<Level, string>> = { ok: "✓", note: "!", bad: "✗", none: "–" };

/** A state with its sign: colour is never the only one. */
export const Badge = ({ level, words }: { readonly level: Level; readonly words: string }): JSX.Element => (
  <span class={`state ${level}`}>
    <span class="sign" aria-hidden="true">
      {SIGNS[level]}
    </span>{" "}
    <span class="cut" title={words}>
      {words}
    </span>
  </span>
);

/** A sentence, with what is between backticks as a command that can be copied. */
export const Words = ({ text }: { readonly text: string }): JSX.Element => (
  <>
    {text.split(/`([^`\n]+)`/).map((part, i) =>
      // The parts of one sentence have no names, and keep their places.
      i % 2 === 1 ? <Command key={i} text={part} /> : part,
    )}
  </>
);

export const Paragraphs = ({ texts }: { readonly texts: readonly string[] }): JSX.Element => (
  <>
    {texts.map((text, i) => (
      <p key={i}>
        <Words text={text} />
      </p>
    ))}
  </>
);

const SAID_MS = 2000;

/** A command to type, and the button that copies it. */
export function Command({ text }: { readonly text: string }): JSX.Element {
  const [said, setSaid] = useState<"" | "Copied" | "Select and copy it">("");
  const copy = async (): Promise<void> => {
    try {
      // A page over plain HTTP of another machine has no clipboard.
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      setSaid("Select and copy it");
    }
    setTimeout(() => setSaid(""), SAID_MS);
  };
  return (
    <span class="command">
      <code>{text}</code>
      {/* Its words are no text: who selects a sentence does not copy them with it. */}
      <button
        type="button"
        class="copy"
        onClick={() => void copy()}
        aria-live="polite"
        aria-label={said === "" ? `Copy: ${text}` : said}
        data-words={said === "" ? "Copy" : said}
      />
    </span>
  );
}

/** A command of this service, which names its settings where they are not at their usual place. */
export function OwnCommand({ verb, words = "" }: { readonly verb: string; readonly words?: string }): JSX.Element {
  const option = useFeed().part("head")?.option ?? "";
  return <Command text={`collector ${verb}${option}${words === "" ? "" : ` ${words}`}`} />;
}

/** How long ago a time is. */
export function Age({ iso }: { readonly iso: string }): JSX.Element {
  const feed = useFeed();
  useSeconds();
  const ms = feed.nowMs - Date.parse(iso);
  const words = Number.isNaN(ms) ? "?" : formatDuration(ms < 1000 ? Math.max(0, ms) : Math.floor(ms / 1000) * 1000);
  return (
    <time dateTime={iso} title={timeWords(iso)}>
      {words}
    </time>
  );
}

export const isUtc = (): boolean => readChoice("zone") === "utc";

/** A time in this browser's zone, or in UTC on wish. Pure but for that choice. */
export function timeWords(iso: string): string {
  const ms = Date.parse(iso);
  if (Number.isNaN(ms)) return iso;
  if (isUtc()) return `${iso.slice(0, 19).replace("T", " ")} UTC`;
  const date = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** A state for its badge: one that is well and has something to know says so. Pure. */
export const stateWords = ({ level, state }: { readonly level: Level; readonly state: string }): string =>
  level === "note" && state === "OK" ? "OK, with notes" : state;

/** Shown for what has no ledger: see `ToldSink.ledger`. */
export const NO_LEDGER = "It gets current values only: nothing waits for it, and nothing is counted.";

/** `hasMs`: with its milliseconds. */
export const Time = ({ iso, hasMs = false }: { readonly iso: string; readonly hasMs?: boolean }): JSX.Element => (
  <time dateTime={iso} title={iso}>
    {hasMs ? timeWords(iso).replace(/(:\d\d)( UTC)?$/, `$1${iso.slice(19, 23)}$2`) : timeWords(iso)}
  </time>
);

/** Why something fails, and what to do. */
export const Trouble = ({ trouble }: { readonly trouble: ToldTrouble }): JSX.Element => (
  <div class="trouble">
    <p class="sentence">
      <Words text={trouble.sentence} />
    </p>
    <Paragraphs texts={[trouble.detail, trouble.cause]} />
    <Step step={trouble.step} nextTry={trouble.nextTry} />
  </div>
);

export const Step = ({ step, nextTry }: { readonly step: string; readonly nextTry?: string | null }): JSX.Element => (
  <div class="step" data-field="next-step">
    <p>
      <b>Next step:</b> <Words text={step} />
    </p>
    {nextTry != null && (
      <p class="faint">
        Next try: <Time iso={nextTry} />
      </p>
    )}
  </div>
);

export const Notes = ({ notes, more }: { readonly notes: readonly string[]; readonly more: number }): JSX.Element => (
  <>
    {notes.map((note, i) => (
      <p key={i} class="note-line">
        <Words text={`Note: ${note}`} />
      </p>
    ))}
    {more > 0 && <p>… {more} more notes</p>}
  </>
);

/** Labels with what they say. */
export const Facts = ({ children }: { readonly children: ComponentChildren }): JSX.Element => <dl class="facts">{children}</dl>;

export const Fact = ({
  label,
  children,
  field,
}: {
  readonly label: string;
  readonly children: ComponentChildren;
  readonly field?: string;
}): JSX.Element => (
  <div class="fact">
    <dt>{label}</dt>
    <dd data-field={field}>{children}</dd>
  </div>
);

/** A number with thin gaps between its thousands. Pure. */
export const countWords = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");

/** A region that scrolls sideways, by keyboard too. `label`: its name for a screen reader. */
const Wide = ({ label, children }: { readonly label: string; readonly children: ComponentChildren }): JSX.Element => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by keyboard only with one (WCAG 2.1.1)
  <div class="wide" tabIndex={0} role="region" aria-label={label}>
    {children}
  </div>
);

/** A table that may scroll sideways. `label`: for screen readers. */
export const Table = ({
  label,
  columns,
  hasNumbers = false,
  children,
}: {
  readonly label: string;
  readonly columns: readonly string[];
  readonly hasNumbers?: boolean;
  readonly children: ComponentChildren;
}): JSX.Element => (
  <Wide label={label}>
    <table class={hasNumbers ? "plain numbers" : "plain"}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column} scope="col">
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </Wide>
);
