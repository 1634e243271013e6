import { conform } from "../conform.ts";

conform("gauge");
