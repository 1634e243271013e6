import { conform } from "../conform.ts";

conform("fins");
