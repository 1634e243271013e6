import { is, none, type ToolSpellings } from "../lib/spellings.ts";

/** Places as `scope path bit elements type`, `#` before indices. */
export const SPELLINGS: readonly ToolSpellings[] = [
  {
    tool: "nodepccc",
    source: "plcpeople/nodepccc, README.md (addresses of SLC and MicroLogix, and of files that are mapped in a Logix controller)",
    spellings: [
      is("N7:0", "N7:0", "file N7:0 int16"),
      is("N7:12/1", "N7:12/1", "file N7:12/1 bool"),
      is("B3:6/6", "B3:6/6", "file B3:6/6 bool"),
      is("B3/17", "B3/17", "file B3:1/1 bool"),
      is("F8:30", "F8:30", "file F8:30 float32"),
      is("F8:0,20", "F8:0{20}", "file F8:0{20} float32[20]"),
      is("N7:1,2", "N7:1{2}", "file N7:1{2} int16[2]"),
      is("ST18:2,3", "ST18:2{3}", "file ST18:2{3} string[3]"),
      is("L9:1", "L9:1", "file L9:1 int32"),
      is("T4:6.ACC", "T4:6.ACC", "file T4:6.ACC int16"),
      is("C5:1.PRE", "C5:1.PRE", "file C5:1.PRE int16"),
      is("O:5/1", "O:5/1", "file O:5/1 bool"),
    ],
  },
  {
    tool: "RSLogix 5 or 500",
    source: "Rockwell 1747-RM001 and 1785-UM004, addressing of data files",
    isFromMemory: true,
    spellings: [
      is("I:1.0/7", "I:1.0/7", "file I:1.0/7 bool"),
      is("I:012/17", "I:012/17", "file I:012/17 bool"),
      is("S:1/5", "S:1/5", "file S2:1/5 bool"),
      is("T4:2/DN", "T4:2/DN", "file T4:2/DN bool"),
      is("R6:1.LEN", "R6:1.LEN", "file R6:1.LEN int16"),
      is("ST9:0", "ST9:0", "file ST9:0 string"),
      is("#N7:0", "N7:0", "file N7:0 int16"),
      none("PD10:0.SP", "files of PID blocks are not read"),
    ],
  },
  {
    tool: "EMQX Neuron (MicroLogix)",
    source: "EMQX Neuron documentation, Allen-Bradley MicroLogix 1400, PLC Data Address (docs.emqx.com)",
    spellings: [
      is("O:3", "O:3", "file O:3 uint16"),
      none("O/1", "for example O:0/1"),
      is("I:3/1", "I:3/1", "file I:3/1 bool"),
      none("I/1", "for example I:0/1"),
      is("S:3", "S:3", "file S2:3 uint16"),
    ],
  },
  {
    tool: "plc4x",
    source: "apache/plc4x, website/asciidoc/modules/users/pages/protocols/ab-eth.adoc",
    spellings: [
      is("N7:0:WORD", "N7:0 with the type WORD", "file N7:0 uint16"),
      none("N7:5:DWORD", "two words of a file are not read as one number"),
      is("N7:3:INTEGER[8]", "N7:3{8}", "file N7:3{8} int16[8]"),
      is("N7:0/3:WORD", "N7:0/3", "file N7:0/3 bool"),
    ],
  },
  {
    tool: "plc4x",
    source: "apache/plc4x, website/asciidoc/modules/users/pages/protocols/eip.adoc and logix.adoc",
    spellings: [
      is("myTag", "myTag", "controller myTag auto"),
      is("%myTag", "myTag", "controller myTag auto"),
      is("myTag:REAL", "myTag with the type REAL", "controller myTag float32"),
      is("%myTag:LINT", "myTag with the type LINT", "controller myTag int64"),
      is("myTag:STRING", "myTag", "controller myTag auto"),
      is("myTag:4", "myTag{4}", "controller myTag x4 auto"),
      is("myArray[3]:DINT", "myArray[3] with the type DINT", "controller myArray #3 int32"),
      is("myArray[0]:DINT:4", "myArray[0]{4} with the type DINT", "controller myArray #0 x4 int32"),
      is("%myArray[2]:INT:8", "myArray[2]{8} with the type INT", "controller myArray #2 x8 int16"),
    ],
  },
  {
    tool: "Ignition",
    source:
      "Ignition manual, OPC UA Drivers, Allen Bradley Ethernet (docs.inductiveautomation.com): device name in brackets before the tag",
    isFromMemory: true,
    spellings: [
      is("[CLX]Line.Motor.Speed", "Line.Motor.Speed", "controller Line Motor Speed auto"),
      is("[CLX]Program:Main.Cycle", "Program:Main.Cycle", "Program:Main Cycle auto"),
      is("[Micro]MyUdt.MyDint.11", "MyUdt.MyDint.11", "controller MyUdt MyDint bit 11 auto"),
      is("MyByteArray[0].7", "MyByteArray[0].7", "controller MyByteArray #0 bit 7 auto"),
      is("[SLC]N7:0", "N7:0", "file N7:0 int16"),
      is("[SLC]B3/37", "B3/37", "file B3:2/5 bool"),
      is("[ML]T4:2.ACC", "T4:2.ACC", "file T4:2.ACC int16"),
    ],
  },
  {
    tool: "RSLinx",
    source: "Rockwell LINX-GR001, RSLinx Classic Getting Results Guide, items of OPC and DDE",
    isFromMemory: true,
    spellings: [
      is("[Line1]Counts[0],L10,C1", "Counts[0]{10}", "controller Counts #0 x10 auto"),
      is("Counts[5],L3", "Counts[5]{3}", "controller Counts #5 x3 auto"),
      is("[Line1]N7:0,L20,C1", "N7:0{20}", "file N7:0{20} int16[20]"),
      is("F8:10,L4", "F8:10{4}", "file F8:10{4} float32[4]"),
    ],
  },
  {
    tool: "Kepware",
    source: "Kepware Allen-Bradley ControlLogix Ethernet driver help, Address Formats",
    isFromMemory: true,
    spellings: [
      is("Counts {10}", "Counts {10}", "controller Counts x10 auto"),
      is("Grid {2}{5}", "Grid{10}", "controller Grid x10 auto"),
      is("Grid[1,0]{2} {5}", "Grid[1,0]{10}", "controller Grid #1,0 x10 auto"),
      is("Recipe.DATA/82", "Recipe", "controller Recipe auto"),
      is("Recipe/20", "Recipe", "controller Recipe auto"),
      none("Status.[Index]", "a tag as an index is not followed; write the number, for example Status.0"),
    ],
  },
  {
    tool: "Studio 5000",
    source: "Rockwell 1756-PM021, Logix 5000 Controllers Program Parameters, direct access; 1756-PM004, I/O and Tag Data, array subscripts",
    isFromMemory: true,
    spellings: [
      is("\\Main.Cycle", "Program:Main.Cycle", "Program:Main Cycle auto"),
      none("Recipes[Number].Speed", "for example Recipes[0].Speed"),
      is("Local:1:I.Data.3", "Local:1:I.Data.3", "controller Local:1:I Data bit 3 auto"),
    ],
  },
  {
    tool: "libplctag",
    source: "libplctag/libplctag wiki, Tag String Attributes",
    isFromMemory: true,
    spellings: [
      is(
        "protocol=ab-eip&gateway=10.1.2.3&path=1,0&cpu=LGX&elem_count=10&name=Counts[2]",
        "Counts[2]{10}",
        "controller Counts #2 x10 auto",
      ),
      is("protocol=ab_eip&gateway=10.1.2.3&plc=micrologix&elem_count=5&name=F8:10", "F8:10{5}", "file F8:10{5} float32[5]"),
      is("protocol=ab_eip&gateway=10.1.2.3&plc=slc&name=N7:0", "N7:0", "file N7:0 int16"),
      is("protocol=ab_eip&gateway=10.1.2.3&plc=ControlLogix&name=Program:Main.Cycle", "Program:Main.Cycle", "Program:Main Cycle auto"),
    ],
  },
  {
    tool: "benthos-umh",
    source: "united-manufacturing-hub/benthos-umh, docs/input/ethernet-ip.md, attributes",
    spellings: [none("1-1-1", "attributes of CIP objects are not read, only tags")],
  },
  {
    tool: "WinCC OA",
    source: "WinCC OA documentation, EIP driver, Defining a Native EIP PLC peripheral address",
    spellings: [none("MyTagSet/0:50", "tag sets are data of an implicit connection")],
  },
];
