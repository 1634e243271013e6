import * as z from "zod";

const text = (longest: number) => z.string().max(longest);
const TYPE_CHARACTERS = 60;
const ITEM_CHARACTERS = 1024;
/** Less than this is no line that an item fits into. */
const MIN_LINE_BYTES = 65_536;

/** Answers, as docs/gateway-protocol.md has them; fields of later versions are dropped. */
export const helloAnswer = z.object({
  version: z.int(),
  gateway: text(200),
  protocols: z.array(text(40)).max(20),
  capabilities: z.array(text(40)).max(100),
  limits: z.object({
    max_line_bytes: z.number().min(MIN_LINE_BYTES),
    max_items: z.number().min(1),
    max_in_flight: z.number().min(1),
  }),
});
export type Hello = z.infer<typeof helloAnswer>;

export const serversAnswer = z.object({
  servers: z
    .array(
      z.object({
        protocol: text(40),
        server_name: text(ITEM_CHARACTERS).optional(),
        path: text(ITEM_CHARACTERS).optional(),
      }),
    )
    .max(10_000),
});

export const openAnswer = z.object({ server: text(200), epoch: text(64).min(1) });

export const browseAnswer = z.object({
  entries: z
    .array(
      z.object({
        name: text(ITEM_CHARACTERS),
        branch: z.boolean().default(false),
        item: text(ITEM_CHARACTERS).min(1).optional(),
        type: text(TYPE_CHARACTERS).optional(),
        unit: text(ITEM_CHARACTERS).optional(),
        comment: text(10_000).optional(),
      }),
    )
    .max(10_000),
  next: text(256).optional(),
});
export type BrowsePage = z.infer<typeof browseAnswer>;

export const resolveAnswer = z.object({ epoch: text(64).min(1), items: z.array(z.unknown()).max(10_000) });

const resolvedSchema = z.union([
  z.object({ error: z.record(z.string(), z.unknown()) }),
  z.object({ item: text(ITEM_CHARACTERS).min(1), type: text(TYPE_CHARACTERS).optional() }),
]);
export type Resolved = z.infer<typeof resolvedSchema>;

/** One element of `items` of an answer to `resolve`; undefined: it does not follow the protocol, and costs nothing but itself. */
export const resolvedItem = (item: unknown): Resolved | undefined => resolvedSchema.safeParse(item).data;
