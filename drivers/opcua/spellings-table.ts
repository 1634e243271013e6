import { either, is, none, other, type ToolSpellings } from "../lib/spellings.ts";

const GUID = "09087e75-8e5e-499b-954f-f2a8624db28a";

/** Places as namespace, kind and identifier of a node, or as the names of a path with their namespaces; then the type. */
export const SPELLINGS: readonly ToolSpellings[] = [
  {
    tool: "EMQX Neuron",
    source: "emqx/neuronex-docs, en_US/config/south-devices/opc-ua/overview.md",
    spellings: [
      is("0!2258", "i=2258", "0 i 2258 auto"),
      is("2!Device1.Module1.Tag1", "ns=2;s=Device1.Module1.Tag1", "2 s Device1.Module1.Tag1 auto"),
      either("3!1001", ["ns=3;i=1001", "3 i 1001 auto"], ["ns=3;s=1001", "3 s 1001 auto"]),
      is("2!Tank#1.Level", "ns=2;s=Tank%231.Level", "2 s Tank#1.Level auto"),
      is('3!"Motor_DB"."speed"', 'ns=3;s="Motor_DB"."speed"', '3 s "Motor_DB"."speed" auto'),
    ],
  },
  {
    tool: "plc4x",
    source: "apache/plc4x, website/asciidoc/modules/users/pages/protocols/opcua.adoc",
    spellings: [
      is("ns=1;i=1337", "ns=1;i=1337", "1 i 1337 auto"),
      is("ns=1;i=1337;DINT", "ns=1;i=1337 with the type int32", "1 i 1337 int32"),
      is("ns=1;i=1337;a=Value;DINT", "ns=1;i=1337 with the type int32", "1 i 1337 int32"),
      is("ns=1;i=1337;a=13", "ns=1;i=1337", "1 i 1337 auto"),
      is(`ns=2;g=${GUID};REAL`, `ns=2;g=${GUID} with the type float32`, `2 g ${GUID} float32`),
      is(`ns=2;g=${GUID};a=Value;REAL`, `ns=2;g=${GUID} with the type float32`, `2 g ${GUID} float32`),
      is("ns=1;i=5;LREAL", "ns=1;i=5 with the type float64", "1 i 5 float64"),
      is("ns=1;i=6;UDINT", "ns=1;i=6 with the type uint32", "1 i 6 uint32"),
      is("ns=1;b=M/RbKBsRVkePCePcx24oRA==;BOOL", "ns=1;b=M/RbKBsRVkePCePcx24oRA== with the type bool", "1 b M/RbKBsRVkePCePcx24oRA== bool"),
      none("ns=0;i=2253;a=EventNotifier;BOOL|EventId=x,Severity=x", "the attribute EventNotifier is not read"),
      other(
        "ns=2;s=HelloWorld/ScalarTypes/Boolean;BOOL",
        "ns=2;s=HelloWorld/ScalarTypes/Boolean",
        "2 s HelloWorld/ScalarTypes/Boolean auto",
      ),
    ],
  },
  {
    tool: "Node-RED (node-red-contrib-opcua)",
    source: "mikakaraila/node-red-contrib-opcua, README.md and help of the node OpcUa-Item (item and data type in the topic)",
    spellings: [
      is("ns=2;i=1001;datatype=Int32", "ns=2;i=1001 with the type int32", "2 i 1001 int32"),
      is("ns=4;i=7;datatype=Double", "ns=4;i=7 with the type float64", "4 i 7 float64"),
      is("i=2258;datatype=DateTime", "i=2258", "0 i 2258 auto"),
      is("ns=4;i=8;datatype=Boolean", "ns=4;i=8 with the type bool", "4 i 8 bool"),
      is("ns=4;i=9;datatype=UInt16", "ns=4;i=9 with the type uint16", "4 i 9 uint16"),
      other("ns=4;s=MyVariable;datatype=Double", "ns=4;s=MyVariable", "4 s MyVariable auto"),
    ],
  },
  {
    tool: "Telegraf",
    source: "influxdata/telegraf, plugins/inputs/opcua/README.md, Node Configuration",
    spellings: [
      is(
        '{field_name="temp", namespace="3", identifier_type="s", identifier="Temperature"},',
        "ns=3;s=Temperature",
        "3 s Temperature auto",
      ),
      is('{name="node1", namespace="3", identifier_type="i", identifier="1001"},', "ns=3;i=1001", "3 i 1001 auto"),
      is('name = "node1", namespace = "0", identifier_type = "i", identifier = "2258"', "i=2258", "0 i 2258 auto"),
      is(`{name="g", namespace="2", identifier_type="g", identifier="${GUID}"}`, `ns=2;g=${GUID}`, `2 g ${GUID} auto`),
    ],
  },
  {
    tool: "benthos-umh",
    source: "united-manufacturing-hub/benthos-umh, docs/input/opc-ua-input.md",
    spellings: [is("ns=2;s=IoTSensors", "ns=2;s=IoTSensors", "2 s IoTSensors auto")],
  },
  {
    tool: "UaExpert",
    source: "Unified Automation UaExpert, Data Access View, column Node Id",
    spellings: [
      is("NS2|String|Demo.Static.Scalar.Double", "ns=2;s=Demo.Static.Scalar.Double", "2 s Demo.Static.Scalar.Double auto"),
      is("NS0|Numeric|2258", "i=2258", "0 i 2258 auto"),
      is("NS3|Numeric|1001", "ns=3;i=1001", "3 i 1001 auto"),
      is(`NS4|Guid|${GUID}`, `ns=4;g=${GUID}`, `4 g ${GUID} auto`),
      is("NS1|Opaque|M/RbKBsRVkePCePcx24oRA==", "ns=1;b=M/RbKBsRVkePCePcx24oRA==", "1 b M/RbKBsRVkePCePcx24oRA== auto"),
    ],
  },
  {
    tool: "Python (asyncua)",
    source: "FreeOpcUa/opcua-asyncio, README.md and examples: NodeId, get_child with browse names",
    spellings: [
      is("ua.NodeId(1001, 2)", "ns=2;i=1001", "2 i 1001 auto"),
      is("NodeId('Temp', 2)", "ns=2;s=Temp", "2 s Temp auto"),
      is("NodeId(Identifier='Temp', NamespaceIndex=2, NodeIdType=<NodeIdType.String: 3>)", "ns=2;s=Temp", "2 s Temp auto"),
      is('["0:Objects", "2:MyObject", "2:MyVariable"]', "/Objects/2:MyObject/2:MyVariable", "/0:Objects/2:MyObject/2:MyVariable auto"),
      is("['0:Root', '0:Objects', '2:Plant']", "/Objects/2:Plant", "/0:Objects/2:Plant auto"),
      is("0:Objects/2:Plant/2:Temp", "/Objects/2:Plant/2:Temp", "/0:Objects/2:Plant/2:Temp auto"),
      is("Root/Objects/2:Plant", "/Objects/2:Plant", "/0:Objects/2:Plant auto"),
      is("Objects/2:Plant/2:Temp", "/Objects/2:Plant/2:Temp", "/0:Objects/2:Plant/2:Temp auto"),
    ],
  },
  {
    tool: "JSON of OPC UA",
    source: "OPC 10000-6, 5.4.2.10, NodeId in the JSON DataEncoding",
    spellings: [
      is('{"Id":2258}', "i=2258", "0 i 2258 auto"),
      is('{"Id":1001,"Namespace":2}', "ns=2;i=1001", "2 i 1001 auto"),
      is('{"IdType":1,"Id":"Temp","Namespace":2}', "ns=2;s=Temp", "2 s Temp auto"),
      is(`{"IdType":2,"Id":"${GUID}","Namespace":3}`, `ns=3;g=${GUID}`, `3 g ${GUID} auto`),
      is(
        '{"IdType":3,"Id":"M/RbKBsRVkePCePcx24oRA==","Namespace":1}',
        "ns=1;b=M/RbKBsRVkePCePcx24oRA==",
        "1 b M/RbKBsRVkePCePcx24oRA== auto",
      ),
      is(
        '{"IdType":1,"Id":"Temp","Namespace":"http://example.com/plant"}',
        "nsu=http://example.com/plant;s=Temp",
        "http://example.com/plant s Temp auto",
      ),
    ],
  },
  {
    tool: "OPC UA for relative paths",
    source: "OPC 10000-4, Annex A.2, BNF of RelativePath",
    spellings: [
      none("<0:HasComponent>2:Temp", "write the path from the root with slashes"),
      none("<!HasChild>Truck", "write the path from the root with slashes"),
      other(
        "/Objects/Server.ServerStatus.StartTime",
        "/Objects/Server/ServerStatus/StartTime",
        "/0:Objects/0:Server/0:ServerStatus/0:StartTime auto",
      ),
    ],
  },
  {
    tool: "Ignition",
    source: "Ignition manual, OPC UA Drivers (docs.inductiveautomation.com): OPC item paths of its own server",
    spellings: [
      is("ns=1;s=[Modbus]HR1", "ns=1;s=[Modbus]HR1", "1 s [Modbus]HR1 auto"),
      is(
        "[MyRemoteDevice]AnalogInput100.Present_Value",
        "ns=1;s=[MyRemoteDevice]AnalogInput100.Present_Value",
        "1 s [MyRemoteDevice]AnalogInput100.Present_Value auto",
      ),
      is("[Modbus]HR1", "ns=1;s=[Modbus]HR1", "1 s [Modbus]HR1 auto"),
    ],
  },
  {
    tool: "KEPServerEX",
    source: "emqx/neuronex-docs, en_US/config/south-devices/opc-ua/kepserverex.md; PTC, KEPServerEX OPC UA Configuration",
    spellings: [is("Channel1.Device1.Tag1", "ns=2;s=Channel1.Device1.Tag1", "2 s Channel1.Device1.Tag1 auto")],
  },
  {
    tool: "TIA Portal",
    source: "Siemens, S7-1500 Communication Function Manual, OPC UA server: NodeIds of PLC variables",
    spellings: [
      is(
        '"Motor_DB"."speed"',
        'nsu=http://www.siemens.com/simatic-s7-opcua;s="Motor_DB"."speed"',
        'http://www.siemens.com/simatic-s7-opcua s "Motor_DB"."speed" auto',
      ),
      is(
        '"Motor_DB".spare[2].speed',
        'nsu=http://www.siemens.com/simatic-s7-opcua;s="Motor_DB"."spare"[2]."speed"',
        'http://www.siemens.com/simatic-s7-opcua s "Motor_DB"."spare"[2]."speed" auto',
      ),
      is('"Temp 1"', 'nsu=http://www.siemens.com/simatic-s7-opcua;s="Temp 1"', 'http://www.siemens.com/simatic-s7-opcua s "Temp 1" auto'),
    ],
  },
  {
    tool: "WinCC OA",
    source: "WinCC OA documentation, OPC UA client, peripheral address",
    spellings: [is("OPCUA1$Default$1$1$ns=2;s=Temp", "ns=2;s=Temp", "2 s Temp auto")],
  },
];
