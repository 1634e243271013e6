import { DataType as BuiltIn, coerceNodeId, DataValue, LocalizedText, QualifiedName, StatusCodes, Variant } from "node-opcua-client";
import type { OPCUAServer } from "node-opcua-server";
import type { LayoutVariable } from "../../model/layout.ts";
import { type NodeType, nodeTypeOf } from "./data-type.ts";
import { createPoint, type Point, type ServedVariable } from "./points.ts";

type AddressSpace = NonNullable<OPCUAServer["engine"]["addressSpace"]>;
type Namespace = ReturnType<AddressSpace["getOwnNamespace"]>;
export type UaObject = ReturnType<Namespace["addObject"]>;
type UaVariable = ReturnType<Namespace["addVariable"]>;

/** Index of the server's own namespace, whose URI is its application URI (OPC 10000-3, 8.2.2). */
const OWN = 1;
/** Data type of EngineeringUnits (OPC 10000-8, 5.6.4.3). */
const EU_INFORMATION = "i=887";
/** `unitId` of a unit that is in no list (OPC 10000-8, 5.6.4.3). */
const NO_UNIT_ID = -1;

/** A variable of a data source as clients see it. */
export interface VariableNode {
  variable: LayoutVariable;
  readonly node: UaVariable;
  readonly point: Point;
  unit: UaVariable | undefined;
}

/** Makes and changes nodes; ids are of uuids and never change (DESIGN 4). Nothing it makes can be written or called. */
export interface NodeMaker {
  /** Organized by the Objects folder. */
  topFolder(id: string, name: string): UaObject;
  folder(parent: UaObject, id: string, name: string): UaObject;
  /** A variable of the server's own. */
  statusVariable(parent: UaObject, id: string, name: string, type: "String" | "DateTime" | "UInt32", description: string): ServedVariable;
  /** Throws Error where the id is taken. */
  variable(parent: UaObject, variable: LayoutVariable): VariableNode;
  /** What has changed of it; its id and whoever watches it stay. */
  change(parent: UaObject, known: VariableNode, variable: LayoutVariable): void;
  rename(parent: UaObject, node: UaObject, name: string): void;
  /** With all below it. */
  remove(node: UaObject | UaVariable): void;
}

/** `intervalOf`: how fast a variable changes, ms, by its uuid. */
export function createNodeMaker(addressSpace: AddressSpace, intervalOf: (uuid: string) => number | undefined): NodeMaker {
  const namespace = addressSpace.getOwnNamespace();
  const objects = addressSpace.rootFolder.objects;
  const idOf = (id: string): string => `s=${id}`;

  /**
   * The interval that clients read. The library keeps one figure for this and for how it samples; its own stays 0, so that values can come
   * to monitored items as they are read.
   */
  function readMinimumSamplingInterval(this: UaVariable): DataValue {
    const value = intervalOf(String(this.nodeId.value)) ?? 0;
    return new DataValue({ statusCode: StatusCodes.Good, value: { dataType: BuiltIn.Double, value } });
  }

  const addVariable = (parent: UaObject, id: string, name: string, type: NodeType, description: string | null): UaVariable => {
    const node = namespace.addVariable({
      nodeId: idOf(id),
      browseName: qualified(name),
      displayName: text(name || UNNAMED),
      ...(description !== null && description !== "" && { description: text(description) }),
      componentOf: parent,
      dataType: coerceNodeId(`i=${type.dataType}`),
      valueRank: type.valueRank,
      arrayDimensions: type.arrayDimensions && [...type.arrayDimensions],
      accessLevel: "CurrentRead",
      userAccessLevel: "CurrentRead",
      historizing: false,
      minimumSamplingInterval: 0,
    });
    Object.defineProperty(node, "_readMinimumSamplingInterval", { value: readMinimumSamplingInterval });
    return node;
  };

  const setUnit = (known: VariableNode, unit: string | null): void => {
    if (known.unit) namespace.deleteNode(known.unit);
    known.unit = undefined;
    if (unit === null || unit === "") return;
    const dataType = addressSpace.findDataType(EU_INFORMATION);
    if (!dataType) return;
    known.unit = namespace.addVariable({
      nodeId: idOf(`${known.variable.uuid}/EngineeringUnits`),
      browseName: new QualifiedName({ name: "EngineeringUnits", namespaceIndex: 0 }),
      propertyOf: known.node,
      dataType: dataType.nodeId,
      accessLevel: "CurrentRead",
      userAccessLevel: "CurrentRead",
    });
    const information = addressSpace.constructExtensionObject(dataType, {
      namespaceUri: "",
      unitId: NO_UNIT_ID,
      displayName: { text: unit },
      description: { text: unit },
    });
    known.unit.setValueFromSource(new Variant({ dataType: BuiltIn.ExtensionObject, value: information }));
  };

  return {
    topFolder: (id, name) =>
      namespace.addFolder(objects, { nodeId: idOf(id), browseName: qualified(name), displayName: text(name || UNNAMED) }),
    folder: (parent, id, name) =>
      namespace.addFolder(parent, { nodeId: idOf(id), browseName: qualified(name), displayName: text(name || UNNAMED) }),
    statusVariable(parent, id, name, type, description) {
      const node = addVariable(parent, id, name, { dataType: BuiltIn[type], valueRank: -1, arrayDimensions: null }, description);
      return createPoint(served(node)).node;
    },
    variable(parent, variable) {
      const node = addVariable(parent, variable.uuid, variable.name, nodeTypeOf(variable.type), variable.comment);
      const known: VariableNode = { variable, node, point: createPoint(served(node)), unit: undefined };
      setUnit(known, variable.unit);
      return known;
    },
    change(parent, known, variable) {
      const { node, variable: before } = known;
      known.variable = variable;
      if (before.name !== variable.name) rename(parent, node, variable.name, "HasComponent");
      if (before.comment !== variable.comment) setDescription(node, variable.comment);
      if (before.unit !== variable.unit) setUnit(known, variable.unit);
      setType(node, nodeTypeOf(variable.type));
    },
    rename: (parent, node, name) => rename(parent, node, name, "Organizes"),
    remove: (node) => namespace.deleteNode(node),
  };
}

/** The library takes no empty name. */
const UNNAMED = "unnamed";
const qualified = (name: string): QualifiedName => new QualifiedName({ name: name || UNNAMED, namespaceIndex: OWN });
const text = (words: string): LocalizedText => new LocalizedText({ text: words });
const served = (node: UaVariable): ServedVariable => node as unknown as ServedVariable;

/** The library has no setter for a browse name, and a parent keeps its children by it: the child is added to it again. */
function rename(parent: UaObject, node: UaObject | UaVariable, name: string, referenceType: "Organizes" | "HasComponent"): void {
  const reference = { referenceType, isForward: true, nodeId: node.nodeId };
  parent.removeReference(reference);
  (node as unknown as { browseName: QualifiedName }).browseName = qualified(name);
  (node as unknown as { setDisplayName(name: LocalizedText): void }).setDisplayName(text(name || UNNAMED));
  parent.addReference(reference);
}

function setDescription(node: UaVariable, words: string | null): void {
  (node as unknown as { setDescription(words: LocalizedText): void }).setDescription(text(words ?? ""));
}

function setType(node: UaVariable, { dataType, valueRank, arrayDimensions }: NodeType): void {
  if (Number(node.dataType.value) !== dataType) {
    const changed = node as unknown as { dataType: unknown; _basicDataType: unknown };
    changed.dataType = coerceNodeId(`i=${dataType}`);
    changed._basicDataType = undefined;
  }
  node.valueRank = valueRank;
  node.arrayDimensions = arrayDimensions && [...arrayDimensions];
}
