import { is, none, type ToolSpellings } from "../lib/spellings.ts";

const PLACE = "this driver reads by symbols; write the symbol";
const places = (...texts: readonly string[]) => texts.map((text) => none(text, PLACE));

/** Places as the levels of a symbol. */
export const SPELLINGS: readonly ToolSpellings[] = [
  {
    tool: "STEP 7 or TIA Portal",
    source: "Siemens, STEP 7 (TIA Portal) online help, Addressing variables: absolute addresses, slice access, local variables",
    spellings: [
      is('"Motor_DB".speed', '"Motor_DB".speed', "Motor_DB speed"),
      ...places(
        "%DB1.DBD4",
        "DB1.DBX0.1",
        "%MW20",
        "M0.7",
        "%I0.0",
        "IW64",
        "%IW64:P",
        "%Q4.1",
        "T5",
        "C3",
        "PEW 256",
        "P#DB10.DBX5.0 BYTE 10",
      ),
      none('"Motor_DB".status.%X3', 'read the number "Motor_DB".status'),
      none('"Motor_DB".word.%B1', 'read the number "Motor_DB".word'),
      none("#speed", 'write the block before it, for example "Motor_DB".speed'),
    ],
  },
  {
    tool: "OPC UA clients",
    source: "Siemens, S7-1500 Communication Function Manual, OPC UA server: NodeIds of PLC variables",
    spellings: [
      is('ns=3;s="Motor_DB"."speed"', '"Motor_DB"."speed"', "Motor_DB speed"),
      is('ns=3;s="Motor_DB"."spare"[2]."speed"', '"Motor_DB"."spare"[2]."speed"', "Motor_DB spare#2 speed"),
      is('ns=3;s="Temp 1"', '"Temp 1"', "Temp 1"),
      is('nsu=http://www.siemens.com/simatic-s7-opcua;s="Motor_DB"."speed"', '"Motor_DB"."speed"', "Motor_DB speed"),
    ],
  },
  {
    tool: "EMQX Neuron",
    source: "emqx/neuronex-docs, en_US/config/south-devices/opc-ua/s71200.md and overview.md; siemens-s7/s7.md",
    spellings: [is('3!"Motor_DB"."speed"', '"Motor_DB"."speed"', "Motor_DB speed"), ...places("DB10.DBW10", "O1.2", "F2.1", "I0")],
  },
  {
    tool: "UaExpert",
    source: "Unified Automation UaExpert, Data Access View, column Node Id",
    spellings: [is('NS3|String|"Motor_DB"."speed"', '"Motor_DB"."speed"', "Motor_DB speed")],
  },
  {
    tool: "Ignition",
    source: "Ignition manual, OPC UA Drivers, Siemens and Siemens Enhanced Driver (docs.inductiveautomation.com)",
    spellings: [
      is("[S7_Symbolic]Motor_DB.speed", "Motor_DB.speed", "Motor_DB speed"),
      ...places("[S7]DB500,DI8", "ISTRING24.50", "QI12", "DB500.DBREAL10", "DB400.DBDI52[4,8]"),
    ],
  },
  {
    tool: "Node-RED (node-red-contrib-s7)",
    source: "st-one-io/node-red-contrib-s7, README.md, Variable addressing",
    spellings: places("DB5,X0.1", "DB21,REAL7", "DB2,S7.10", "MR38", "IDI22", "MC9"),
  },
  {
    tool: "Telegraf",
    source: "influxdata/telegraf, plugins/inputs/s7comm/README.md",
    spellings: places("DB1.R4", "DB1.X2.1", "DB2.S1.32", "DB3.LR12"),
  },
  {
    tool: "benthos-umh",
    source: "united-manufacturing-hub/benthos-umh, docs/input/siemens-s7.md",
    spellings: places("DB1.DW20", "MK.R4", "PE.X0.1"),
  },
  {
    tool: "plc4x",
    source: "apache/plc4x, website/asciidoc/modules/users/pages/protocols/s7.adoc",
    spellings: places("%DB1.DBW310:INT", "%DB1:732:UDINT", "%M10.0:BOOL", "%MW20:INT"),
  },
  {
    tool: "Kepware",
    source: "Kepware Siemens TCP/IP Ethernet driver help, Standard S7-300/400/1200/1500 Item Syntax (support.ptc.com)",
    spellings: places("DB1,INT4", "FREAL4", "PIW256", "MDINT8"),
  },
];
