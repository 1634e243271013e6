import { type Level, MAX_NAMES, type ToldNeed, type ToldSink, type ToldSource } from "./told.ts";

/** One trouble of one source or sink. */
interface Need extends Pick<ToldNeed, "level" | "title" | "kind" | "cause" | "example" | "step" | "nextTry" | "since"> {
  readonly name: ToldNeed["names"][number];
  /** Equal for troubles with one cause. */
  readonly key: string;
}

const ORDER: readonly Level[] = ["bad", "note", "none", "ok"];

/**
 * Work for a person: troubles of sinks and sources, folded by cause. Failing ones come first, sinks before sources, and of equals the cause
 * that concerns more. Pure.
 */
export function needsOf(sources: readonly ToldSource[], sinks: readonly ToldSink[]): readonly ToldNeed[] {
  const all = [...sinks.flatMap((sink) => needsOfSink(sink)), ...sources.flatMap((source) => needsOfSource(source))];
  const place = ({ level, kind }: ToldNeed): number => ORDER.indexOf(level) * 2 + (kind === "sink" ? 0 : 1);
  return [...Map.groupBy(all, ({ key }) => key).values()]
    .flatMap((alike) => folded(alike))
    .toSorted((one, other) => place(one) - place(other) || other.count - one.count);
}

function folded(alike: readonly Need[]): readonly ToldNeed[] {
  const [first] = alike;
  if (!first) return [];
  const { name: _, ...need } = first;
  const names = [...new Map(alike.map(({ name: one }) => [one.path, one])).values()];
  const since = alike.reduce((least, one) => (one.since < least ? one.since : least), first.since);
  return [{ ...need, names: names.slice(0, MAX_NAMES), count: names.length, since }];
}

/** A failing source says why; one that is read may have bad variables, by their first fault, and notes. */
function needsOfSource(source: ToldSource): readonly Need[] {
  const { trouble, level, state, since, faults, faultSteps, notes } = source;
  if (trouble) return [troubleNeed("source", source, trouble)];
  const base = { kind: "source", level, name: linkOf(source), since, nextTry: null } as const;
  const fault = /: ([a-z_]+)/.exec(faults[0] ?? "")?.[1];
  return [
    ...(fault === undefined
      ? []
      : [
          {
            ...base,
            key: `fault ${fault}`,
            title: `Bad variables: ${fault}`,
            cause: null,
            example: faults.slice(0, 3),
            step: faultSteps[0] ?? null,
          },
        ]),
    ...(notes.length === 0
      ? []
      : [{ ...base, key: `note ${noteKey(notes, source)}`, title: noteTitle(state), cause: null, example: notes, step: null }]),
  ];
}

const noteTitle = (state: string): string => (state === "NO_VARIABLES" ? "No variables" : "Worth knowing");

function needsOfSink(sink: ToldSink): readonly Need[] {
  const { trouble, level, since, notes } = sink;
  return [
    ...(trouble ? [troubleNeed("sink", sink, trouble)] : []),
    ...(notes.length === 0
      ? []
      : [
          {
            kind: "sink",
            level: trouble ? "note" : level,
            name: linkOf(sink),
            since,
            nextTry: null,
            key: `sink note ${noteKey(notes, sink)}`,
            title: "Worth knowing",
            cause: null,
            example: notes,
            step: null,
          } as const,
        ]),
  ];
}

function troubleNeed(kind: ToldNeed["kind"], one: ToldSource | ToldSink, trouble: NonNullable<ToldSource["trouble"]>): Need {
  const { sentence, detail, cause, step, nextTry } = trouble;
  const { state, since } = one;
  return {
    kind,
    level: "bad",
    name: linkOf(one),
    since,
    nextTry,
    key: `${kind} ${state} ${cause}`,
    title: state,
    cause,
    example: [sentence, detail],
    step,
  };
}

const linkOf = ({ name, path }: ToldSource | ToldSink): Need["name"] => ({ name, path });

/** Notes without what differs from one to the next: its own name, its address, numbers. */
const noteKey = (notes: readonly string[], { name, endpoint }: Pick<ToldSource, "name" | "endpoint">): string =>
  (notes[0] ?? "")
    .replaceAll(name, "")
    .replaceAll(endpoint ?? name, "")
    .replace(/\d+/g, "#");
