/**
 * The normative statements of Sparkplug 3.0 that bind an edge node, by the `tck-id` that the specification's source gives them
 * (eclipse-sparkplug/sparkplug, chapters 1 to 6), in our own words, each with the test that holds it or the reason for having none. Statements that
 * bind host applications and MQTT servers alone are left out.
 */
export interface Statement {
  readonly id: string;
  /** Its demand, in short. */
  readonly asks: string;
  /** A test, by its file and its name, or a reason. */
  readonly proof: Test | { readonly reason: string };
}

export interface Test {
  readonly file: string;
  /** The words in the file. */
  readonly name: string;
}

const SESSION = "src/sinks/mqtt/sparkplug/edge-node.test.ts";
const PAYLOAD = "src/sinks/mqtt/sparkplug/payload.test.ts";
const SINK = "src/sinks/mqtt/sparkplug/sink.system.test.ts";
const HOST = "src/sinks/mqtt/sparkplug/primary-host.test.ts";
const MOSQUITTO = "test/faults/mqtt/sparkplug.parts.test.ts";

const NBIRTH = { file: SESSION, name: "NBIRTH has sequence number 0, bdSeq as INT64 and Rebirth without an alias" };
const DBIRTH = {
  file: SESSION,
  name: "DBIRTH has every variable but explored ones, with name, alias, type, unit and comment, and null where nothing was read",
};
const CURRENT = { file: SESSION, name: "DBIRTH has the current values, with their own times, and keeps aliases over connections" };
const NDEATH = { file: SESSION, name: "NDEATH has bdSeq alone and no sequence number" };
const DDEATH = { file: SESSION, name: "DDEATH has a time, a sequence number and nothing else" };
const DDATA = { file: SESSION, name: "has an alias, a time and a value for each reading, and neither name nor type" };
const SEQ = { file: SESSION, name: "has sequence numbers up to 255, and 0 behind it" };
const COURSE = { file: SESSION, name: "keeps sequence number, aliases and births right over any course, and every value to the digit" };
const NDATA = { file: SESSION, name: "a loss is a metric of the node, in NDATA and in the next NBIRTH" };
const HISTORICAL = {
  file: SESSION,
  name: "marks the backlog and overtaken readouts as historical, which then are not the current value",
};
const QUALITY = {
  file: SESSION,
  name: "a fault is null with Quality 0 and its reason; the first good value after it says Quality 192, and the next one nothing",
};
const FIELDS = { file: PAYLOAD, name: "has time, sequence number and metrics, with each field of a metric that is given and no other" };
const TYPES = { file: PAYLOAD, name: "gives back each value of each type, 64-bit integers with all digits" };
const ORDER = { file: SINK, name: "is born, then each device, then sends data; the ledger has them as unconfirmed" };
const PACKETS = {
  file: SINK,
  name: "CONNECT has the death as its will, SUBSCRIBE comes before the birth, all but the death has QoS 0, DISCONNECT keeps the will",
};
const BD_SEQ = { file: SINK, name: "bdSeq rises by one with each CONNECT" };
const REBIRTH = { file: SINK, name: "is born again on a Rebirth command, with sequence number 0 and the same bdSeq" };
const COMMANDS = { file: SINK, name: "refuses every other command, counts it and says so, and no bytes from outside end it" };
const DEVICES = {
  file: SINK,
  name: "a device dies when its source is not read or not configured any more, and is born when it is read again",
};
const WAITS = { file: SINK, name: "is waited for: nothing is born before it is online, and all dies when it is not" };
const NAMESAKES = { file: SINK, name: "gives the device to the first of two data sources of one name" };
const IDS = { file: HOST, name: "takes any text of one topic level" };
const BAD_IDS = { file: HOST, name: "refuses %j" };
const STATE_TIME = { file: HOST, name: "takes what has the same time or a later one, and ignores what is older" };
const STATE_ONLINE = { file: HOST, name: "is online after a STATE message that says so, and not before" };
const CUTS = {
  file: MOSQUITTO,
  name: "mosquitto: connections that are cut again and again lose no value, and each ends with its own death",
};

const reason = (text: string) => ({ reason: text });
const NO_RBE = reason(
  "A SHOULD. Every readout is sent; which readouts there are is a matter of the source (report by exception comes before the buffer)",
);
const OF_HOST = reason("Binds the host application that sends the command");
const NO_DATA_SET = reason("The collector sends no DataSet: it has no tables");
const NO_TEMPLATE = reason("The collector sends no Template: a structure has no type in it, and its value is a text that holds JSON");
const ONE_BROKER = reason("A sink has one broker; the connection to it is closed and opened again");
const UNIQUE = reason(
  "The default, the client_id, holds the uuid of the sink. Only the operator of the broker knows whether a configured name is unique",
);

const rows: readonly (readonly [id: string, asks: string, proof: Statement["proof"]])[] = [
  ["intro-group-id-string", "The Group ID is a UTF-8 string of the topics", IDS],
  ["intro-group-id-chars", "The Group ID has only characters that a topic may have", BAD_IDS],
  ["intro-edge-node-id-string", "The Edge Node ID is a UTF-8 string of the topics", IDS],
  ["intro-edge-node-id-chars", "The Edge Node ID has only characters that a topic may have", BAD_IDS],
  ["intro-device-id-string", "The Device ID is a UTF-8 string of the topics", COURSE],
  ["intro-device-id-chars", "The Device ID has only characters that a topic may have", COURSE],
  ["principles-rbe-recommended", "Data should be sent by exception, not periodically", NO_RBE],
  ["principles-birth-certificates-order", "Births are the first messages", PACKETS],
  [
    "principles-persistence-clean-session-311",
    "MQTT 3.1.1: Clean Session is true",
    { file: SINK, name: "CONNECT of MQTT 3.1.1 asks for a clean session" },
  ],
  ["principles-persistence-clean-session-50", "MQTT 5: Clean Start is true, the session expires at once", PACKETS],
  [
    "case-sensitivity-metric-names",
    "Metric names should differ in more than case",
    reason("A SHOULD. Names are those of the configuration, in which case counts"),
  ],
  [
    "case-sensitivity-sparkplug-ids",
    "Identifiers should differ in more than case",
    reason("A SHOULD. Names are those of the configuration, in which case counts"),
  ],
  // 4, topics
  ["topic-structure", "Topics have namespace, group, message type, node and device", COURSE],
  ["topic-structure-namespace-a", "The namespace is spBv1.0", COURSE],
  ["topic-structure-namespace-valid-group-id", "The Group ID has no + / #", BAD_IDS],
  ["topic-structure-namespace-unique-edge-node-descriptor", "Group and node are unique", UNIQUE],
  ["topic-structure-namespace-valid-edge-node-id", "The Edge Node ID has no + / #", BAD_IDS],
  ["topic-structure-namespace-valid-device-id", "The Device ID has no + / #", COURSE],
  ["topic-structure-namespace-unique-device-id", "A Device ID is unique in its node", NAMESAKES],
  [
    "topic-structure-namespace-duplicate-device-id-across-edge-node",
    "Nodes may have the same Device ID",
    reason("A MAY, which asks for nothing"),
  ],
  ["topic-structure-namespace-device-id-associated-message-types", "Messages of a device have its identifier", COURSE],
  ["topic-structure-namespace-device-id-non-associated-message-types", "Messages of the node have none", COURSE],
  ["topics-nbirth-topic", "The topic of NBIRTH", PACKETS],
  ["topics-nbirth-mqtt", "NBIRTH has QoS 0 and is not retained", PACKETS],
  ["topics-nbirth-seq-num", "NBIRTH has sequence number 0", NBIRTH],
  ["topics-nbirth-timestamp", "NBIRTH has the time when it was sent", NBIRTH],
  ["topics-nbirth-metric-reqs", "NBIRTH has every metric of the node", NDATA],
  ["topics-nbirth-metrics", "Metrics of NBIRTH have name, data type and value", NBIRTH],
  ["topics-nbirth-templates", "NBIRTH has the definitions of all templates", NO_TEMPLATE],
  ["topics-nbirth-bdseq-included", "NBIRTH has bdSeq", NBIRTH],
  ["topics-nbirth-bdseq-matching", "It is that of the last will", BD_SEQ],
  ["topics-nbirth-bdseq-increment", "It begins at 0 and rises by one with each CONNECT", BD_SEQ],
  ["topics-nbirth-rebirth-metric", "NBIRTH has Node Control/Rebirth, false", NBIRTH],
  ["topics-ndata-topic", "The topic of NDATA", NDATA],
  ["topics-ndata-mqtt", "NDATA has QoS 0 and is not retained", COMMANDS],
  ["topics-ndata-seq-num", "NDATA has the next sequence number", NDATA],
  ["topics-ndata-timestamp", "NDATA has the time when it was sent", NDATA],
  ["topics-ndata-payload", "NDATA has the metrics of the node that changed", NDATA],
  ["topics-ndeath-topic", "The topic of NDEATH", NDEATH],
  ["topics-ndeath-payload", "NDEATH has bdSeq alone", NDEATH],
  ["topics-ndeath-seq", "NDEATH has no sequence number", NDEATH],
  ["topics-ncmd-topic", "The topic of NCMD", PACKETS],
  ["topics-ncmd-mqtt", "NCMD has QoS 0 and is not retained", OF_HOST],
  ["topics-ncmd-timestamp", "NCMD has the time when it was sent", OF_HOST],
  ["topics-ncmd-payload", "NCMD has the metrics to write", OF_HOST],
  ["topics-dbirth-topic", "The topic of DBIRTH", COURSE],
  ["topics-dbirth-mqtt", "DBIRTH has QoS 0 and is not retained", PACKETS],
  ["topics-dbirth-seq", "DBIRTH has the next sequence number", COURSE],
  ["topics-dbirth-timestamp", "DBIRTH has the time when it was sent", DBIRTH],
  ["topics-dbirth-metric-reqs", "DBIRTH has every metric of the device", COURSE],
  ["topics-dbirth-metrics", "Metrics of DBIRTH have name, data type and value", DBIRTH],
  ["topics-ddata-topic", "The topic of DDATA", COURSE],
  ["topics-ddata-mqtt", "DDATA has QoS 0 and is not retained", PACKETS],
  ["topics-ddata-seq-num", "DDATA has the next sequence number", SEQ],
  ["topics-ddata-timestamp", "DDATA has the time when it was sent", DDATA],
  ["topics-ddata-payload", "DDATA has the metrics of the device that changed", DDATA],
  ["topics-ddeath-topic", "The topic of DDEATH", DDEATH],
  ["topics-ddeath-mqtt", "DDEATH has QoS 0 and is not retained", DEVICES],
  ["topics-ddeath-seq-num", "DDEATH has the next sequence number", DDEATH],
  ["topics-dcmd-topic", "The topic of DCMD", PACKETS],
  ["topics-dcmd-mqtt", "DCMD has QoS 0 and is not retained", OF_HOST],
  ["topics-dcmd-timestamp", "DCMD has the time when it was sent", OF_HOST],
  ["topics-dcmd-payload", "DCMD has the metrics to write", OF_HOST],
  // 5, operational behavior
  ["message-flow-edge-node-ncmd-subscribe", "The node subscribes to its NCMD with QoS 1", PACKETS],
  ["message-flow-edge-node-birth-publish-connect", "An MQTT session comes before the births", PACKETS],
  ["message-flow-edge-node-birth-publish-will-message", "CONNECT has a last will", PACKETS],
  ["message-flow-edge-node-birth-publish-will-message-topic", "The will has the topic of NDEATH", PACKETS],
  ["message-flow-edge-node-birth-publish-will-message-payload", "The will is a payload of Sparkplug B", PACKETS],
  [
    "message-flow-edge-node-birth-publish-will-message-payload-bdSeq",
    "The will has bdSeq as INT64, one more each time, 0 behind 255",
    { file: SESSION, name: "bdSeq begins at 0, rises by one with each CONNECT and is 0 again after 255" },
  ],
  ["message-flow-edge-node-birth-publish-will-message-qos", "The will has QoS 1", PACKETS],
  ["message-flow-edge-node-birth-publish-will-message-will-retained", "The will is not retained", PACKETS],
  ["message-flow-edge-node-birth-publish-phid-wait", "The node waits for its primary host", WAITS],
  ["message-flow-edge-node-birth-publish-phid-wait-id", "It takes the STATE of that host alone", WAITS],
  ["message-flow-edge-node-birth-publish-phid-wait-online", "It waits for online: true", STATE_ONLINE],
  ["message-flow-edge-node-birth-publish-phid-wait-timestamp", "STATE counts where it is not older than the one before", STATE_TIME],
  ["message-flow-edge-node-birth-publish-nbirth-topic", "The topic of NBIRTH", PACKETS],
  ["message-flow-edge-node-birth-publish-nbirth-payload", "NBIRTH is a payload of Sparkplug B", NBIRTH],
  ["message-flow-edge-node-birth-publish-nbirth-payload-bdSeq", "NBIRTH has bdSeq as INT64, that of CONNECT", BD_SEQ],
  ["message-flow-edge-node-birth-publish-nbirth-qos", "NBIRTH has QoS 0", PACKETS],
  ["message-flow-edge-node-birth-publish-nbirth-retained", "NBIRTH is not retained", PACKETS],
  ["message-flow-edge-node-birth-publish-nbirth-payload-seq", "NBIRTH has a sequence number from 0 to 255", NBIRTH],
  ["message-flow-edge-node-birth-publish-phid-offline", "The node dies and connects again where its host goes offline", WAITS],
  ["message-flow-device-dcmd-subscribe", "A device that can be written to subscribes to its DCMD with QoS 1", PACKETS],
  ["message-flow-device-birth-publish-nbirth-wait", "NBIRTH comes before DBIRTH", ORDER],
  ["message-flow-device-birth-publish-dbirth-topic", "The topic of DBIRTH", COURSE],
  ["message-flow-device-birth-publish-dbirth-match-edge-node-topic", "Its group and node are those of NBIRTH", ORDER],
  ["message-flow-device-birth-publish-dbirth-payload", "DBIRTH is a payload of Sparkplug B", DBIRTH],
  ["message-flow-device-birth-publish-dbirth-qos", "DBIRTH has QoS 0", PACKETS],
  ["message-flow-device-birth-publish-dbirth-retained", "DBIRTH is not retained", PACKETS],
  ["message-flow-device-birth-publish-dbirth-payload-seq", "DBIRTH has the next sequence number", COURSE],
  [
    "operational-behavior-edge-node-intentional-disconnect-ndeath",
    "NDEATH is sent before an intentional end",
    { file: MOSQUITTO, name: "mosquitto: Rebirth, and an intentional end with a death of QoS 1 before DISCONNECT" },
  ],
  ["operational-behavior-edge-node-intentional-disconnect-packet", "DISCONNECT may follow", PACKETS],
  ["operational-behavior-device-ddeath", "DDEATH where a device is lost", DEVICES],
  ["operational-behavior-edge-node-termination-host-offline", "Disconnect where the host is offline by a STATE that is not older", WAITS],
  ["operational-behavior-edge-node-termination-host-offline-reconnect", "Connect to the next server then", ONE_BROKER],
  ["operational-behavior-edge-node-termination-host-offline-timestamp", "Stay where that STATE is older", WAITS],
  ["operational-behavior-edge-node-birth-sequence-wait", "Births wait for online: true", WAITS],
  [
    "operational-behavior-primary-application-state-with-multiple-servers-state-subs",
    "Nodes with a primary host subscribe to its STATE",
    WAITS,
  ],
  ["operational-behavior-primary-application-state-with-multiple-servers-single-server", "Connected to one server at a time", ONE_BROKER],
  [
    "operational-behavior-primary-application-state-with-multiple-servers-walk",
    "Go to the next server where the host is offline",
    ONE_BROKER,
  ],
  ["operational-behavior-data-publish-nbirth", "NBIRTH has all metrics of the node that will ever come", NDATA],
  ["operational-behavior-data-publish-nbirth-values", "A metric of NBIRTH has its value, or is_null and none", NBIRTH],
  ["operational-behavior-data-publish-nbirth-change", "NDATA should come by change", NDATA],
  ["operational-behavior-data-publish-nbirth-order", "Values of the node keep their order in time", NDATA],
  ["operational-behavior-data-publish-dbirth", "DBIRTH has all metrics of the device that will ever come", COURSE],
  ["operational-behavior-data-publish-dbirth-values", "A metric of DBIRTH has its value, or is_null and none", CURRENT],
  ["operational-behavior-data-publish-dbirth-change", "DDATA should come by change", NO_RBE],
  ["operational-behavior-data-publish-dbirth-order", "Values that are not historical keep their order in time", HISTORICAL],
  ["operational-behavior-data-commands-rebirth-name", "NBIRTH has Node Control/Rebirth", NBIRTH],
  ["operational-behavior-data-commands-rebirth-name-aliases", "It has no alias", NBIRTH],
  ["operational-behavior-data-commands-rebirth-datatype", "It is a Boolean", NBIRTH],
  ["operational-behavior-data-commands-rebirth-value", "It is false", NBIRTH],
  ["operational-behavior-data-commands-ncmd-rebirth-verb", "A Rebirth request is an NCMD", { file: SESSION, name: "Rebirth for a device" }],
  ["operational-behavior-data-commands-ncmd-rebirth-name", "It has the metric Node Control/Rebirth", { file: SESSION, name: "Reboot" }],
  ["operational-behavior-data-commands-ncmd-rebirth-value", "Its value is true", { file: SESSION, name: "Rebirth that is false" }],
  ["operational-behavior-data-commands-rebirth-action-1", "Data stop at once on a Rebirth request", REBIRTH],
  ["operational-behavior-data-commands-rebirth-action-2", "All births follow", REBIRTH],
  ["operational-behavior-data-commands-rebirth-action-3", "NBIRTH has the bdSeq of the last CONNECT", REBIRTH],
  ["operational-behavior-data-commands-ncmd-verb", "A command to the node is an NCMD", OF_HOST],
  ["operational-behavior-data-commands-ncmd-metric-name", "It names a metric of NBIRTH", COMMANDS],
  ["operational-behavior-data-commands-ncmd-metric-value", "Its value fits the metric", COMMANDS],
  ["operational-behavior-data-commands-dcmd-verb", "A command to a device is a DCMD", OF_HOST],
  ["operational-behavior-data-commands-dcmd-metric-name", "It names a metric of DBIRTH", COMMANDS],
  ["operational-behavior-data-commands-dcmd-metric-value", "Its value fits the metric", COMMANDS],
  // 6, payloads
  ["payloads-timestamp-in-UTC", "The time of a payload is UTC", FIELDS],
  ["payloads-sequence-num-always-included", "All messages but NDEATH have a sequence number", COURSE],
  ["payloads-sequence-num-req-nbirth", "NBIRTH has one from 0 to 255", NBIRTH],
  ["payloads-sequence-num-incrementing", "Each next one is one more, 0 behind 255", SEQ],
  ["payloads-name-requirement", "A metric has a name unless there are aliases", FIELDS],
  ["payloads-alias-uniqueness", "An alias is unique in the node", COURSE],
  ["payloads-alias-birth-requirement", "Births have name and alias", DBIRTH],
  ["payloads-alias-data-cmd-requirement", "Data have the alias and no name", DDATA],
  ["payloads-name-birth-data-requirement", "Every metric has a time", COURSE],
  ["payloads-name-cmd-requirement", "Metrics of commands may have a time", OF_HOST],
  ["payloads-metric-timestamp-in-UTC", "The time of a metric is UTC", FIELDS],
  ["payloads-metric-datatype-value-type", "The data type is an unsigned 32-bit number", TYPES],
  ["payloads-metric-datatype-value", "It is one of the list", TYPES],
  ["payloads-metric-datatype-req", "Births have it", DBIRTH],
  ["payloads-metric-datatype-not-req", "Data should not have it", DDATA],
  ["payloads-propertyset-keys-array-size", "A property set has as many keys as values", FIELDS],
  ["payloads-propertyset-values-array-size", "A property set has as many values as keys", FIELDS],
  ["payloads-metric-propertyvalue-type-type", "The type of a property is an unsigned 32-bit number", FIELDS],
  ["payloads-metric-propertyvalue-type-value", "It is one of the list", FIELDS],
  ["payloads-metric-propertyvalue-type-req", "Births have it", DBIRTH],
  ["payloads-propertyset-quality-value-type", "Quality is an Int32", QUALITY],
  ["payloads-propertyset-quality-value-value", "Quality is 0, 192 or 500", QUALITY],
  ["payloads-dataset-column-size", "DataSet: the number of columns", NO_DATA_SET],
  ["payloads-dataset-column-num-headers", "DataSet: as many names as types", NO_DATA_SET],
  ["payloads-dataset-types-def", "DataSet: the array of types", NO_DATA_SET],
  ["payloads-dataset-types-num", "DataSet: as many types as columns", NO_DATA_SET],
  ["payloads-dataset-types-type", "DataSet: types are unsigned 32-bit numbers", NO_DATA_SET],
  ["payloads-dataset-types-value", "DataSet: types are of the list", NO_DATA_SET],
  ["payloads-dataset-parameter-type-req", "DataSet: types are always there", NO_DATA_SET],
  ["payloads-template-dataset-value", "DataSet: the types of its values", NO_DATA_SET],
  ["payloads-template-definition-nbirth-only", "Template: definitions are in NBIRTH alone", NO_TEMPLATE],
  ["payloads-template-definition-is-definition", "Template: a definition says so", NO_TEMPLATE],
  ["payloads-template-definition-ref", "Template: a definition has no reference", NO_TEMPLATE],
  ["payloads-template-definition-members", "Template: a definition has all members", NO_TEMPLATE],
  ["payloads-template-definition-nbirth", "Template: NBIRTH has the definition of each instance", NO_TEMPLATE],
  ["payloads-template-definition-parameters", "Template: a definition has all parameters", NO_TEMPLATE],
  ["payloads-template-definition-parameters-default", "Template: a definition may have their values", NO_TEMPLATE],
  ["payloads-template-instance-is-definition", "Template: an instance says so", NO_TEMPLATE],
  ["payloads-template-instance-ref", "Template: an instance names its definition", NO_TEMPLATE],
  ["payloads-template-instance-members", "Template: an instance has members of its definition", NO_TEMPLATE],
  ["payloads-template-instance-members-birth", "Template: in a birth it has all", NO_TEMPLATE],
  ["payloads-template-instance-members-data", "Template: in data it may have some", NO_TEMPLATE],
  ["payloads-template-instance-parameters", "Template: an instance may have parameters", NO_TEMPLATE],
  ["payloads-template-version", "Template: a version is a text", NO_TEMPLATE],
  ["payloads-template-ref-definition", "Template: no reference in a definition", NO_TEMPLATE],
  ["payloads-template-ref-instance", "Template: the reference of an instance is a text", NO_TEMPLATE],
  ["payloads-template-is-definition", "Template: is_definition is always there", NO_TEMPLATE],
  ["payloads-template-is-definition-definition", "Template: true in a definition", NO_TEMPLATE],
  ["payloads-template-is-definition-instance", "Template: false in an instance", NO_TEMPLATE],
  ["payloads-template-parameter-name-required", "Template: a parameter has a name", NO_TEMPLATE],
  ["payloads-template-parameter-name-type", "Template: that is a text", NO_TEMPLATE],
  ["payloads-template-parameter-value-type", "Template: its type is an unsigned 32-bit number", NO_TEMPLATE],
  ["payloads-template-parameter-type-value", "Template: its type is of the list", NO_TEMPLATE],
  ["payloads-template-parameter-type-req", "Template: births have its type", NO_TEMPLATE],
  ["payloads-template-parameter-value", "Template: the types of its value", NO_TEMPLATE],
  ["payloads-nbirth-timestamp", "NBIRTH has the time when it was published", NBIRTH],
  ["payloads-nbirth-edge-node-descriptor", "Group and node are unique", UNIQUE],
  ["payloads-nbirth-seq", "NBIRTH has a sequence number from 0 to 255", NBIRTH],
  ["payloads-nbirth-bdseq", "NBIRTH has bdSeq", NBIRTH],
  ["payloads-nbirth-bdseq-repeat", "It is that of the last will", BD_SEQ],
  ["payloads-nbirth-rebirth-req", "NBIRTH has Node Control/Rebirth, false", NBIRTH],
  ["payloads-nbirth-qos", "NBIRTH has QoS 0", PACKETS],
  ["payloads-nbirth-retain", "NBIRTH is not retained", PACKETS],
  ["payloads-dbirth-timestamp", "DBIRTH has the time when it was published", DBIRTH],
  ["payloads-dbirth-seq", "DBIRTH has a sequence number", COURSE],
  ["payloads-dbirth-seq-inc", "It is the next one", COURSE],
  ["payloads-dbirth-order", "DBIRTH comes after NBIRTH and before all data", ORDER],
  ["payloads-dbirth-qos", "DBIRTH has QoS 0", PACKETS],
  ["payloads-dbirth-retain", "DBIRTH is not retained", PACKETS],
  ["payloads-ndata-timestamp", "NDATA has the time when it was published", NDATA],
  ["payloads-ndata-seq", "NDATA has a sequence number", NDATA],
  ["payloads-ndata-seq-inc", "It is the next one", NDATA],
  ["payloads-ndata-order", "NDATA comes after all births", COMMANDS],
  ["payloads-ndata-qos", "NDATA has QoS 0", COMMANDS],
  ["payloads-ndata-retain", "NDATA is not retained", COMMANDS],
  ["payloads-ddata-timestamp", "DDATA has the time when it was published", DDATA],
  ["payloads-ddata-seq", "DDATA has a sequence number", SEQ],
  ["payloads-ddata-seq-inc", "It is the next one", SEQ],
  ["payloads-ddata-order", "DDATA comes after all births", ORDER],
  ["payloads-ddata-qos", "DDATA has QoS 0", PACKETS],
  ["payloads-ddata-retain", "DDATA is not retained", PACKETS],
  ["payloads-ncmd-timestamp", "NCMD has the time when it was published", OF_HOST],
  ["payloads-ncmd-seq", "NCMD has no sequence number", OF_HOST],
  ["payloads-ncmd-qos", "NCMD has QoS 0", OF_HOST],
  ["payloads-ncmd-retain", "NCMD is not retained", OF_HOST],
  ["payloads-dcmd-timestamp", "DCMD has the time when it was published", OF_HOST],
  ["payloads-dcmd-seq", "DCMD has no sequence number", OF_HOST],
  ["payloads-dcmd-qos", "DCMD has QoS 0", OF_HOST],
  ["payloads-dcmd-retain", "DCMD is not retained", OF_HOST],
  ["payloads-ndeath-seq", "NDEATH has no sequence number", NDEATH],
  ["payloads-ndeath-will-message", "NDEATH is the last will", PACKETS],
  ["payloads-ndeath-will-message-qos", "The will has QoS 1", PACKETS],
  ["payloads-ndeath-will-message-retain", "The will is not retained", PACKETS],
  ["payloads-ndeath-bdseq", "NDEATH has the bdSeq of the birth that follows CONNECT", CUTS],
  ["payloads-ndeath-will-message-publisher", "NDEATH is published before an intentional end", PACKETS],
  ["payloads-ndeath-will-message-publisher-disconnect-mqtt311", "MQTT 3.1.1: NDEATH comes before DISCONNECT", WAITS],
  ["payloads-ndeath-will-message-publisher-disconnect-mqtt50", "MQTT 5: DISCONNECT has the code with which the will is published", PACKETS],
  ["payloads-ddeath-timestamp", "DDEATH has the time when it was published", DDEATH],
  ["payloads-ddeath-seq", "DDEATH has a sequence number", DDEATH],
  ["payloads-ddeath-seq-inc", "It is the next one", COURSE],
  ["payloads-ddeath-seq-number", "So that the host keeps the order", DDEATH],
];

export const STATEMENTS: readonly Statement[] = rows.map(([id, asks, proof]) => ({ id, asks, proof }));
