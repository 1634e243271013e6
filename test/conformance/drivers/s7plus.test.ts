import { conform } from "../conform.ts";

conform("s7plus");
