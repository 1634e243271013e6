import { escapeLevel, type TopicPlan } from "../topics.ts";

/** Sparkplug 3.0, 4.1.1. */
const NAMESPACE = "spBv1.0";

/** Topics of one edge node (Sparkplug 3.0, 4). Identifiers are one level each. */
export interface SparkplugTopics {
  readonly group: string;
  readonly node: string;
}

type NodeVerb = "NBIRTH" | "NDEATH" | "NDATA" | "NCMD";
type DeviceVerb = "DBIRTH" | "DDEATH" | "DDATA" | "DCMD";

export const nodeTopic = ({ group, node }: SparkplugTopics, verb: NodeVerb): string => `${NAMESPACE}/${group}/${verb}/${node}`;

/** `device`: its identifier, see `deviceId`. */
export const deviceTopic = ({ group, node }: SparkplugTopics, verb: DeviceVerb, device: string): string =>
  `${NAMESPACE}/${group}/${verb}/${node}/${device}`;

export const stateTopic = (host: string): string => `${NAMESPACE}/STATE/${host}`;

/** The identifier of the device that stands for a data source: its name as one topic level. Different names stay different. */
export const deviceId = escapeLevel;

/** Topics of the values as a plan, by which sources of one name are told apart. The node's own topics are never among them. */
export const dataPlan = (topics: SparkplugTopics): TopicPlan => ({
  parts: [{ text: deviceTopic(topics, "DDATA", "") }, { placeholder: "source" }],
  perVariable: false,
  prefix: "\0",
});

/** The longest identifier: three of them and the names stay far below the bytes of a topic. */
const MAX_ID_CHARACTERS = 200;

/** Problem with an identifier of a group, an edge node or a host (Sparkplug 3.0, 4.1.2 and 4.1.4); undefined: nothing. */
export function idProblem(id: string): string | undefined {
  if (id === "" || id.length > MAX_ID_CHARACTERS) return `expected 1 to ${MAX_ID_CHARACTERS} characters`;
  if (/[+/#]/.test(id)) return "an identifier of Sparkplug holds none of + / #";
  return /\p{Cc}/u.test(id) || !id.isWellFormed() ? "control characters and halves of surrogate pairs are not allowed" : undefined;
}
