import type { Discovered } from "../driver.ts";
import { pathText } from "./address.ts";

/** Namespaces of the published models, by the letters with which the tables name them. 0 is OPC UA's own. */
const URIS: Readonly<Record<string, string>> = {
  di: "http://opcfoundation.org/UA/DI/",
  em77: "http://opcfoundation.org/UA/PlasticsRubber/IMM2MES/",
  em83: "http://opcfoundation.org/UA/PlasticsRubber/GeneralTypes/",
  packml: "http://opcfoundation.org/UA/PackML/",
  machinery: "http://opcfoundation.org/UA/Machinery/",
  tool: "http://opcfoundation.org/UA/MachineTool/",
  ia: "http://opcfoundation.org/UA/IA/",
};

/**
 * The variables of kinds of machines, as the ends of browse paths: `namespace:Name` for each step, the names behind the last slash in one row. A `#`
 * begins a part of the value.
 */
const TABLES = {
  // OPC 40077 (EUROMAP 77) 1.01, with the types of OPC 40083 (EUROMAP 83).
  euromap77: `
em77:MachineInformation/di: Manufacturer Model SerialNumber DeviceClass
em77:MachineInformation/em83: ControllerName
em77:MachineStatus/em83: IsPresent MachineMode
em77:Jobs/em83:ActiveJob/em83: JobName JobDescription Material ProductName MouldId ExpectedCycleTime NumCavities NominalParts
em77:Jobs/em83:ActiveJobValues/em83: JobStatus JobCycleCounter MachineCycleCounter LastCycleTime AverageCycleTime JobPartsCounter
  JobGoodPartsCounter JobBadPartsCounter
`,
  // OPC 30050 (PackML) 1.01.
  packml: `
packml: TagID PackMLVersion
packml:Status/packml: UnitModeCurrent UnitModeRequested StateRequested StateChangeInProcess CurMachSpeed MachSpeed EquipmentBlocked
  EquipmentStarved MaterialInterlock
packml:Admin/packml: MachDesignSpeed AccTimeSinceReset ModeCurrentTime StateCurrentTime ProdProcessedCount#[0].AccCount
  ProdDefectiveCount#[0].AccCount ProdConsumedCount#[0].AccCount
packml:BaseStateMachine/0: CurrentState
packml:BaseStateMachine/packml:MachineState/0: CurrentState
packml:BaseStateMachine/packml:MachineState/packml:ExecuteState/0: CurrentState
`,
  // OPC 40501-1 (umati for machine tools) 1.02, identified by OPC 40001-1 (Machinery).
  machinetool: `
di:Identification/di: Manufacturer Model SerialNumber ProductInstanceUri
tool:Monitoring/tool:MachineTool/tool: OperationMode FeedOverride PowerOnDuration IsWarmUp
tool:Monitoring/tool:Stacklight/ia: StacklightMode
tool:Production/tool:ActiveProgram/tool: Name JobIdentifier
tool:Production/tool:ActiveProgram/0: NumberInList
tool:Production/tool:ActiveProgram/tool:State/0: CurrentState
tool:Production/tool:Statistics/tool: PartsProducedInLifetime
`,
} as const;

export type MachineProfile = keyof typeof TABLES;

/** Names of the profiles; `euromap83` has the types of `euromap77` and is found with it. */
export const MACHINE_PROFILES: readonly string[] = [...Object.keys(TABLES), "euromap83"];

interface Row {
  /** End of a browse path, in the form of an address. */
  readonly end: string;
  readonly name: string;
  /** Behind the path: a part of the value. */
  readonly part: string;
}

function rowsOf(table: string): readonly Row[] {
  return table
    .trim()
    .split(/\n(?! )/)
    .flatMap((line) => {
      const [way = "", ...names] = line.split(/\s+/);
      return names.map((text): Row => {
        const [name = "", part] = text.split("#");
        const elements = `${way}${name}`.split("/").map((step) => {
          const [letters = "", one = ""] = step.split(":");
          const uri = URIS[letters];
          return { namespace: uri === undefined ? 0 : { uri }, name: one };
        });
        return {
          end: pathText(elements),
          name: elements.map(({ name: one }) => one).join("."),
          part: part === undefined ? "" : `#${part}`,
        };
      });
    });
}

/**
 * Takes the discovered nodes that the profile has, each as a variable that keeps its browse path: node ids that change are looked up by it.
 * Undefined: there is no such profile. Pure.
 */
export function machineProfile(name: string): ((one: Discovered) => Discovered | undefined) | undefined {
  const table = name === "euromap83" ? TABLES.euromap77 : Object.hasOwn(TABLES, name) ? TABLES[name as MachineProfile] : undefined;
  if (table === undefined) return undefined;
  // The longer end first: that of a name alone fits wherever the name stands.
  const rows = rowsOf(table).toSorted((a, b) => b.end.length - a.end.length);
  return (one) => {
    const { browsePath, type } = one;
    const row = browsePath === undefined || type === undefined ? undefined : rows.find(({ end }) => browsePath.endsWith(end));
    if (!row || browsePath === undefined) return undefined;
    const found = { ...one, name: row.name, address: `${browsePath}${row.part}` };
    return row.part === "" ? found : { ...found, type: { scalar: "auto" } };
  };
}
