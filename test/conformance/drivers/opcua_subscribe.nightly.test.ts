import { conform } from "../conform.ts";

conform("opcua_subscribe");
