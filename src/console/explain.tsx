import type { JSX } from "preact";
import { shellWord } from "../base/shell-word.ts";
import type { ExplainAnswer } from "../service/page/told.ts";
import { useData } from "./data.ts";
import { Command, Fact, Facts, Paragraphs, Table, Time } from "./words.tsx";

/** Between two looks: the bytes come with the next readout. */
const ASK_EVERY_MS = 3000;

interface ExplainedProps {
  /** Names for the command, uuids for the question. */
  readonly source: { readonly uuid: string; readonly name: string };
  readonly variable: { readonly uuid: string; readonly name: string };
}

/** How one variable comes about: its request, its bytes and what they say in each order, its scaling. */
export function Explained({ source, variable }: ExplainedProps): JSX.Element {
  const query = new URLSearchParams({ source: source.uuid, variable: variable.uuid });
  const answer = useData<ExplainAnswer>(`/data/explain?${query.toString()}`, ASK_EVERY_MS);
  return (
    <section class="card" aria-label={`${variable.name} explained`} data-explained={variable.name}>
      <h3 class="cut" title={variable.name}>
        {variable.name}: from the address to the value
      </h3>
      {!answer && <p class="faint">The answer follows in a moment.</p>}
      {answer && "problem" in answer && <Paragraphs texts={[answer.problem]} />}
      {answer && "told" in answer && <Answer answer={answer.told} />}
      <p>
        Where each data sink has it:{" "}
        <Command text={`collector explain ${shellWord(source.name, "SOURCE")} ${shellWord(variable.name, "VARIABLE")}`} />
      </p>
    </section>
  );
}

function Answer({
  answer: { variable, read_at: readAt, request, set_aside: aside, scaling, wire },
}: {
  readonly answer: ExplainAnswer;
}): JSX.Element {
  return (
    <>
      <Facts>
        {variable && (
          <Fact label="Address">
            {variable.address}, {variable.type}
          </Fact>
        )}
        <Fact label="Request">{request ?? "none reads it"}</Fact>
        {aside !== null && <Fact label="Set aside">{aside}</Fact>}
        <Fact label="Bytes" field="bytes">
          <Bytes wire={wire} />
        </Fact>
        {variable && variable.raw !== null && <Fact label="Raw value">{variable.raw}</Fact>}
        {scaling && (
          <Fact label="Scaling">
            × {scaling.factor} + {scaling.offset}
          </Fact>
        )}
        <Fact label="Value">
          {variable?.value ?? "none"} {variable?.value !== null && variable?.unit}
          {readAt !== null && (
            <>
              , read <Time iso={readAt} />
            </>
          )}
        </Fact>
      </Facts>
      {wire?.state === "read" && wire.orders.length > 0 && <Orders orders={wire.orders} />}
    </>
  );
}

function Bytes({ wire }: Pick<ExplainAnswer, "wire">): JSX.Element {
  if (wire === null) return <>the protocol has none to show</>;
  if (wire.state === "pending") return <>not read yet; the next readout brings them</>;
  if (wire.state === "failed") return <>{wire.detail}</>;
  return (
    <>
      <code>{wire.bytes.replace(/(..)(?=.)/g, "$1 ")}</code>
      {wire.left_out > 0 && ` … ${wire.left_out} more`}
      {wire.form !== null && ` (${wire.form})`}
      {wire.value !== null && `: ${wire.value}, read once with them`}
    </>
  );
}

type WireOrders = Extract<ExplainAnswer["wire"], { state: "read" }>["orders"];

const Orders = ({ orders }: { readonly orders: WireOrders }): JSX.Element => (
  <Table label="The bytes in each order" columns={["Read as", "Value", "Configured"]}>
    {orders.map(({ order, configured, value, detail }) => (
      <tr key={order}>
        <th scope="row">{order}</th>
        <td>{value ?? `– ${detail ?? ""}`}</td>
        <td>{configured ? "configured" : ""}</td>
      </tr>
    ))}
  </Table>
);
