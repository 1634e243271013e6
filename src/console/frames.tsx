import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { FramesAnswer } from "../service/page/told.ts";
import { useData } from "./data.ts";
import { Paragraphs, Table, Time } from "./words.tsx";

const ASK_EVERY_MS = 5000;
const SHOWN = 40;

/** The last exchange with the device, once somebody asks for it; and the capture for Wireshark. */
export function FramesSection({ uuid }: { readonly uuid: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const query = `source=${encodeURIComponent(uuid)}`;
  const answer = useData<FramesAnswer>(isOpen ? `/data/frames?${query}` : null, ASK_EVERY_MS);
  return (
    <section id="frames" aria-labelledby="frames-title">
      <h2 id="frames-title">Frames</h2>
      <p>
        <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Hide the last exchange" : "Show the last exchange"}
        </button>{" "}
        <a href={`/data/capture?${query}`} download>
          Capture for Wireshark
        </a>
      </p>
      {isOpen && !answer && <p class="faint">The frames follow in a moment.</p>}
      {isOpen && answer && "problem" in answer && <Paragraphs texts={[answer.problem]} />}
      {isOpen && answer && "told" in answer && <FrameTable frames={answer.told} />}
    </section>
  );
}

const FrameTable = ({ frames: { frames, left_out: leftOut } }: { readonly frames: FramesAnswer }): JSX.Element => (
  <>
    <p class="faint">The newest first; an answer stands above its request.</p>
    <Table label="Frames of the last exchange" columns={["Time", "Connection", "What", "Bytes"]}>
      {frames
        .slice(-SHOWN)
        .toReversed()
        .map(({ at, connection, words, bytes }, i) => (
          <tr key={`${at} ${i}`}>
            <th scope="row" class="time">
              <Time iso={at} hasMs />
            </th>
            <td>{connection}</td>
            <td>{words}</td>
            <td>
              {bytes !== null && (
                <code class="cut" title={bytes}>
                  {bytes.replace(/(..)(?=.)/g, "$1 ")}
                </code>
              )}
            </td>
          </tr>
        ))}
    </Table>
    {leftOut + Math.max(0, frames.length - SHOWN) > 0 && (
      <p>… {leftOut + Math.max(0, frames.length - SHOWN)} earlier ones are in the capture, as far as it is kept.</p>
    )}
  </>
);
