import { conform } from "../conform.ts";

conform("modbus_rtu");
