import { conform } from "../conform.ts";

conform("vendor_b");
