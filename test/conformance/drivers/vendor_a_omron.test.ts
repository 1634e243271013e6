import { conform } from "../conform.ts";

conform("vendor_a_omron");
