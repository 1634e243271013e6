import { CLOCK_OF_LOSSES, CLOCK_OF_VALUES, NULLS_IN_VALUES } from "../routes/extensions.ts";
import type { Operation } from "../routes/index.ts";

/** What is sent to an operation and what it answers. A test sends each of them and compares the answers. */
export interface Example {
  /** Bodies by a short name; the answer belongs to the first. */
  readonly requests?: Readonly<Record<string, unknown>>;
  /** Body of the answer with the lowest status. */
  readonly answer?: unknown;
}

interface Created {
  readonly name: string;
  readonly details: object;
}
type CreatedByType = Readonly<Record<string, { readonly created: Created }>>;

/** The facts of the types of data sources and data sinks, by type, with a record of each as it is created. */
export interface CreatedExamples {
  readonly sources: CreatedByType;
  readonly sinks: CreatedByType;
}
export const NO_EXAMPLES: CreatedExamples = { sources: {}, sinks: {} };

export const EXAMPLE_COLLECTOR = "c0117ec7-0000-4000-8000-000000000001";
const ANOTHER_COLLECTOR = "c0117ec7-0000-4000-8000-000000000002";
const MACHINE = "3ac41e00-0000-4000-8000-000000000001";
const SITE = "517e0000-0000-4000-8000-000000000001";
const SOURCE = "50c0ce00-0000-4000-8000-000000000001";
export const EXAMPLE_SINK = "51c40000-0000-4000-8000-000000000001";
const VARIABLE = "7a21ab1e-0000-4000-8000-000000000001";
const READ_AT = "2026-11-20T09:00:00.123Z";

const source = ({ name, details }: Created) => ({ name, collector: EXAMPLE_COLLECTOR, machine: MACHINE, details });
const sink = ({ name, details }: Created) => ({ name, collector: EXAMPLE_COLLECTOR, details });
const page = (record: object) => ({ data: [record], metadata: { next_cursor: null } });

const createdSource = {
  uuid: SOURCE,
  type: "modbus_tcp",
  readout_limit: null,
  readout_interval: 10,
  readout_status: { last_readout_at: null, configured_variables: 0, state: { type: "UNKNOWN" } },
  name: "press-1",
  collector: EXAMPLE_COLLECTOR,
  manufacturer: null,
  device_model: null,
  note: null,
  capabilities: { variable_discovery: false },
  machine: MACHINE,
  last_readout_at: null,
  details: { type: "modbus_tcp", host: "192.168.0.10", port: 502, ephemeral_connections: true },
};
const readStatus = { last_readout_at: READ_AT, configured_variables: 1, state: { type: "OK" } };
const readSource = { ...createdSource, readout_status: readStatus, last_readout_at: READ_AT };
const createdSink = {
  uuid: EXAMPLE_SINK,
  name: "hall 3",
  collector: EXAMPLE_COLLECTOR,
  type: "mqtt",
  details: {
    type: "mqtt",
    host: "broker.plant.example",
    port: 1883,
    client_id: `collector-${EXAMPLE_SINK}`,
    topic: "hall3/{source}/{variable}",
    publish_interval: 1,
  },
};
const variable = { name: "pressure", address: "holding:2", type: "uint16", unit: "bar", scaling: { factor: 0.1, offset: 0 } };
const createdVariable = { uuid: VARIABLE, data_source: SOURCE, ...variable, comment: null, status: "ACTIVE" };
const site = { uuid: SITE, name: "north plant" };
const collector = { uuid: ANOTHER_COLLECTOR, name: "box in hall 4", site: null };
const machine = { uuid: MACHINE, name: "press 1", site: SITE };
const loss = { id: "example-refused-1", from: "2026-11-20T09:00:00.000Z", to: "2026-11-20T09:10:00.000Z", count: 600, reason: "refused" };
const sample = { time: READ_AT, variable: VARIABLE, value: 21.5, quality: "good" };

const mapped = (types: CreatedByType, body: (one: Created) => object) =>
  Object.fromEntries(Object.entries(types).map(([type, { created }]) => [type, body(created)]));

/** An example for each operation that has one; `sources` and `sinks` are those of their types. Pure. */
export const examplesOf = ({ sources, sinks }: CreatedExamples): Readonly<Partial<Record<Operation, Example>>> => ({
  listDataSources: { answer: page(readSource) },
  createDataSource: {
    requests: mapped(sources, source),
    answer: createdSource,
  },
  getDataSource: { answer: readSource },
  patchDataSource: { requests: { interval: { readout_interval: 5, details: { ephemeral_connections: false } } } },
  listDataSinks: { answer: page(createdSink) },
  createDataSink: {
    requests: mapped(sinks, sink),
    answer: createdSink,
  },
  getDataSink: { answer: createdSink },
  patchDataSink: { requests: { interval: { details: { publish_interval: 5 } } } },
  listSites: { answer: page(site) },
  createSite: { requests: { site: { name: "north plant" } }, answer: site },
  getSite: { answer: site },
  patchSite: { requests: { name: { name: "north plant, hall 3" } } },
  listVariables: { answer: page(createdVariable) },
  createVariable: { requests: { variable: { data_source: SOURCE, ...variable } }, answer: createdVariable },
  changeVariables: {
    requests: {
      batch: {
        data_source: SOURCE,
        change: [{ uuid: VARIABLE, unit: "mbar" }],
        create: [{ name: "level", address: "holding:4", type: "uint16" }],
      },
    },
    answer: { deleted: 0, changed: 1, created: 1 },
  },
  patchVariable: { requests: { unit: { unit: "mbar" } } },
  listCollectors: { answer: page(collector) },
  createCollector: { requests: { collector: { name: "box in hall 4" } }, answer: collector },
  getCollector: { answer: collector },
  patchCollector: { requests: { site: { site: SITE } } },
  listMachines: { answer: page(machine) },
  createMachine: { requests: { machine: { uuid: MACHINE, name: "press 1", site: SITE } }, answer: machine },
  getMachine: { answer: machine },
  patchMachine: { requests: { name: { name: "press 1, west" } } },
  getExtensions: { answer: { extension: "collector", version: 1, optional_fields: [CLOCK_OF_VALUES, CLOCK_OF_LOSSES, NULLS_IN_VALUES] } },
  getRevision: { answer: { revision: "5f1c2a9e-17" } },
  getSecrets: { answer: { secrets: { [SOURCE]: { password: "write-only" } } } },
  putReadoutStatuses: {
    requests: {
      failed: [
        {
          data_source: SOURCE,
          readout_status: {
            last_readout_at: READ_AT,
            configured_variables: 1,
            state: { type: "ERROR", reason: { type: "CONNECTION_REFUSED" }, error_at: "2026-11-20T09:00:10.123Z" },
          },
        },
      ],
      read: [{ data_source: SOURCE, readout_status: readStatus }],
    },
    answer: { updated: 1, unknown: [] },
  },
  postValues: {
    requests: { values: { id: "example-1", data_source: SOURCE, values: [sample] } },
    answer: { accepted: 1, duplicate: false },
  },
  putLoss: { requests: { refused: loss }, answer: { id: "example-refused-1" } },
  listLosses: { answer: page(loss) },
  listValues: { answer: page({ ...sample, data_source: SOURCE }) },
  postTimeseries: {
    requests: { variables: { variables: [VARIABLE], start: "2026-11-20T09:00:00Z", end: "2026-11-20T10:00:00Z" } },
    answer: page({ ...sample, data_source: SOURCE }),
  },
});

/** Bodies of problems by status. */
export const PROBLEM_EXAMPLES: Readonly<Record<string, unknown>> = {
  401: { detail: "the Authorization header must carry a valid API key" },
  403: { detail: "only an admin key may change this" },
  404: { detail: "there is no such data source" },
  409: { detail: `the name is taken by data sink ${EXAMPLE_SINK} of this collector: choose another one` },
  412: {
    detail: "the record has changed since it was read (If-Match): read it again and repeat the change on its new content",
  },
  413: { detail: "the body is larger than this operation takes" },
  414: { detail: "the request's target has more than 10000 characters" },
  415: { detail: "the body must be application/json" },
  422: {
    detail: [
      {
        loc: ["body", "name"],
        msg: "expected a text, not a number",
        type: "invalid_type",
        input: 7,
        ctx: { expected: "string" },
      },
    ],
  },
  429: { detail: "too many requests with a wrong API key from this address" },
  503: { detail: "the bodies of other requests take all the room there is: send this one again" },
  500: { detail: "the collector failed to answer; its log says why" },
};
