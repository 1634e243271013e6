import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { dashboard } from "./dashboard.ts";

const here = (file: string): string => path.join(import.meta.dirname, file);

/** Labels by metric, of the generated list; a histogram counts as its series too. */
const METRICS = new Map(
  [...readFileSync(here("../../docs/generated/metrics.md"), "utf8").matchAll(/^\| `(\w+)` \| (\w+) \| (.*?) \| /gm)].flatMap(
    ([, name = "", type, labels = ""]): (readonly [string, readonly string[]])[] => {
      const names = [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label);
      return type === "histogram" ? [[`${name}_bucket`, [...names, "le"]]] : [[name, names]];
    },
  ),
);
/** What Prometheus adds. */
const ADDED = ["instance", "job"];

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}
const RULES = (parse(readFileSync(here("collector-alerts.yml"), "utf8")) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  ({ rules }) => rules,
);
const QUERIES = (dashboard() as { panels: { title: string; targets: { expr: string; legendFormat?: string }[] }[] }).panels.flatMap(
  ({ title, targets }) => targets.map(({ expr, legendFormat }) => ({ title, expr, legendFormat })),
);
const EXPRESSIONS = [
  ...RULES.map(({ alert, expr }) => [alert, expr] as const),
  ...QUERIES.map(({ title, expr }) => [title, expr] as const),
];

const metricsIn = (text: string): readonly string[] => [...text.matchAll(/\bcollector_\w+/g)].map(([name]) => name);
const labelsOf = (expr: string): readonly string[] => metricsIn(expr).flatMap((name) => METRICS.get(name) ?? []);

describe("what the package brings for monitoring", () => {
  it("is the dashboard as its file has it", async () => {
    await expect(`${JSON.stringify(dashboard(), null, 2)}\n`).toMatchFileSnapshot(here("collector-dashboard.json"));
  });

  it.each(EXPRESSIONS)("asks for metrics and labels that there are: %s", (_, expr) => {
    const metrics = metricsIn(expr);
    for (const name of metrics) expect([...METRICS.keys()]).toContain(name);
    const asked = [...expr.matchAll(/(?:\bby|\bon) \(([^)]*)\)|[{,](\w+)=/g)].flatMap(([, list, one]) => (list ?? one ?? "").split(/, */));
    if (metrics.length > 0) expect([...labelsOf(expr), ...ADDED]).toEqual(expect.arrayContaining(asked));
  });

  it.each(RULES.map((rule) => [rule.alert, rule] as const))(
    "names labels in the words of %s that its series have",
    (_, { expr, annotations }) => {
      const asked = [
        ...Object.values(annotations)
          .join(" ")
          .matchAll(/\$labels\.(\w+)/g),
      ].map(([, label = ""]) => label);
      expect([...labelsOf(expr), ...ADDED]).toEqual(expect.arrayContaining(asked));
      expect(annotations["description"]).toMatch(/collector |systemctl /);
    },
  );

  it("has panels that do not overlap", () => {
    const { panels } = dashboard() as { panels: { gridPos: { x: number; y: number; w: number; h: number } }[] };
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });
});
