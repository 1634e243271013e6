import { styleText } from "node:util";
import type { ServiceStatusJson } from "../support/collector-process.ts";

/** What the demo shows at one moment. */
export interface Picture {
  readonly elapsedS: number;
  readonly apiUrl: string;
  readonly brokerUrl: string;
  readonly opcuaUrl: string;
  readonly status: ServiceStatusJson | undefined;
  /** Newest value of each variable as it came from the broker. */
  readonly values: readonly {
    readonly source: string;
    readonly variable: string;
    readonly text: string;
    readonly ageMs: number;
    readonly bad: boolean;
  }[];
  readonly messages: number;
  readonly news: readonly string[];
  /** Lines of the collector's own log, newest last. */
  readonly log: readonly string[];
}

type Style = Parameters<typeof styleText>[0];
const pad = (text: string, width: number): string => (text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width));

/** The picture as lines of text, at most `width` characters each. */
export function draw(picture: Picture, width: number, colour: boolean): readonly string[] {
  // Who asks for colours gets them, wherever they go.
  const paint = (style: Style, text: string) => (colour ? styleText(style, text, { validateStream: false }) : text);
  const { status } = picture;
  const lines = [
    paint(
      "bold",
      `collector demo · ${picture.elapsedS.toFixed(0)} s · configuration API ${picture.apiUrl} · MQTT ${picture.brokerUrl} · OPC UA ${picture.opcuaUrl}`,
    ),
    "",
    paint(
      "dim",
      `${pad("DATA SOURCE", 14)}${pad("TYPE", 15)}${pad("ENDPOINT", 18)}${pad("STATE", 22)}${pad("READOUTS", 10)}${pad("VALUES", 9)}FAULTED NOW`,
    ),
  ];
  for (const source of status?.sources ?? []) {
    const { state } = source.status;
    const word = state.type === "ERROR" ? (state.reason?.type ?? "ERROR") : state.type;
    const faults = source.faults.map((f) => `${f.variable}: ${f.fault}`).join(", ");
    lines.push(
      pad(source.name, 14) +
        pad(source.type, 15) +
        pad(source.endpoint ?? "", 18) +
        paint(state.type === "OK" ? "green" : state.type === "ERROR" ? "red" : "dim", pad(word, 22)) +
        pad(String(source.counters.readouts), 10) +
        pad(String(source.counters.values_read), 9) +
        paint("yellow", faults),
    );
  }
  lines.push(
    "",
    paint("dim", `${pad("DATA SINK", 14)}${pad("TYPE", 15)}${pad("STATE", 14)}${pad("DELIVERED", 12)}${pad("PENDING", 10)}DROPPED`),
  );
  for (const sink of status?.sinks ?? []) {
    const dropped = droppedOf(sink.ledger?.dropped ?? {});
    lines.push(
      pad(sink.name ?? sink.uuid, 14) +
        pad(sink.type, 15) +
        paint(sink.state === "OK" ? "green" : "red", pad(sink.state, 14)) +
        (sink.ledger
          ? pad(String(sink.ledger.delivered), 12) +
            pad(String(sink.ledger.pending), 10) +
            paint(dropped === 0 ? "dim" : "red", String(dropped))
          : paint("dim", "current values only")),
    );
  }
  lines.push("", paint("dim", `${pad("VALUE FROM THE BROKER", 36)}${pad("", 26)}AGE`));
  for (const value of picture.values)
    lines.push(
      pad(`${value.source} / ${value.variable}`, 36) +
        paint(value.bad ? "yellow" : "cyan", pad(value.text, 26)) +
        paint("dim", `${(value.ageMs / 1000).toFixed(1)} s`),
    );
  lines.push(
    "",
    ...picture.news.map((line) => paint("magenta", line)),
    paint("dim", "the collector's log:"),
    ...picture.log.slice(-6).flatMap((line) => wrap(line, width)),
  );
  return lines;
}

const wrap = (line: string, width: number): readonly string[] => line.match(new RegExp(`.{1,${width}}`, "gu")) ?? [];

export const droppedOf = (dropped: Readonly<Record<string, number>>): number => Object.values(dropped).reduce((sum, n) => sum + n, 0);
