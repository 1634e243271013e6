import { isEncodingKnown } from "../configuration/csv.ts";
import { cxProgrammer } from "./cx-programmer.ts";
import type { TagFile, TagListFormat } from "./format.ts";
import { homeAssistant } from "./home-assistant.ts";
import { ignitionCsv } from "./ignition-csv.ts";
import { ignitionJson } from "./ignition-json.ts";
import { kepwareCsv } from "./kepware-csv.ts";
import { kepwareJson } from "./kepware-json.ts";
import { l5x } from "./l5x.ts";
import { neuronTags } from "./neuron-tags.ts";
import { nodeRed } from "./node-red.ts";
import { step7Blocks } from "./step7-blocks.ts";
import { studio5000Csv } from "./studio5000-csv.ts";
import { type Taken, type TakeRules, take } from "./take.ts";
import { telegraf } from "./telegraf.ts";
import { tiaSdf } from "./tia-sdf.ts";
import { tiaTags } from "./tia-tags.ts";
import { tiaXml } from "./tia-xml.ts";
import { unknownJson, unknownSpreadsheet } from "./unknown.ts";
import { isZip } from "./zip.ts";

/** Each is known by the content of a file; one file is of one of them. The last ones only say why a file is of none. */
export const FORMATS: readonly TagListFormat[] = [
  tiaTags,
  neuronTags,
  unknownSpreadsheet,
  kepwareCsv,
  kepwareJson,
  ignitionCsv,
  ignitionJson,
  nodeRed,
  telegraf,
  studio5000Csv,
  l5x,
  tiaXml,
  tiaSdf,
  cxProgrammer,
  step7Blocks,
  homeAssistant,
  unknownJson,
];

const GUESSED = "the file is not UTF-8 and is read as Windows-1252: where names or remarks look wrong, save it as UTF-8";

/** Our own lists may be YAML too. */
export const YAML_FORMATS: readonly TagListFormat[] = [homeAssistant];

/** The variables that a tag list of another engineering program holds. Undefined: the file is not one. */
export async function readTagList(file: TagFile, rules: TakeRules, formats = FORMATS): Promise<Taken | undefined> {
  for (const format of formats) {
    const taken = await take(format, file, rules);
    if (taken) return isZip(file.bytes) || isEncodingKnown(file.bytes) ? taken : { ...taken, notes: [...taken.notes, GUESSED] };
  }
  return undefined;
}
