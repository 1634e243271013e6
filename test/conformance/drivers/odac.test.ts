import { conform } from "../conform.ts";

conform("odac");
