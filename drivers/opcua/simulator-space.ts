import {
  DataType,
  DataValue,
  LocalizedText,
  NodeId,
  QualifiedName,
  type StatusCode,
  StatusCodes,
  VariantArrayType,
  type VariantLike,
} from "node-opcua-client";
import type { OPCUAServer } from "node-opcua-server";
import type { Value } from "../../src/model/value.ts";
import { CYCLE_TYPE, MODE_TYPE, TYPES_NAMESPACE } from "./simulator-types.ts";

export type AddressSpace = NonNullable<OPCUAServer["engine"]["addressSpace"]>;
type Namespace = ReturnType<AddressSpace["registerNamespace"]>;
type VariableNode = ReturnType<Namespace["addVariable"]>;
type Folder = ReturnType<Namespace["addFolder"]>;

/** The place where everything readable lies, whatever its index. */
export const PLANT_NAMESPACE = "urn:example:plant";
/** Has one variable, `s=Other`; it is there to change places with the plant's. */
export const OTHER_NAMESPACE = "urn:example:other";

export interface TreeShape {
  /** Folders one inside the other. */
  readonly depth: number;
  /** Folders in each. */
  readonly folders: number;
  /** Variables in each. */
  readonly variables: number;
}

export interface MovingVariable {
  /** Text of its id; what people read of it. */
  readonly id: string;
  readonly name: string;
  readonly unit: string;
  /** By the time in ms since the start. */
  readonly value: (ms: number) => number;
}

export interface SpaceOptions {
  /** In the order of their indexes, from 3 on. */
  readonly namespaces: readonly string[];
  /** Variables `s=Bulk.0` and so on: Doubles, each its own number plus a quarter. */
  readonly bulk: number;
  /** They change by one each time they are read. */
  /** Doubles with a unit in a folder `s=Moving`, which change by themselves. */
  readonly moving: readonly MovingVariable[];
  /** A folder `s=Tree` of this shape; one of its folders refers back to it. */
  readonly tree?: TreeShape;
  /** Added to every source time stamp. */
  readonly sourceClockMs: number;
}

/** A variable that a test may change; with another built-in type the variable's own changes along. */
export interface PlantVariable {
  set(value: VariantLike, status?: StatusCode): void;
  /** The paths that led to it lead to another node, of this id and a double; its own id is unknown from then on. */
  moveTo(id: string, value: number): void;
}

export interface Space {
  readonly variables: readonly { readonly address: string; readonly type: string; readonly value: Value }[];
  /** By the text of its id in the plant's namespace: `Double`, `Bulk.7`. */
  variable(id: string): PlantVariable;
  /** Writes that reached a variable. */
  writes(): number;
}

/** The 64-bit integers of node-opcua: high and low half. */
const halves = (value: bigint): number[] => {
  const bits = BigInt.asUintN(64, value);
  return [Number(bits >> 32n), Number(bits & 0xffff_ffffn)];
};
const nsu = (id: string): string => `nsu=${PLANT_NAMESPACE};s=${id}`;

interface Planted {
  readonly id: string;
  readonly dataType: DataType;
  readonly value: unknown;
  /** Type and value as a right driver reads them; absent where that is the driver's own choice. */
  readonly type?: string;
  readonly read?: Value;
  readonly dimensions?: readonly number[];
  readonly array?: true;
}

/** Range (OPC 10000-8, 5.6.2). */
const RANGE_TYPE = 884;
const GUID = "72962B91-FA75-4AE6-8D28-B404DC7DAF63";

/** A value of each built-in type (OPC 10000-6, 5.1.2) at its edge. */
const PLANTED: readonly Planted[] = [
  { id: "Boolean", dataType: DataType.Boolean, value: true, type: "bool", read: true },
  { id: "SByte", dataType: DataType.SByte, value: -128, type: "int8", read: -128 },
  { id: "Byte", dataType: DataType.Byte, value: 255, type: "uint8", read: 255 },
  { id: "Int16", dataType: DataType.Int16, value: -32_768, type: "int16", read: -32_768 },
  { id: "UInt16", dataType: DataType.UInt16, value: 65_535, type: "uint16", read: 65_535 },
  { id: "Int32", dataType: DataType.Int32, value: -2_147_483_648, type: "int32", read: -2_147_483_648 },
  { id: "UInt32", dataType: DataType.UInt32, value: 4_294_967_295, type: "uint32", read: 4_294_967_295 },
  { id: "Int64", dataType: DataType.Int64, value: halves(-9_007_199_254_740_993n), type: "int64", read: -9_007_199_254_740_993n },
  { id: "UInt64", dataType: DataType.UInt64, value: halves(2n ** 64n - 1n), type: "uint64", read: 2n ** 64n - 1n },
  { id: "Float", dataType: DataType.Float, value: 0.1, type: "float32", read: Math.fround(0.1) },
  { id: "Double", dataType: DataType.Double, value: -2.25e-300, type: "float64", read: -2.25e-300 },
  { id: "String", dataType: DataType.String, value: "Presse 1: Öl 80 °C", type: "string", read: "Presse 1: Öl 80 °C" },
  { id: "Array.Int32", dataType: DataType.Int32, array: true, value: new Int32Array([1, -2, 3]), type: "int32[3]", read: [1, -2, 3] },
  {
    id: "Array.Int64",
    dataType: DataType.Int64,
    array: true,
    value: [halves(2n ** 53n + 1n), halves(-1n)],
    type: "int64[2]",
    read: [2n ** 53n + 1n, -1n],
  },
  { id: "Array.String", dataType: DataType.String, array: true, value: ["a", "", "ü"], type: "string[3]", read: ["a", "", "ü"] },
  { id: "Array.Boolean", dataType: DataType.Boolean, array: true, value: [true, false], type: "bool[2]", read: [true, false] },
  {
    id: "Matrix",
    dataType: DataType.Double,
    dimensions: [2, 3],
    value: new Float64Array([1, 2, 3, 4, 5, 6]),
    type: "float64[2x3]",
    read: [1, 2, 3, 4, 5, 6],
  },
  { id: "Array.Empty", dataType: DataType.Double, array: true, value: new Float64Array(0) },
  { id: "DateTime", dataType: DataType.DateTime, value: new Date("2026-11-20T09:00:00.123Z") },
  { id: "Guid", dataType: DataType.Guid, value: GUID },
  { id: "ByteString", dataType: DataType.ByteString, value: Buffer.from([0, 1, 254, 255]) },
  { id: "XmlElement", dataType: DataType.XmlElement, value: "<a>1</a>" },
  { id: "NodeId", dataType: DataType.NodeId, value: new NodeId(NodeId.NodeIdType.STRING, "Double", 1) },
  { id: "StatusCode", dataType: DataType.StatusCode, value: StatusCodes.BadSensorFailure },
  { id: "QualifiedName", dataType: DataType.QualifiedName, value: new QualifiedName({ namespaceIndex: 1, name: "Kessel" }) },
  { id: "LocalizedText", dataType: DataType.LocalizedText, value: new LocalizedText({ locale: "de", text: "Drehzahl" }) },
  { id: "Double.NaN", dataType: DataType.Double, value: Number.NaN },
  { id: "Double.Infinity", dataType: DataType.Double, value: Number.POSITIVE_INFINITY },
  { id: "String.Null", dataType: DataType.String, value: null },
];

/** Fills the server's address space: `Objects/Plant` and below. Call it between initialize and start. */
export function fillSpace(addressSpace: AddressSpace, options: SpaceOptions): Space {
  const namespaces = new Map(options.namespaces.map((uri) => [uri, addressSpace.registerNamespace(uri)]));
  const plant = namespaces.get(PLANT_NAMESPACE);
  if (!plant) throw new Error(`the namespaces lack ${PLANT_NAMESPACE}`);
  const now = (): Date => new Date(Date.now() + options.sourceClockMs);
  const nodes = new Map<string, VariableNode>();
  let writes = 0;

  const add = (folder: Folder, id: string, dataType: string | DataType, more: Partial<Parameters<Namespace["addVariable"]>[0]> = {}) => {
    const node = plant.addVariable({
      organizedBy: folder,
      nodeId: `s=${id}`,
      browseName: id,
      dataType: typeof dataType === "string" ? dataType : DataType[dataType],
      accessLevel: "CurrentRead",
      userAccessLevel: "CurrentRead",
      minimumSamplingInterval: 100,
      ...more,
    });
    nodes.set(id, node);
    return node;
  };

  const top = plant.addFolder("ObjectsFolder", { browseName: "Plant", nodeId: "s=Plant" });
  const types = plant.addFolder(top, { browseName: "Types", nodeId: "s=Types" });
  for (const { id, dataType, value, dimensions, array } of PLANTED) {
    const node = add(types, id, dataType, {
      ...(array && { valueRank: 1 }),
      ...(dimensions && { valueRank: dimensions.length, arrayDimensions: [...dimensions] }),
    });
    node.setValueFromSource(
      {
        dataType,
        value,
        arrayType: array ? VariantArrayType.Array : VariantArrayType.Scalar,
        ...(dimensions && { arrayType: VariantArrayType.Matrix, dimensions: [...dimensions] }),
      },
      StatusCodes.Good,
      now(),
    );
  }

  addEnumerationAndStructures(addressSpace, types, add, now);
  addStates(plant, top, add, now, () => {
    writes++;
  });

  const bulk = plant.addFolder(top, { browseName: "Bulk", nodeId: "s=Bulk" });
  for (let i = 0; i < options.bulk; i++) {
    const node = add(bulk, `Bulk.${i}`, DataType.Double);
    node.setValueFromSource({ dataType: DataType.Double, value: i + 0.25 }, StatusCodes.Good, now());
  }
  if (options.moving.length > 0) addMoving(plant, top, options.moving, now);
  if (options.tree) addTree(plant, top, options.tree, add, now);

  const other = namespaces.get(OTHER_NAMESPACE);
  other
    ?.addVariable({ organizedBy: "ObjectsFolder", nodeId: "s=Other", browseName: "Other", dataType: "Int32", accessLevel: "CurrentRead" })
    .setValueFromSource({ dataType: DataType.Int32, value: 7 }, StatusCodes.Good, now());

  return {
    variables: PLANTED.flatMap(({ id, type, read }) =>
      type === undefined || read === undefined ? [] : [{ address: nsu(id), type, value: read }],
    ),
    variable(id) {
      const node = nodes.get(id);
      if (!node) throw new Error(`the plant has no variable ${id}`);
      return {
        set(value, status = StatusCodes.Good) {
          const to = typeof value.dataType === "string" ? DataType[value.dataType as keyof typeof DataType] : value.dataType;
          let held = nodes.get(id) ?? node;
          const { namespace, value: from } = held.dataType;
          // The server remembers the type of a node: with another one it is another node of the same id.
          if (to && namespace === 0 && typeof from === "number" && from <= 25 && from !== to) {
            plant.deleteNode(held);
            held = add(top, id, to, value.arrayType === VariantArrayType.Array ? { valueRank: 1 } : {});
          }
          held.setValueFromSource(value, status, now());
        },
        moveTo(to, value) {
          const held = nodes.get(id) ?? node;
          const [folder = top] = held.findReferencesAsObject("Organizes", false);
          const browseName = held.browseName.name ?? id;
          plant.deleteNode(held);
          nodes.delete(id);
          add(folder as Folder, to, DataType.Double, { browseName }).setValueFromSource(
            { dataType: DataType.Double, value },
            StatusCodes.Good,
            now(),
          );
        },
      };
    },
    writes: () => writes,
  };
}

type Add = (
  folder: Folder,
  id: string,
  dataType: string | DataType,
  more?: Partial<Parameters<Namespace["addVariable"]>[0]>,
) => VariableNode;

/** An enumeration, a structure of the standard, and one that only this server knows, with an array and a structure in it. */
function addEnumerationAndStructures(addressSpace: AddressSpace, folder: Folder, add: Add, now: () => Date): void {
  const own = addressSpace.getNamespaceIndex(TYPES_NAMESPACE);
  const numeric = (id: number, index: number) => new NodeId(NodeId.NodeIdType.NUMERIC, id, index);
  add(folder, "Enumeration", DataType.Int32, { dataType: numeric(MODE_TYPE, own) }).setValueFromSource(
    { dataType: DataType.Int32, value: 2 },
    StatusCodes.Good,
    now(),
  );
  const range = addressSpace.constructExtensionObject(numeric(RANGE_TYPE, 0), { low: -1.5, high: 2.5 });
  add(folder, "Structure.Standard", DataType.ExtensionObject, { dataType: numeric(RANGE_TYPE, 0) }).setValueFromSource(
    { dataType: DataType.ExtensionObject, value: range },
    StatusCodes.Good,
    now(),
  );
  const cycle = (number: number) =>
    addressSpace.constructExtensionObject(numeric(CYCLE_TYPE, own), {
      number,
      seconds: 12.5,
      counter: halves(2n ** 53n + 1n),
      name: "Schuß",
      pressures: [0.1, 80],
      window: { low: 10, high: 20 },
      mode: 2,
    });
  const typed = { dataType: numeric(CYCLE_TYPE, own) };
  add(folder, "Structure", DataType.ExtensionObject, typed).setValueFromSource(
    { dataType: DataType.ExtensionObject, value: cycle(1) },
    StatusCodes.Good,
    now(),
  );
  add(folder, "Array.Structure", DataType.ExtensionObject, { ...typed, valueRank: 1 }).setValueFromSource(
    { dataType: DataType.ExtensionObject, arrayType: VariantArrayType.Array, value: [cycle(1), cycle(2)] },
    StatusCodes.Good,
    now(),
  );
}

/** Variables whose status is not good, that may not be read, or that may be written; with a unit and a description. */
function addStates(plant: Namespace, top: Folder, add: Add, now: () => Date, written: () => void): void {
  const states = plant.addFolder(top, { browseName: "States", nodeId: "s=States" });
  const double = (value: number) => ({ dataType: DataType.Double, value });
  add(states, "Bad", DataType.Double).setValueFromSource(double(1), StatusCodes.BadSensorFailure, now());
  add(states, "Uncertain", DataType.Double).setValueFromSource(double(1.5), StatusCodes.UncertainSensorNotAccurate, now());
  add(states, "Waiting", DataType.Double).setValueFromSource({ dataType: DataType.Null }, StatusCodes.BadWaitingForInitialData, now());
  add(states, "NotReadable", DataType.Double, { accessLevel: "CurrentWrite", userAccessLevel: "CurrentWrite" });
  add(states, "AccessDenied", DataType.Double).setValueFromSource(double(3), StatusCodes.BadUserAccessDenied, now());
  let held: DataValue | undefined;
  const writable = add(states, "Writable", DataType.Double, {
    accessLevel: "CurrentRead | CurrentWrite",
    userAccessLevel: "CurrentRead | CurrentWrite",
  });
  writable.setValueFromSource(double(4), StatusCodes.Good, now());
  writable.on("value_changed", (value: DataValue) => {
    if (held !== undefined || (value.value.value as number) !== 4) written();
    held = value;
  });
  const analog = plant.addAnalogDataItem({
    organizedBy: states,
    nodeId: "s=Analog",
    browseName: "Analog",
    displayName: "Öltemperatur",
    description: "Temperature of the oil, measured behind the pump",
    dataType: "Double",
    engineeringUnits: {
      namespaceUri: "http://www.opcfoundation.org/UA/units/un/cefact",
      unitId: 4_408_652,
      displayName: "°C",
      description: "degree Celsius",
    },
    engineeringUnitsRange: { low: 0, high: 200 },
    accessLevel: "CurrentRead",
    userAccessLevel: "CurrentRead",
  });
  analog.setValueFromSource(double(81.5), StatusCodes.Good, now());
}

function addMoving(plant: Namespace, top: Folder, moving: readonly MovingVariable[], now: () => Date): void {
  const folder = plant.addFolder(top, { browseName: "Moving", nodeId: "s=Moving" });
  const began = performance.now();
  for (const { id, name, unit, value } of moving)
    plant
      .addAnalogDataItem({
        organizedBy: folder,
        nodeId: `s=${id}`,
        browseName: name,
        dataType: "Double",
        engineeringUnits: { unitId: -1, displayName: unit },
        engineeringUnitsRange: { low: -1e9, high: 1e9 },
        accessLevel: "CurrentRead",
        userAccessLevel: "CurrentRead",
      })
      .bindVariable(
        {
          timestamped_get: () =>
            new DataValue({ sourceTimestamp: now(), value: { dataType: DataType.Double, value: value(performance.now() - began) } }),
        },
        true,
      );
}

/** Folders within folders; the last of the first level refers back to the top, as servers with several hierarchies do. */
function addTree(plant: Namespace, top: Folder, shape: TreeShape, add: Add, now: () => Date): void {
  const root = plant.addFolder(top, { browseName: "Tree", nodeId: "s=Tree" });
  const grow = (folder: Folder, id: string, depth: number): void => {
    for (let i = 0; i < shape.variables; i++)
      add(folder, `${id}.v${i}`, DataType.Double, { browseName: `v${i}` }).setValueFromSource(
        { dataType: DataType.Double, value: i },
        StatusCodes.Good,
        now(),
      );
    if (depth === 0) return;
    for (let i = 0; i < shape.folders; i++) {
      const child = plant.addFolder(folder, { browseName: `f${i}`, nodeId: `s=${id}.f${i}` });
      grow(child, `${id}.f${i}`, depth - 1);
      if (depth === shape.depth && i === shape.folders - 1) child.addReference({ referenceType: "Organizes", nodeId: root });
    }
  };
  grow(root, "Tree", shape.depth);
}
