import { type DataSink, type DataSource, dataSinkSchema, dataSourceSchema, unusableSourceFields } from "../model/resources.ts";
import { type Variable, variableSchema } from "../model/variable.ts";
import { ConfigurationList } from "./configuration-list.ts";
import { ListPages } from "./list-pages.ts";
import type { RecordForm } from "./records.ts";

/** One array, so that a list that stays empty is the same one. */
export const NONE: readonly never[] = [];

/** How the records of each list are judged. */
export const DATA_SOURCE_FORM: RecordForm<DataSource> = {
  schema: dataSourceSchema,
  owner: (source) => source.collector ?? undefined,
  unusable: unusableSourceFields,
};
export const DATA_SINK_FORM: RecordForm<DataSink> = { schema: dataSinkSchema, owner: (sink) => sink.collector ?? undefined };
export const VARIABLE_FORM: RecordForm<Variable> = { schema: variableSchema, owner: () => undefined };

/** The lists that make up the configuration of one collector. */
export class ConfigurationLists {
  readonly sources: ConfigurationList<DataSource>;
  readonly sinks: ConfigurationList<DataSink>;
  readonly variables: ConfigurationList<Variable>;

  /** `base` for messages; `collector` in lower case. */
  constructor(base: string, collector: string) {
    const sourcePages = new ListPages<DataSource>({
      ...DATA_SOURCE_FORM,
      usedFields: Object.keys(dataSourceSchema.in.shape),
    });
    const sinkPages = new ListPages<DataSink>({
      ...DATA_SINK_FORM,
      usedFields: Object.keys(dataSinkSchema.in.shape),
    });
    const variablePages = new ListPages<Variable>(VARIABLE_FORM);
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
