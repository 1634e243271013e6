import { DETAILS } from "../../src/model/details.ts";
import { withPlugin } from "../plugin/driver.ts";
import { profileDriver } from "../profile/driver.ts";
import { facts } from "./facts.ts";

export default withPlugin(
  profileDriver({
    type: facts.type,
    title: facts.title,
    details: DETAILS.plastcontrol.read,
    fieldsOf: ({ readout_mode }) => ({ readout_mode: readout_mode.type }),
    roleOf: ({ readout_mode }) => (readout_mode.type === "active" ? "client" : "listener"),
  }),
);
