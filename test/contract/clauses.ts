import {
  CREATE_DETAILS,
  DATA_SINK,
  DATA_SOURCE,
  DATA_SOURCE_CREATE,
  READ_DETAILS,
  READOUT_STATUS,
  REASONS,
  type Row,
  SITE,
  type Table,
} from "./api-v2.ts";

/** What each statement of API-V2 says, in our own words, by the name that its test has. Pure. */

const withArticle = (noun: string): string => `${/^[aeiou]/.test(noun) ? "an" : "a"} ${noun}`;

const kindOf = (row: Row): string => {
  switch (row.type) {
    case "enum":
      return `one of ${row.values.map((value) => `\`${value}\``).join(", ")}`;
    case "list":
      return `one or more of ${row.values.map((value) => `\`${value}\``).join(", ")}, each once`;
    case "union":
      return `an object whose \`${row.discriminator}\` says which fields it has`;
    case "object":
      return `an object of ${row.shape.map(({ field }) => `\`${field}\``).join(", ")}`;
    case "array":
      return `a list of objects of ${row.shape.map(({ field }) => `\`${field}\``).join(", ")}`;
    case "date-time":
      return "a time in UTC, ISO 8601";
    case "record":
      return "an object of any fields";
    default:
      return withArticle(row.type === "uuid" ? "UUID" : row.type);
  }
};

/** A field of a table: `an integer, required, may be null`. */
function fieldClause(row: Row): string {
  const bounds =
    "min" in row && (row.min !== undefined || row.max !== undefined)
      ? [`${row.min ?? "any"} to ${row.max ?? "any"}`]
      : "minLength" in row && (row.minLength !== undefined || row.maxLength !== undefined)
        ? [`${row.minLength ?? 0} to ${row.maxLength ?? "any number of"} characters`]
        : [];
  return [
    kindOf(row),
    ...bounds,
    row.required ? "required" : "optional",
    ...(row.nullable ? ["may be null"] : []),
    ...(row.default === undefined ? [] : [`default \`${JSON.stringify(row.default)}\``]),
  ].join(", ");
}

const tableClauses = ({ section, shape }: Table): readonly (readonly [string, string])[] =>
  shape.map((row) => [`${section} ${row.field}`, fieldClause(row)]);

const detailClauses = (section: string, of: Readonly<Record<string, readonly Row[]>>): readonly (readonly [string, string])[] =>
  Object.entries(of).map(([type, shape]) => [
    `${section} ${type}`,
    `details of this type: ${shape.map((row) => `\`${row.field}\`${row.required ? "" : "?"}`).join(", ") || "no fields of its own"}`,
  ]);

const WORDS: Readonly<Record<string, string>> = {
  "1 site": "A collector belongs to a site; its key reaches the records of that site, and the others are absent.",
  "1 experimental": "The operations on data sinks are marked as experimental.",
  "2.2 type": "The type of a data source is that of its details; an unknown one is refused on creation.",
  "2.2 security_settings":
    "OPC UA: mode Sign or SignAndEncrypt needs an endpoint policy other than None; mode None goes with any, and the token policy is free.",
  "2.2 user_identity Anonymous": "OPC UA: no user.",
  "2.2 user_identity UserNamePassword": "OPC UA: user name, and a password that is written and never read back.",
  "2.2 user_identity X509Certificate": "OPC UA: the user is a certificate; it is read, and refused on creation.",
  "2.2 protocol_details OPC_DA": "Vendor gateway: an OPC DA server, by its name.",
  "2.2 protocol_details PVI": "Vendor gateway: a PVI connection, by its path.",
  "2.2 protocol_details OTHER": "Vendor gateway: any other protocol; it is read, and refused on creation.",
  "2.2 s7plus.password none": "S7+: no password.",
  "2.2 s7plus.password configured": "S7+: there is a password; it is written and never read back.",
  "2.3 state OK": "The data source is read.",
  "2.3 state UNKNOWN": "The state is not known: no readout has been made.",
  "2.3 state ERROR": "The data source is not read: with the reason and the time of the first failure.",
  "2.5 mqtt": "Details of an MQTT broker.",
  "2.5 opcua": "Details of a hosted OPC UA server.",
  "2.5 platform": "The platform itself; it needs no details.",
  "2.7 data": "A page has its records in `data`.",
  "2.7 metadata": "A page has its cursor in `metadata.next_cursor`, null on the last page.",
  "3 states": "The states of a readout status are OK, UNKNOWN and ERROR; ERROR has a reason and `error_at`.",
  "4 authorization": "Every operation needs a key; without one the answer is 401.",
  "4.1 GET": "Data sources are listed in creation order, and filtered by uuid, machine and collector.",
  "4.1 POST": "A data source is created: 201 with the record. What the server sets may not be sent.",
  "4.1 single": "One data source is read by its uuid: 404 for an unknown one, 422 for what is not a uuid.",
  "4.1 update and delete": "A data source is changed (204) and deleted (204, then 404); identity and type do not change.",
  "4.1 stored password": "A stored password stays with the address that it was set for: a change of that has to bring it again.",
  "4.2 GET": "Data sinks are listed and filtered like data sources.",
  "4.2 POST": "A data sink is created: 201; collector and details are required.",
  "4.2 GET {uuid}": "One data sink is read by its uuid.",
  "4.2 DELETE {uuid}": "A data sink is deleted: 204, then 404.",
  "4.2 PATCH {uuid}": "A data sink is changed: 204. Its name may not become null.",
  "4.2 rule 1": "A change names only what changes; `details` merges by its own fields, and lists are replaced as a whole.",
  "4.2 rule 2": "The type of a data sink does not change.",
  "4.2 rule 3": "The collector of a data sink does not change.",
  "4.2 rule 4": "Passwords of users are written and never read back; a list of users replaces the one before.",
  "4.3 GET": "Sites are listed; a collector's key sees its own.",
  "4.3 POST": "A site is created with an admin key: 201; a collector's key gets 403.",
  "4.3 GET {uuid}": "One site is read by its uuid; one out of reach is 404.",
  "4.3 PATCH {uuid}": "A site is renamed: 204.",
  "4.3 DELETE {uuid}": "A site is deleted: 204; one that collectors use is 409.",
  "4.4 production runs": "Production runs are not offered: 404.",
  "4.4 time series": "Values are read back by machine, at most 100 variables, and a time span.",
  "4.5 rule 1": "Lists come in pages.",
  "4.5 rule 2": "A page names the cursor of the next one.",
  "4.5 rule 3": "Records come in creation order, each once.",
  "4.5 rule 4": "The last page has no cursor.",
  "4.5 rule 5": "A cursor belongs to the other parameters and to its list: with others it is 422.",
  "4.5 rule 6": "A cursor is opaque; an altered one is 422.",
  "4.5 rule 7": "Time series have their cursor in the body.",
  "5 rule 1": "The key is in the header `Authorization`.",
  "5 rule 2": "The key is taken with and without `Bearer`.",
  "5 rule 3": "A collector's key works on its site's records; sites, collectors, machines and keys are changed by an admin key: else 403.",
  "7 rule 1": "What is wrong with a request is 422, with each place in `loc`; no secret is in the answer.",
  "7 rule 2": "A failure of a data source is not an error of the API: it is in `readout_status`.",
  "7 rule 3": "Every other error is a status and one sentence in `detail`.",
  "8 filters": "A filter takes at most 50 values, each once.",
  "8 data sink name": "A data sink's name has 1 to 200 characters, counted as code points.",
  "8 odac port": "ODAC: the port is 0 to 65535.",
  "8 s7plus password": "S7+: a password is not empty.",
  "8 page size": "A page has 50 records.",
  "8 bodies": "Every list and object of a body has a maximum, checked before its items; at most 100 problems are listed.",
  "9 rule 1": "The version is in the path: /v2, and /ext/v1 for what we add.",
  "9 rule 2": "What may change without a new version is marked experimental.",
  "9 rule 3": "A field that will go is marked deprecated.",
};

/** By the name of its test. */
export const CLAUSES: ReadonlyMap<string, string> = new Map([
  ...tableClauses(DATA_SOURCE),
  ...detailClauses("2.2", READ_DETAILS),
  ...tableClauses(READOUT_STATUS),
  ...Object.entries(REASONS).map(([reason, shape]): readonly [string, string] => [
    `2.3 reason ${reason}`,
    shape.length === 0
      ? "a reason without fields"
      : `a reason with ${shape.map((row) => `\`${row.field}\`, ${fieldClause(row)}`).join("; ")}`,
  ]),
  ...tableClauses(DATA_SOURCE_CREATE),
  ...detailClauses("2.4", CREATE_DETAILS),
  ...tableClauses(DATA_SINK),
  ...tableClauses(SITE),
  ...Object.entries(WORDS),
]);
