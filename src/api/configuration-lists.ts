import { type DataSink, type DataSource, dataSinkSchema, dataSourceSchema } from "../model/resources.ts";
import { type Variable, variableSchema } from "../model/variable.ts";
import { ConfigurationList } from "./configuration-list.ts";
import { ListPages } from "./list-pages.ts";

/** One array, so that a list that stays empty is the same one. */
export const NONE: readonly never[] = [];

/** The lists that make up the configuration of one collector. */
export class ConfigurationLists {
  readonly sources: ConfigurationList<DataSource>;
  readonly sinks: ConfigurationList<DataSink>;
  readonly variables: ConfigurationList<Variable>;

  /** `base` for messages; `collector` in lower case. */
  constructor(base: string, collector: string) {
    const sourcePages = new ListPages<DataSource>({
      schema: dataSourceSchema,
      owner: (source) => source.collector,
      usedFields: Object.keys(dataSourceSchema.shape),
    });
    const sinkPages = new ListPages<DataSink>({
      schema: dataSinkSchema,
      owner: (sink) => sink.collector,
      usedFields: Object.keys(dataSinkSchema.shape),
    });
    const variablePages = new ListPages<Variable>({ schema: variableSchema, owner: () => undefined });
    const byUuid = { filter: "uuid", filterValue: ({ uuid }: { readonly uuid: string }) => uuid } as const;
    this.sources = new ConfigurationList({ what: "data source", path: "/v2/data-sources", base, collector, ...byUuid }, sourcePages);
    this.sinks = new ConfigurationList({ what: "data sink", path: "/v2/data-sinks", base, collector, ...byUuid }, sinkPages);
    this.variables = new ConfigurationList(
      {
        what: "variable",
        path: "/ext/v1/variables",
        base,
        collector,
        filter: "data_source",
        filterValue: ({ data_source }: Variable) => data_source,
      },
      variablePages,
    );
  }

  /** How many records have been validated so far. */
  judged(): number {
    return this.sources.judged + this.sinks.judged + this.variables.judged;
  }
}
