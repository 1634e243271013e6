import { DETAILS } from "../../src/model/details.ts";
import { withPlugin } from "../plugin/driver.ts";
import { profileDriver } from "../profile/driver.ts";

export default withPlugin(
  profileDriver({
    type: "vendor_b",
    title: "Vendor B",
    details: DETAILS.vendor_b.read,
    fieldsOf: ({ machine, initialization_mode }) => ({ machine, initialization_mode }),
  }),
);
