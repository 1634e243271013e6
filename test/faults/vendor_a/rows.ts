import net, { type AddressInfo } from "node:net";
import { typeOf } from "../../../drivers/driver.ts";
import driver from "../../../drivers/vendor_a/driver.ts";
import {
  type CipDevice,
  type CipDeviceOptions,
  type CipStatus,
  filledProgram,
  type Misbehaviour,
  STATUS,
  startCipDevice,
} from "../../../drivers/vendor_a/simulator.ts";
import { type OmronCpu, startOmronDevice } from "../../../drivers/vendor_a/simulator-omron.ts";
import { silentLog } from "../../../src/model/context.ts";
import { freePort } from "../../support/free-port.ts";
import type { FailureRow } from "../support/failures.ts";

/** What a row may use; all of it ends with the row. */
export interface Bench {
  start(options?: CipDeviceOptions): Promise<CipDevice>;
  /** Runs when the row is over. */
  later(work: () => unknown): void;
}

export type Row = FailureRow<Bench, "network" | "connection" | "everything" | "tag" | "variable" | "files">;

export function createBench(): Bench & { close(): Promise<void> } {
  const steps: (() => unknown)[] = [];
  const later = (work: () => unknown) => void steps.push(work);
  return {
    later,
    async start(options = {}) {
      const device = await startCipDevice({ program: filledProgram().program, ...options });
      later(() => device.close());
      device.silentSlotMs = 20;
      return device;
    },
    async close() {
      for (const step of steps.reverse()) await step();
    },
  };
}

interface Asked {
  readonly local?: object;
  readonly tags?: readonly string[];
  /** Once it is looked up, before it is read. */
  readonly before?: ((device: CipDevice) => void) | undefined;
}

const ctx = () => ({ signal: new AbortController().signal, log: silentLog, timeouts: { nameMs: 1000, connectMs: 1000, answerMs: 500 } });

/** Connects, looks the tags up and reads them in one request; gives what the first ends with. */
export async function readOnce(
  bench: Bench,
  port: number,
  { local = {}, tags = ["Shown"], before }: Asked = {},
  device?: CipDevice,
): Promise<unknown> {
  const settings = driver.settings.parse(local);
  const details = driver.details.parse({ type: "vendor_a", host: "127.0.0.1", port });
  const session = await driver.connect({ details, settings, secrets: {} }, ctx());
  bench.later(() => session.close());
  const points = tags.map((text, index) => {
    const [, address = "", word] = /^(.*?)(?:=(\S+))?$/.exec(text) ?? [];
    return { index, ...driver.parseAddress(address, word === undefined ? undefined : typeOf(driver, word), settings) };
  });
  const ready: (typeof points)[number][] = [];
  for await (const batch of session.prepare?.(points, ctx()) ?? [])
    for (const one of batch)
      if ("address" in one) ready.push({ index: one.point.index, address: one.address, type: one.type });
      else throw one.refusal;
  if (device) before?.(device);
  const [request] = driver.plan(ready, session.limits);
  if (!request) throw new Error("nothing is planned");
  const [reading] = await session.read(request, ctx());
  return reading;
}

const from =
  (change: (device: CipDevice) => void, asked: Asked = {}, options: CipDeviceOptions = {}) =>
  async (bench: Bench) => {
    const device = await bench.start(options);
    change(device);
    return readOnce(bench, device.port, asked, device);
  };

/** Lists everything; gives how that ends. */
export async function listAll(bench: Bench, port: number): Promise<unknown> {
  const details = driver.details.parse({ type: "vendor_a", host: "127.0.0.1", port });
  const session = await driver.connect({ details, settings: driver.settings.parse({}), secrets: {} }, ctx());
  bench.later(() => session.close());
  const listed: unknown[] = [];
  for await (const one of session.discover?.(ctx()) ?? []) listed.push(one);
  return listed;
}

/** The read is answered in this way. */
const reading = (odd: Misbehaviour, tags?: readonly string[]) =>
  from(() => {}, {
    ...(tags && { tags }),
    before: (device) => {
      device.misbehave = () => odd;
    },
  });

/** Answers the first bytes that come with these. */
const raw = (answer: string) => async (bench: Bench) => {
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    bench.later(() => socket.destroy());
    socket.once("data", () => socket.write(Buffer.from(answer.replaceAll(" ", ""), "hex")));
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  bench.later(() => server.close());
  return readOnce(bench, (server.address() as AddressInfo).port);
};

const network: readonly Row[] = [
  {
    group: "network",
    what: "nothing listens on the port",
    reason: "CONNECTION_REFUSED",
    detail: /ECONNREFUSED/,
    run: async (bench) => readOnce(bench, await freePort()),
  },
  {
    group: "network",
    what: "another protocol answers",
    reason: "UNKNOWN",
    condition: "protocol_violation",
    detail: /EtherNet\/IP command 0x5448 in an answer/,
    run: raw(Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n").toString("hex")),
  },
  {
    group: "network",
    what: "the controller does not answer a read",
    reason: "TIMEOUT",
    detail: /no answer within 500 ms to Shown$/,
    run: reading({ silent: true }),
  },
  {
    group: "network",
    what: "the connection in the controller ended without a word",
    reason: "TIMEOUT",
    detail: /no answer within 500 ms to Product$/,
    run: from(() => {}, { tags: ["Product"], before: (device) => device.loseConnections() }),
  },
  {
    group: "network",
    what: "the controller closes the connection on a read",
    reason: "CONNECTION_CLOSED",
    detail: /closed the connection/,
    run: reading({ ends: "fin" }),
  },
  {
    group: "network",
    what: "the controller resets the connection on a read",
    reason: "CONNECTION_RESET",
    detail: /ECONNRESET/,
    run: reading({ ends: "rst" }),
  },
  {
    group: "network",
    what: "an answer that does not fit the request",
    reason: "UNKNOWN",
    condition: "protocol_violation",
    detail: /service 0xd5 answers service 0x4c/,
    run: reading({ change: () => Buffer.from("d5000000", "hex") }),
  },
];

const bridge: CipDeviceOptions = { layout: "bridge" };
const connection: readonly Row[] = [
  {
    group: "connection",
    what: "the device takes no more sessions",
    reason: "UNKNOWN",
    detail: /refuses a session: encapsulation status 0x02 \(the device has no memory left for it\)/,
    run: from((device) => {
      device.registerStatus = 2;
    }),
  },
  {
    group: "connection",
    what: "the device closes the connection when a session is registered",
    reason: "CONNECTION_CLOSED",
    detail: /closed the connection at the registration of a session: CIP Security may be on/,
    async run(bench) {
      const server = net.createServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", () => socket.end());
      });
      await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
      bench.later(() => server.close());
      return readOnce(bench, (server.address() as AddressInfo).port);
    },
  },
  {
    group: "connection",
    what: "the session ends over there",
    reason: "UNKNOWN",
    detail: /encapsulation status 0x64 \(the session handle is not valid\)/,
    run: from(() => {}, { before: (device) => device.loseSessions() }),
  },
  {
    group: "connection",
    what: "a wrong slot",
    reason: "UNKNOWN",
    condition: "configuration_invalid",
    detail: /no way to the controller \(slot 9\): status 0x01\/0x0312 \(there is no such slot/,
    run: from(() => {}, { local: { path: "1,9" } }, bridge),
  },
  {
    group: "connection",
    what: "a slot whose module does not answer",
    reason: "TIMEOUT",
    detail: /\(slot 5\): status 0x01\/0x0204 \(nothing answers there/,
    run: from(() => {}, { local: { path: "1,5" } }, bridge),
  },
  {
    group: "connection",
    what: "a port that the module does not have",
    reason: "UNKNOWN",
    condition: "configuration_invalid",
    detail: /\(path 4,0\): status 0x01\/0x0311 \(there is no such port/,
    run: from(() => {}, { local: { path: "4,0" } }, bridge),
  },
  {
    group: "connection",
    what: "there is no controller in the backplane",
    reason: "UNKNOWN",
    condition: "configuration_invalid",
    detail: /no controller was found in the backplane \(slot 2: 1756-EN2T\/D, slot 4: 1756-IB16\/A\)/,
    run: from((device) => device.slots.delete(3), {}, bridge),
  },
  {
    group: "connection",
    what: "there are several controllers in the backplane",
    reason: "UNKNOWN",
    condition: "configuration_invalid",
    detail: /several controllers, set path: 1,3 \(1756-L83E\/B\), 1,6 \(1756-L83E\/B\)/,
    run: from((device) => void device.slots.set(6, { kind: "cpu", cpu: device.cpu }), {}, bridge),
  },
];

const whole = (what: string, status: CipStatus, fault: string, scope: string, detail: RegExp): Row => ({
  group: "everything",
  what,
  fault,
  scope,
  detail,
  run: reading({ status }, ["Shown", "Product"]),
});
const everything: readonly Row[] = [
  whole("the controller permits no reading", STATUS.privilege, "access_denied", "everything", /status 0x0F \(access denied/),
  whole("the controller is short of resources", STATUS.resources, "device_error", "busy", /status 0x02/),
  whole("a bridge on the way has no room for the answer", { general: 0x1b }, "device_error", "points", /status 0x1B/),
  {
    group: "everything",
    what: "a program is being loaded",
    fault: "device_error",
    scope: "busy",
    detail: /status 0xFF\/0x2108 \(a program is being loaded/,
    run: from(() => {}, {
      before: (device) => {
        device.cpu.isDownloading = true;
      },
    }),
  },
  {
    group: "everything",
    what: "another program was loaded, in which the tag has another type",
    fault: "program_changed",
    scope: "program",
    detail: /another program: Shown has the type 0xca instead of 0xc4; tags are looked up again/,
    run: from(() => {}, {
      before: (device) =>
        device.download((program) => {
          program.remove("Shown");
          program.tag("Shown", "REAL");
        }),
    }),
  },
];

const asked = (what: string, tag: string, fault: string, scope: string | undefined, detail: RegExp): Row => ({
  group: "tag",
  what,
  fault,
  ...(scope !== undefined && { scope }),
  detail,
  run: from(() => {}, { tags: [tag] }),
});
const refused = (what: string, status: CipStatus, fault: string, detail: RegExp): Row => ({
  group: "tag",
  what,
  fault,
  detail,
  run: from(() => {}, {
    before: (device) => {
      device.cpu.refuse = () => status;
    },
  }),
});
/** A structure as a whole, where the request with this path or service is answered so; its members are read all the same. */
const untold = (what: string, service: number, path: RegExp, odd: Misbehaviour, fault: string, detail: RegExp): Row => ({
  group: "tag",
  what,
  fault,
  scope: "points",
  detail,
  run: from(
    (device) => {
      device.misbehave = (message) => (message.service === service && path.test(message.path) ? odd : undefined);
    },
    { tags: ["Recipe1"] },
  ),
});
const TEMPLATE = /class (0x)?6c|class 108/i;
const tag: readonly Row[] = [
  untold("the template is refused", 0x03, TEMPLATE, { status: STATUS.noSuchTag }, "device_error", /does not tell this structure/),
  untold("the template has no answer", 0x03, TEMPLATE, { silent: true }, "no_answer", /the controller gives no answer/),
  untold(
    "the list of the tags is refused",
    0x55,
    /./,
    { status: STATUS.serviceUnsupported },
    "device_error",
    /only members can be read: .*status 0x08/,
  ),
  untold("the list of the tags has no answer", 0x55, /./, { silent: true }, "device_error", /only members can be read: .*no answer/),
  asked("there is no such tag", "NoSuchTag", "not_found", "points", /NoSuchTag: status 0x04\/0x0000 \(no such tag/),
  asked("there is no such program", "Program:Other.Tag", "not_found", "points", /Program:Other\.Tag: status 0x0/),
  asked("the structure has no such member", "Recipe1.Torque", "not_found", "points", /Recipe1 \(Recipe\) has no member Torque/),
  asked(
    "the index is behind the end of the array",
    "Recipes[3].Speed",
    "out_of_range",
    "points",
    /Recipes is \[3\], its last element ends in 2/,
  ),
  asked(
    "the array has fewer elements than requested",
    "Recipe1.Steps[2]{3}",
    "out_of_range",
    "points",
    /3 elements were requested, there are 2/,
  ),
  asked("the tag has another type", "Shown=REAL", "type_mismatch", "points", /it is DINT on the controller, not float32/),
  asked(
    "an array where one value is wanted",
    "Recipe1.Steps=DINT",
    "type_mismatch",
    "points",
    /DINT\[4\] on the controller: name one element/,
  ),
  asked("External Access of the tag: None", "Hidden", "access_denied", "points", /External Access of the tag: None/),
  refused(
    "the tag is gone since it was looked up",
    { general: 0x05, extended: [0] },
    "not_found",
    /status 0x05\/0x0000 \(path destination unknown/,
  ),
  refused("External Access was taken away since", STATUS.noPrivilege, "access_denied", /status 0xFF\/0x2100/),
  refused("the array is shorter by now", STATUS.beyondEnd, "out_of_range", /status 0xFF\/0x2105/),
  refused("a status that is in no list", { general: 0x77 }, "device_error", /status 0x77 \(not in the protocol's list/),
  {
    group: "tag",
    what: "an answer with more bytes than the type has",
    fault: "device_error",
    detail: /Shown: the controller sent 8 bytes, 4 were asked for/,
    run: reading({ change: (reply) => Buffer.concat([reply, Buffer.alloc(4)]) }),
  },
  {
    group: "tag",
    what: "a REAL that is not a number",
    fault: "not_a_number",
    detail: /NaN/,
    run: from((device) => void device.program.tag("Odd", "REAL", Number.NaN), { tags: ["Odd"] }),
  },
];

interface Controller {
  readonly device: CipDevice;
  readonly cpu: OmronCpu;
}

/** A variable of an NJ or NX controller; `change` before it is looked up, `before` before it is read. */
const ofVariable =
  (text: string, { change, before }: { change?: (one: Controller) => void; before?: (one: Controller) => void } = {}) =>
  async (bench: Bench) => {
    const started = await startOmronDevice();
    bench.later(() => started.device.close());
    change?.(started);
    return readOnce(bench, started.device.port, { tags: [text], before: before && (() => before(started)) }, started.device);
  };

const answered = (text: string, status: CipStatus) =>
  ofVariable(text, {
    before: ({ device }) => {
      device.misbehave = ({ service }) => (service === 0x4c ? { status } : undefined);
    },
  });

const variable = (what: string, fault: string, detail: RegExp, run: Row["run"], scope = "points"): Row => ({
  group: "variable",
  what,
  fault,
  scope,
  detail,
  run,
});

/** A structure as a whole, where classes that describe it answer so; its members are read all the same. */
const undescribed = (what: string, path: RegExp, odd: Misbehaviour, fault: string, detail: RegExp): Row =>
  variable(
    what,
    fault,
    detail,
    ofVariable("Recipe1", {
      change: ({ device }) => {
        device.misbehave = (message) => (message.service === 0x01 && path.test(message.path) ? odd : undefined);
      },
    }),
  );

const OTHER_TYPE = Buffer.of(0xcc, 0, 0, 0, 0xca, 0, 0, 0, 0, 0);
const NO_TYPE = /^(the type of|type \d+ in) Recipe1: the controller gives no answer/;
const listingWith = (odd: Misbehaviour) => async (bench: Bench) => {
  const { device } = await startOmronDevice();
  bench.later(() => device.close());
  device.misbehave = ({ service }) => (service === 0x5f ? odd : undefined);
  return listAll(bench, device.port);
};
const variables: readonly Row[] = [
  variable("the variable is not published", "not_found", /Hidden: status 0x05 .*set Network Publish/, ofVariable("Hidden")),
  variable("there is no such variable", "not_found", /Nothing: status 0x04 .*set Network Publish/, ofVariable("Nothing")),
  variable("an index before the first one", "out_of_range", /the elements of Temps are \[1\.\.3\]/, ofVariable("Temps[0]")),
  variable(
    "the controller does not list its variables, and the array has no count",
    "type_mismatch",
    /say how many, for example Flags\{16\}/,
    ofVariable("Flags", {
      change: ({ cpu }) => {
        cpu.lists = false;
      },
    }),
  ),
  variable(
    "the list of variables has no answer, and a structure is read as a whole",
    "type_mismatch",
    /it is a structure whose members the controller does not list: name one of them \(it does not answer\)/,
    ofVariable("Recipe1", {
      change: ({ device }) => {
        device.misbehave = ({ service }) => (service === 0x5f ? { silent: true } : undefined);
      },
    }),
  ),
  variable(
    "the list of variables is refused, and a structure is read as a whole",
    "type_mismatch",
    /it is a structure whose members the controller does not list: name one of them \(the list of variables: status 0x08/,
    ofVariable("Recipe1", {
      change: ({ device }) => {
        device.misbehave = ({ service }) => (service === 0x5f ? { status: { general: 0x08 } } : undefined);
      },
    }),
  ),
  undescribed(
    "the variable is listed and its type refused",
    /class 0x6b/,
    { status: { general: 0x08 } },
    "device_error",
    /the type of Recipe1: status 0x08/,
  ),
  undescribed(
    "the variable is listed, and the question for its type has no answer",
    /class 0x6b/,
    { silent: true },
    "device_error",
    NO_TYPE,
  ),
  undescribed(
    "the structure type is refused",
    /class 0x6c/,
    { status: { general: 0x05 } },
    "device_error",
    /type \d+ in Recipe1: status 0x05 \(the controller does not tell it/,
  ),
  undescribed("the question for a structure type has no answer", /class 0x6c/, { silent: true }, "device_error", NO_TYPE),
  variable(
    "`browse` where the list of variables is refused",
    "device_error",
    /lists no variables: .*status 0x08/,
    listingWith({ status: { general: 0x08 } }),
  ),
  variable(
    "`browse` where the list of variables has no answer",
    "device_error",
    /lists no variables: it does not answer/,
    listingWith({ silent: true }),
  ),
  variable(
    "the controller starts or loads a program",
    "device_error",
    /status 0x0C\/0x8010 \(the controller starts/,
    answered("Total", { general: 0x0c, extended: [0x8010] }),
    "busy",
  ),
  variable(
    "an error in the memory of tags",
    "device_error",
    /status 0x0C\/0x8011 \(an error in the controller's memory/,
    answered("Total", { general: 0x0c, extended: [0x8011] }),
    "busy",
  ),
  variable(
    "the form is not possible",
    "device_error",
    /status 0x20 \(the variable cannot be read in this form/,
    answered("Total", { general: 0x20 }),
  ),
  variable(
    "an error of the maker's own",
    "device_error",
    /status 0x1F\/0x0102 \(an error of the maker's own/,
    answered("Total", { general: 0x1f, extended: [0x0102] }),
  ),
  variable(
    "the variable has another type than it was looked up with",
    "program_changed",
    /Total has the type 0xca instead of 0xc4/,
    ofVariable("Total", {
      before: ({ device }) => {
        device.misbehave = () => ({ change: () => OTHER_TYPE });
      },
    }),
    "program",
  ),
];

export const ROWS: readonly Row[] = [...network, ...connection, ...everything, ...tag, ...variables];
