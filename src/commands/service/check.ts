import { toJson } from "../../base/json.ts";
import { countOf } from "../../base/number.ts";
import { jsonWithoutCredentials } from "../../base/plain-text.ts";
import { type CommandIo, EXIT, type ExitCode } from "../io.ts";
import { writeLines } from "../lines.ts";
import { type Checked, checkConfiguration } from "./configuration-check.ts";

/** `collector check`: whether the files of the configuration can be used, before the service takes them. */
export async function check(
  { config, json = false }: { readonly config?: string; readonly json?: boolean },
  io: CommandIo,
): Promise<ExitCode> {
  const checked = await checkConfiguration(config, io);
  const { settings, sources, sinks, variables, closed } = checked;
  const findings = [...checked.findings, ...closed.hosts.map(({ who, why }) => ({ level: "error" as const, where: who, message: why }))];
  const errors = findings.filter(({ level }) => level === "error").length;
  const counts = { sources: sources?.length ?? null, sinks: sources ? sinks.length : null, variables: sources ? variables : null };
  if (json)
    io.stdout.write(
      `${toJson({ ok: errors === 0, file: settings?.file ?? null, ...counts, findings, policy_lines: closed.lines }, jsonWithoutCredentials)}\n`,
    );
  else writeLines(io, linesOf({ ...checked, findings }, errors));
  return errors === 0 ? EXIT.good : EXIT.usage;
}

function linesOf({ findings, settings, policy, closed, sources, sinks, variables }: Checked, errors: number): readonly string[] {
  const of = sources
    ? `${countOf(sources.length, "data source")}, ${countOf(variables, "variable")}, ${countOf(sinks.length, "data sink")}`
    : "no data sources are known yet";
  const file = settings?.file ?? "the defaults (there is no settings file)";
  return [
    ...findings.map(({ level, where, message }) => `${level.padEnd(7)}  ${where}: ${message}`),
    ...(closed.lines.length > 0 ? ["", `To open all of these hosts, ${policy?.file ?? "policy.yaml"} says:`, "", ...closed.lines] : []),
    ...(findings.length > 0 ? [""] : []),
    errors === 0
      ? `The configuration can be used: ${file}; ${of}; ${countOf(findings.length, "warning")}.`
      : `${countOf(errors, "error")}, ${countOf(findings.length - errors, "warning")}. What is wrong is not used; the rest is.`,
  ];
}
