import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { examplePlant } from "./example-plant.ts";
import { Gateway, type GatewaySecurity } from "./server.ts";

const HELP = `Serves a simulated plant by the gateway protocol (docs/gateway-protocol.md).

node gateway/main.ts [--listen 127.0.0.1:7000] [SECURITY] [--max-connections 16]

  --listen HOST:PORT     where to listen; off loopback it needs security, or --insecure
  --psk-file FILE        a key that both sides have: 32 to 128 hexadecimal digits (openssl rand -hex 32)
  --psk-identity NAME    the name of the key (default: collector)
  --certificate FILE     certificate of the gateway (PEM)
  --key FILE             its private key (PEM)
  --client-ca FILE       clients must show a certificate of these (PEM)
  --insecure             listen without security off loopback
  --max-connections N    1 to 1000 (default: 16)

Examples
  node gateway/main.ts
  openssl rand -hex 32 > gateway.key && node gateway/main.ts --listen 0.0.0.0:7000 --psk-file gateway.key
  collector read vendor_gateway host=127.0.0.1 port=7000 protocol=OPC_DA server_name=Plant.OpcDa.1 Press.Force
`;

const parse = () =>
  parseArgs({
    options: {
      listen: { type: "string", default: "127.0.0.1:7000" },
      "psk-file": { type: "string" },
      "psk-identity": { type: "string", default: "collector" },
      certificate: { type: "string" },
      key: { type: "string" },
      "client-ca": { type: "string" },
      insecure: { type: "boolean", default: false },
      "max-connections": { type: "string", default: "16" },
      help: { type: "boolean", default: false },
    },
  }).values;

type Options = ReturnType<typeof parse>;

function securityOf(options: Options): GatewaySecurity | undefined {
  const pskFile = options["psk-file"];
  if (pskFile !== undefined) {
    const digits = readFileSync(pskFile, "utf8").trim();
    if (!/^(?:[0-9a-fA-F]{2}){16,64}$/.test(digits)) throw new Error(`${pskFile} holds no key: 32 to 128 hexadecimal digits in one line`);
    return { kind: "psk", identity: options["psk-identity"], key: Buffer.from(digits, "hex") };
  }
  const { certificate, key } = options;
  if ((certificate === undefined) !== (key === undefined)) throw new Error("--certificate and --key go together");
  if (certificate === undefined || key === undefined) return undefined;
  const authorities = options["client-ca"];
  return {
    kind: "certificate",
    certificate: readFileSync(certificate),
    key: readFileSync(key),
    ...(authorities !== undefined && { clientAuthorities: readFileSync(authorities) }),
  };
}

async function main(): Promise<void> {
  const options = parse();
  if (options.help) {
    process.stdout.write(HELP);
    return;
  }
  const [, host = "", port = ""] = /^(?:\[(?=.*\]))?([^\]]+?)\]?:(\d{1,5})$/.exec(options.listen) ?? [];
  const maxConnections = Number(options["max-connections"]);
  if (host === "") throw new Error(`--listen ${options.listen}: expected an address and a port, for example 127.0.0.1:7000`);
  if (!(Number.isInteger(maxConnections) && maxConnections >= 1 && maxConnections <= 1000))
    throw new Error("--max-connections must be a number from 1 to 1000");
  const security = securityOf(options);
  if (!security && !options.insecure && !/^(127\.|::1$|localhost$)/.test(host))
    throw new Error("anyone on the network could read along: give --psk-file or --certificate, or --insecure");
  const log = (message: string) => void process.stderr.write(`${message}\n`);
  const gateway = await Gateway.start({
    backend: examplePlant(),
    host,
    port: Number(port),
    maxConnections,
    log,
    ...(security && { security }),
  });
  log(`listening on ${host}:${gateway.port}, ${security ? `TLS by ${security.kind}` : "without security"}`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void gateway.close());
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
});
