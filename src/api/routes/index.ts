import { dataSinkRoutes } from "./data-sinks.ts";
import { dataSourceRoutes } from "./data-sources.ts";
import { extensionRoutes } from "./extensions.ts";

/** Every operation by its name. */
export const ROUTES = { ...dataSourceRoutes, ...dataSinkRoutes, ...extensionRoutes } as const;

export type Operation = keyof typeof ROUTES;
