import * as z from "zod";

/** The configuration API as this machine's settings name it: where it is and how it is asked. The key stays in its file. */
export const apiAccessSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/ }).describe("Base address; /api/… is appended"),
  keyFile: z.string().min(1).describe("File that holds the API key; read again for each request"),
  authorization: z.enum(["bare", "bearer"]).optional().describe("Form of the Authorization header; absent: found out"),
  caFile: z.string().min(1).optional().describe("Certificate authorities instead of Node's and the system's, PEM"),
  certificate: z
    .strictObject({ certFile: z.string().min(1), keyFile: z.string().min(1) })
    .optional()
    .describe("Certificate of this collector and its private key, PEM"),
  proxy: z
    .strictObject({ url: z.string().min(1), passwordFile: z.string().min(1).optional() })
    .optional()
    .describe("HTTP proxy, without a password; absent: the environment's"),
  insecure: z.boolean().describe("Whether the key may travel in the clear"),
  socketFile: z.string().min(1).optional().describe("A unix socket that the collector uses instead of the API's address"),
  embedded: z.boolean().describe("Whether the collector carries it itself, so that it may still be starting"),
});

export type ApiAccess = z.infer<typeof apiAccessSchema>;
