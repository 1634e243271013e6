import { conform } from "../conform.ts";

conform("rack");
