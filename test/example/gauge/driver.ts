import { z } from "zod";
import { type DriverContext, defineDriver, type Limits, type Point, type Request } from "../../../drivers/driver.ts";
import { Exchange } from "../../../drivers/lib/exchange.ts";
import { createIdCounter } from "../../../drivers/lib/ids.ts";
import { openTcp } from "../../../drivers/lib/tcp.ts";
import { FaultError } from "../../../src/model/fault.ts";
import type { DataType, Reading } from "../../../src/model/value.ts";
import { answerOf, fence, frameLength, MAX_FRAME_BYTES, readingOf, requestFrame } from "./frames.ts";

// cut: types
/** The API's connection details of this type of device. */
const details = z.object({ type: z.literal("gauge"), host: z.string(), port: z.int().min(0).max(65_535) });
type GaugeDetails = z.infer<typeof details>;

/** The local options of a source: strict, each with a description and a default. */
const settings = z.strictObject({
  max_names: z.int().min(1).max(20).default(20).describe("Variables in one request: 1 to 20"),
});
type GaugeSettings = z.infer<typeof settings>;

type Name = string;
type GaugeRequest = Request<Name>;
// cut: end

// cut: address
const NAME = /^[a-z][a-z0-9_]{0,15}$/;
const FLOAT64: DataType = { scalar: "float64" };

/** Pure. A name of at most 16 characters; every value is a float64. */
function parseAddress(text: string, type: DataType | undefined): { readonly address: Name; readonly type: DataType } {
  if (!NAME.test(text))
    throw new FaultError("address_invalid", `${JSON.stringify(text)}: expected a name of 1 to 16 of a-z, 0-9 and _, such as "flow_1"`);
  if (type !== undefined && (type.scalar !== "float64" || type.count !== undefined))
    throw new FaultError("type_mismatch", `${JSON.stringify(text)}: a gauge has values of the type float64 alone`);
  return { address: text, type: FLOAT64 };
}
// cut: end

// cut: plan
/** Pure. As many names in a request as the limits allow, in the order of the source's variables, whatever order the points come in. */
function plan(points: readonly Point<Name>[], { maxPoints }: Limits): GaugeRequest[] {
  const inOrder = points.toSorted((one, other) => one.index - other.index);
  const requests = Array.from({ length: Math.ceil(inOrder.length / maxPoints) }, (_, i) => ({
    points: inOrder.slice(i * maxPoints, (i + 1) * maxPoints),
  }));
  return requests;
}

const describeRequest = ({ points }: GaugeRequest): string => {
  const [first] = points;
  return points.length === 1 ? `${first?.address}` : `${first?.address} to ${points.at(-1)?.address} (${points.length} names)`;
};

/** An answer has 25 bytes for each value at most, so that the number of names bounds its size too. */
const limitsOf = ({ max_names }: GaugeSettings): Limits => ({ maxPoints: max_names, maxBytes: 25 * max_names, inFlight: 1 });
// cut: end

// cut: driver
export default defineDriver<GaugeDetails, GaugeSettings, Name, GaugeRequest, Limits>({
  type: "gauge",
  title: "Gauge",
  details,
  settings,
  maxConnections: 1,
  endpoint: ({ host, port }) => ({ host, port, transport: "tcp" }),
  keepsConnection: () => true,
  parseAddress,
  plan,
  describe: describeRequest,
  async connect({ details: { host, port }, settings }, ctx) {
    const connection = await openTcp({ host, port, transport: "tcp" }, ctx);
    const ids = createIdCounter(16);
    /** The request under way: its id, and what takes the words of its answer. */
    let asked: { readonly id: number; readonly take: (words: readonly string[]) => void } | undefined;
    const exchange = new Exchange(connection, ctx.tap, {
      fence,
      frameLength,
      maxFrameBytes: MAX_FRAME_BYTES,
      maxInFlight: 1,
      onFrame(frame) {
        const answer = answerOf(frame);
        if (!answer) return "a line that is not an answer";
        // The answer to a request that was given up may come late: it belongs to nobody.
        if (answer.id === asked?.id) asked.take(answer.words);
        return undefined;
      },
    });

    const read = ({ points }: GaugeRequest, readCtx: DriverContext): Promise<readonly Reading[]> =>
      exchange.request<readonly Reading[]>(
        readCtx,
        () => describeRequest({ points }),
        (answer, refuse) => {
          const id = ids.next();
          const take = (words: readonly string[]): void => {
            if (words.length === points.length) answer(words.map(readingOf));
            else refuse(new FaultError("device_error", `${words.length} values came for ${points.length} names`));
          };
          asked = { id, take };
          exchange.send(
            requestFrame(
              id,
              points.map(({ address }) => address),
            ),
          );
        },
      );
    return { limits: limitsOf(settings), read, alive: () => connection.alive(), close: () => connection.close() };
  },
});
// cut: end
