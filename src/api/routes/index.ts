import { dataSinkRoutes } from "./data-sinks.ts";
import { dataSourceRoutes } from "./data-sources.ts";
import { extensionRoutes } from "./extensions.ts";
import { inventoryRoutes } from "./inventory.ts";
import { lossRoutes } from "./losses.ts";
import { siteRoutes } from "./sites.ts";
import { valueRoutes } from "./values.ts";

/** Every operation by its name. */
export const ROUTES = {
  ...dataSourceRoutes,
  ...dataSinkRoutes,
  ...siteRoutes,
  ...valueRoutes,
  ...lossRoutes,
  ...extensionRoutes,
  ...inventoryRoutes,
} as const;

export type Operation = keyof typeof ROUTES;
