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

export type StatusType = "String" | "DateTime" | "UInt32";

/** A variable of a data source as clients see it. */
export interface VariableNode {
  variable: LayoutVariable;
  readonly node: UaVariable;
  readonly point: Point;
  unit: UaVariable | undefined;
}

/** Makes and changes nodes; ids are of uuids and never change (design/api-sinks). Nothing it makes can be written or called. */
export class NodeMaker {
  readonly #addressSpace: AddressSpace;
  readonly #namespace: Namespace;
  /**
   * The interval that clients read. The library keeps one figure for this and for how it samples; its own stays 0, so that values can come
   * to monitored items as they are read.
   */
  readonly #readMinimumSamplingInterval: (this: UaVariable) => DataValue;

  /** `intervalOf`: how fast a variable changes, ms, by its uuid. */
  constructor(addressSpace: AddressSpace, intervalOf: (uuid: string) => number | undefined) {
    this.#addressSpace = addressSpace;
    this.#namespace = addressSpace.getOwnNamespace();
    this.#readMinimumSamplingInterval = function () {
      const value = intervalOf(String(this.nodeId.value)) ?? 0;
      return new DataValue({ statusCode: StatusCodes.Good, value: { dataType: BuiltIn.Double, value } });
    };
  }

  /** Organized by the Objects folder. */
  topFolder(id: string, name: string): UaObject {
    return this.folder(this.#addressSpace.rootFolder.objects, id, name);
  }

  folder(parent: UaObject, id: string, name: string): UaObject {
    return this.#namespace.addFolder(parent, { nodeId: idOf(id), browseName: qualified(name), displayName: text(name || UNNAMED) });
  }

  /** A variable of the server's own. */
  statusVariable(parent: UaObject, id: string, name: string, type: StatusType, description: string): ServedVariable {
    const node = this.#addVariable(parent, id, name, { dataType: BuiltIn[type], valueRank: -1, arrayDimensions: null }, description);
    return createPoint(served(node)).node;
  }

  /** Throws Error where the id is taken. */
  variable(parent: UaObject, variable: LayoutVariable): VariableNode {
    const node = this.#addVariable(parent, variable.uuid, variable.name, nodeTypeOf(variable.type), variable.comment);
    const known: VariableNode = { variable, node, point: createPoint(served(node)), unit: undefined };
    this.#setUnit(known, variable.unit);
    return known;
  }

  /** What has changed of it; its id and whoever watches it stay. */
  change(parent: UaObject, known: VariableNode, variable: LayoutVariable): void {
    const { node, variable: before } = known;
    known.variable = variable;
    if (before.name !== variable.name) rename(parent, node, variable.name, "HasComponent");
    if (before.comment !== variable.comment) setDescription(node, variable.comment);
    if (before.unit !== variable.unit) this.#setUnit(known, variable.unit);
    setType(node, nodeTypeOf(variable.type));
  }

  /** A value came that is longer or shorter than the type says: its dimensions are not known (OPC 10000-3, 5.6.2). */
  openLength({ node }: VariableNode): void {
    if (node.arrayDimensions?.length === 1) node.arrayDimensions = [0];
    else if (node.arrayDimensions) setShape(node, ANY_RANK);
  }

  rename(parent: UaObject, node: UaObject, name: string): void {
    rename(parent, node, name, "Organizes");
  }

  /** With all below it. */
  remove(node: UaObject | UaVariable): void {
    this.#namespace.deleteNode(node);
  }

  #addVariable(parent: UaObject, id: string, name: string, type: NodeType, description: string | null): UaVariable {
    const node = this.#namespace.addVariable({
      ...READ_ONLY,
      nodeId: idOf(id),
      browseName: qualified(name),
      displayName: text(name || UNNAMED),
      ...(description !== null && description !== "" && { description: text(description) }),
      componentOf: parent,
      dataType: coerceNodeId(`i=${type.dataType}`),
      valueRank: type.valueRank,
      arrayDimensions: type.arrayDimensions && [...type.arrayDimensions],
      historizing: false,
      minimumSamplingInterval: 0,
    });
    Object.defineProperty(node, "_readMinimumSamplingInterval", { value: this.#readMinimumSamplingInterval });
    return node;
  }

  #setUnit(known: VariableNode, unit: string | null): void {
    if (known.unit) this.#namespace.deleteNode(known.unit);
    known.unit = undefined;
    if (unit === null || unit === "") return;
    const dataType = this.#addressSpace.findDataType(EU_INFORMATION);
    if (!dataType) return;
    known.unit = this.#namespace.addVariable({
      ...READ_ONLY,
      nodeId: idOf(`${known.variable.uuid}/EngineeringUnits`),
      browseName: new QualifiedName({ name: "EngineeringUnits", namespaceIndex: 0 }),
      propertyOf: known.node,
      dataType: dataType.nodeId,
    });
    const name = { text: unit };
    const fields = { namespaceUri: "", unitId: NO_UNIT_ID, displayName: name, description: name };
    const information = this.#addressSpace.constructExtensionObject(dataType, fields);
    known.unit.setValueFromSource(new Variant({ dataType: BuiltIn.ExtensionObject, value: information }));
  }
}

/** A maker without its fields. */
export type Nodes = Pick<NodeMaker, keyof NodeMaker>;

const READ_ONLY = { accessLevel: "CurrentRead", userAccessLevel: "CurrentRead" } as const;
const idOf = (id: string): string => `s=${id}`;
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
  setShape(node, { valueRank, arrayDimensions });
}

/** A matrix whose dimensions do not hold is served as the array that it came as. */
const ANY_RANK = { valueRank: -2, arrayDimensions: null } as const;

function setShape(node: UaVariable, { valueRank, arrayDimensions }: Pick<NodeType, "valueRank" | "arrayDimensions">): void {
  node.valueRank = valueRank;
  node.arrayDimensions = arrayDimensions && [...arrayDimensions];
}
