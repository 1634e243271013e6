import { conform } from "../conform.ts";

conform("plastcontrol");
