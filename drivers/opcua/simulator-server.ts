import { DiagnosticInfo, ServiceFault, type StatusCode } from "node-opcua-client";
import { OPCUAServer, type OPCUAServerOptions, type ServerSession } from "node-opcua-server";

type OnRequest = OPCUAServer["on_request"];
type Message = Parameters<OnRequest>[0];
type Channel = Parameters<OnRequest>[1];

/** What the server does with requests of one service instead of answering well. */
export interface ServiceFaultRule {
  /** As the specification names it: `Read`, `Browse`, `CreateSession`, `ActivateSession`, `GetEndpoints`, `CloseSession`, … */
  readonly service: string;
  /** This many are answered well first; 0 when absent. */
  readonly after?: number;
  /** This many are met by the rule, then it is gone; all of them when absent. */
  readonly times?: number;
  /** A service fault with this code; never an answer; the good answer, late; the connection ended. */
  readonly answer:
    | { readonly fault: StatusCode /** The server's own words. */; readonly text?: string }
    | "silent"
    | { readonly delayMs: number }
    | "hang_up";
}

/**
 * Keeps the nodes of a session's diagnostics out of the address space, as its EnabledFlag says (OPC 10000-5, 6.3.3): making and removing them
 * takes more CPU than all that a short session asks for.
 */
function withoutDiagnostics(session: ServerSession): void {
  const make = "_createSessionObjectInAddressSpace";
  if (typeof Reflect.get(session, make) !== "function") throw new Error(`node-opcua's ServerSession has no ${make} any more`);
  Object.defineProperty(session, make, { value: () => null });
}

/** A node-opcua server that counts what it is asked, and misbehaves on request. */
export class MisbehavingServer extends OPCUAServer {
  readonly counts = new Map<string, number>();
  readonly sessions = new Set<ServerSession>();
  /** References in one answer to Browse and BrowseNext, whatever the client asks for; 0: as it asks. */
  maxReferencesPerNode = 0;
  #rules: { readonly rule: ServiceFaultRule; left: number; met: number }[] = [];

  constructor(options: OPCUAServerOptions) {
    super(options);
    this.on("create_session", (session) => {
      this.sessions.add(session);
      withoutDiagnostics(session);
    });
    this.on("session_closed", (session) => this.sessions.delete(session));
  }

  misbehave(rule: ServiceFaultRule): void {
    this.#rules.push({ rule, left: rule.after ?? 0, met: 0 });
  }

  behave(): void {
    this.#rules = [];
  }

  /** Its certificate need not name the machine it runs on. */
  override checkCertificateSAN(): string[] {
    return [];
  }

  override on_request(message: Message, channel: Channel): void {
    const service = message.request.schema.name.replace(/Request$/, "");
    this.counts.set(service, (this.counts.get(service) ?? 0) + 1);
    const { maxReferencesPerNode: cap } = this;
    if (cap > 0 && service === "Browse") {
      const request = message.request as unknown as { requestedMaxReferencesPerNode: number };
      if (request.requestedMaxReferencesPerNode === 0 || request.requestedMaxReferencesPerNode > cap)
        request.requestedMaxReferencesPerNode = cap;
    }
    const odd = this.#ruleFor(service);
    if (odd === undefined) super.on_request(message, channel);
    else if (odd === "silent") return;
    else if (odd === "hang_up") channel.abruptlyInterrupt();
    else if ("delayMs" in odd) setTimeout(() => super.on_request(message, channel), odd.delayMs).unref();
    else {
      this.prepare(message, channel);
      const { fault, text } = odd;
      const said = text === undefined ? {} : { stringTable: [text], serviceDiagnostics: new DiagnosticInfo({ localizedText: 0 }) };
      channel.send_response("MSG", new ServiceFault({ responseHeader: { serviceResult: fault, ...said } }), message);
    }
  }

  #ruleFor(service: string): ServiceFaultRule["answer"] | undefined {
    for (const entry of this.#rules) {
      if (entry.rule.service !== service) continue;
      if (entry.left > 0) {
        entry.left--;
        continue;
      }
      if (entry.met >= (entry.rule.times ?? Number.POSITIVE_INFINITY)) continue;
      entry.met++;
      return entry.rule.answer;
    }
    return undefined;
  }
}
