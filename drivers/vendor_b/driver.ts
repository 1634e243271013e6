import { DETAILS } from "../../src/model/details.ts";
import { withPlugin } from "../plugin/driver.ts";
import { profileDriver } from "../profile/driver.ts";
import { facts } from "./facts.ts";

export default withPlugin(
  profileDriver({
    type: facts.type,
    title: facts.title,
    details: DETAILS.vendor_b.read,
    fieldsOf: ({ machine, initialization_mode }) => ({ machine, initialization_mode }),
  }),
);
