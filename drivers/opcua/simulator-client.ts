import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { OPCUACertificateManager } from "node-opcua-certificate-manager";
import {
  type ClientSession,
  MessageSecurityMode,
  OPCUAClient,
  type SecurityPolicy,
  type UserIdentityInfo,
  UserTokenType,
} from "node-opcua-client";
import { makeCertificate, type SimulatorCertificate, writeCertificate } from "./simulator-certificates.ts";

const APPLICATION_URI = "urn:test:client";

/** How a witness connects; without security and anonymous unless told otherwise. */
export interface Way {
  readonly mode?: keyof typeof MessageSecurityMode;
  /** By the API's own name. */
  readonly policy?: string;
  readonly user?: UserIdentityInfo;
}

/** node-opcua's own client, for what is to be seen without the driver. Trusts everyone; leaves nothing behind. */
export interface Witness {
  readonly certificate: SimulatorCertificate;
  withSession<T>(endpointUrl: string, work: (session: ClientSession) => Promise<T>, way?: Way): Promise<T>;
  /** DER of what the server shows to everybody. */
  serverCertificate(endpointUrl: string): Promise<Uint8Array>;
  close(): Promise<void>;
}

export async function createWitness(): Promise<Witness> {
  const folder = mkdtempSync(path.join(tmpdir(), "opcua-witness-"));
  const certificate = await makeCertificate({ applicationUri: APPLICATION_URI });
  const files = await writeCertificate(folder, "client", certificate);
  const manager = new OPCUACertificateManager({
    rootFolder: path.join(folder, "pki"),
    automaticallyAcceptUnknownCertificate: true,
    disableFileWatchers: true,
  });
  await manager.initialize();
  const options = {
    ...files,
    applicationUri: APPLICATION_URI,
    clientCertificateManager: manager,
    endpointMustExist: false,
    connectionStrategy: { maxRetry: 0 },
    requestedSessionTimeout: 5000,
    transportTimeout: 3000,
    defaultTransactionTimeout: 3000,
  };
  return {
    certificate,
    async withSession(endpointUrl, work, { mode, policy, user } = {}) {
      const client = OPCUAClient.create({
        ...options,
        ...(mode !== undefined && { securityMode: MessageSecurityMode[mode] }),
        ...(policy !== undefined && {
          securityPolicy: `http://opcfoundation.org/UA/SecurityPolicy#${policy.replaceAll("-", "_")}` as SecurityPolicy,
        }),
      });
      try {
        await client.connect(endpointUrl);
        const session = await client.createSession(user ?? { type: UserTokenType.Anonymous });
        try {
          return await work(session);
        } finally {
          await session.close().catch(() => {});
        }
      } finally {
        await client.disconnect();
      }
    },
    async serverCertificate(endpointUrl) {
      const client = OPCUAClient.create(options);
      try {
        await client.connect(endpointUrl);
        const [endpoint] = await client.getEndpoints();
        return new Uint8Array(endpoint?.serverCertificate ?? []);
      } finally {
        await client.disconnect();
      }
    },
    async close() {
      await manager.dispose();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
