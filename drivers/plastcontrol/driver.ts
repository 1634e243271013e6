import { DETAILS } from "../../src/model/details.ts";
import { profileDriver } from "../profile/driver.ts";

export default profileDriver({
  type: "plastcontrol",
  title: "Plastcontrol",
  details: DETAILS.plastcontrol.read,
  fieldsOf: ({ readout_mode }) => ({ readout_mode: readout_mode.type }),
  roleOf: ({ readout_mode }) => (readout_mode.type === "active" ? "client" : "listener"),
});
