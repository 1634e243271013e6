import { conform } from "../conform.ts";

conform("fins_udp");
